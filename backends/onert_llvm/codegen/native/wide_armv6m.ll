; 64-bit products and shifts for the smallest Arm cores (Armv6-M, Armv8-M Baseline), under the names that the code
; generator calls there.
;
; Source of names and registers: Run-time ABI for the Arm Architecture, section 4.2; __clzsi2 is libgcc's. Written with
; 32-bit words only, so that no function calls itself. Shifts are by 0 to 63. The functions are made local when the
; object is linked.

define i64 @__aeabi_lmul(i64 %a, i64 %b) nounwind {
  %a0 = trunc i64 %a to i32
  %b0 = trunc i64 %b to i32
  %aup = lshr i64 %a, 32
  %bup = lshr i64 %b, 32
  %a1 = trunc i64 %aup to i32
  %b1 = trunc i64 %bup to i32
  ; The low words in 16-bit halves.
  %al = and i32 %a0, 65535
  %bl = and i32 %b0, 65535
  %ah = lshr i32 %a0, 16
  %bh = lshr i32 %b0, 16
  %ll = mul i32 %al, %bl
  %lh = mul i32 %al, %bh
  %hl = mul i32 %ah, %bl
  %hh = mul i32 %ah, %bh
  %lltop = lshr i32 %ll, 16
  %lhlow = and i32 %lh, 65535
  %hllow = and i32 %hl, 65535
  %mid0 = add i32 %lltop, %lhlow
  %mid = add i32 %mid0, %hllow
  %midup = lshr i32 %mid, 16
  %lhup = lshr i32 %lh, 16
  %hlup = lshr i32 %hl, 16
  %h0 = add i32 %hh, %lhup
  %h1 = add i32 %h0, %hlup
  %h2 = add i32 %h1, %midup
  %cross0 = mul i32 %a0, %b1
  %cross1 = mul i32 %a1, %b0
  %h3 = add i32 %h2, %cross0
  %high = add i32 %h3, %cross1
  %midlow = shl i32 %mid, 16
  %lllow = and i32 %ll, 65535
  %low = or i32 %midlow, %lllow
  %both = call i64 @onert.words(i32 %low, i32 %high)
  ret i64 %both
}

define internal i64 @onert.words(i32 %low, i32 %high) nounwind alwaysinline {
  %l = zext i32 %low to i64
  %h = zext i32 %high to i64
  %up = shl i64 %h, 32
  %both = or i64 %up, %l
  ret i64 %both
}

define i64 @__aeabi_llsl(i64 %x, i32 %by) nounwind {
  %low = trunc i64 %x to i32
  %up = lshr i64 %x, 32
  %high = trunc i64 %up to i32
  %far = icmp uge i32 %by, 32
  %less = and i32 %by, 31
  %movedlow = shl i32 %low, %less
  br i1 %far, label %words, label %bits
words:
  %moved = call i64 @onert.words(i32 0, i32 %movedlow)
  ret i64 %moved
bits:
  %movedhigh = shl i32 %high, %less
  %half = lshr i32 %low, 1
  %other = xor i32 %less, 31
  %over = lshr i32 %half, %other
  %newhigh = or i32 %movedhigh, %over
  %found = call i64 @onert.words(i32 %movedlow, i32 %newhigh)
  ret i64 %found
}

define i64 @__aeabi_llsr(i64 %x, i32 %by) nounwind {
  %low = trunc i64 %x to i32
  %up = lshr i64 %x, 32
  %high = trunc i64 %up to i32
  %far = icmp uge i32 %by, 32
  %less = and i32 %by, 31
  %movedhigh = lshr i32 %high, %less
  br i1 %far, label %words, label %bits
words:
  %moved = call i64 @onert.words(i32 %movedhigh, i32 0)
  ret i64 %moved
bits:
  %movedlow = lshr i32 %low, %less
  %twice = shl i32 %high, 1
  %other = xor i32 %less, 31
  %over = shl i32 %twice, %other
  %newlow = or i32 %movedlow, %over
  %found = call i64 @onert.words(i32 %newlow, i32 %movedhigh)
  ret i64 %found
}

define i64 @__aeabi_lasr(i64 %x, i32 %by) nounwind {
  %low = trunc i64 %x to i32
  %up = lshr i64 %x, 32
  %high = trunc i64 %up to i32
  %far = icmp uge i32 %by, 32
  %less = and i32 %by, 31
  %movedhigh = ashr i32 %high, %less
  br i1 %far, label %words, label %bits
words:
  %sign = ashr i32 %high, 31
  %moved = call i64 @onert.words(i32 %movedhigh, i32 %sign)
  ret i64 %moved
bits:
  %movedlow = lshr i32 %low, %less
  %twice = shl i32 %high, 1
  %other = xor i32 %less, 31
  %over = shl i32 %twice, %other
  %newlow = or i32 %movedlow, %over
  %found = call i64 @onert.words(i32 %newlow, i32 %movedhigh)
  ret i64 %found
}

define i32 @__clzsi2(i32 %x) nounwind {
entry:
  br label %round
round:
  %bits = phi i32 [ %x, %entry ], [ %more, %next ]
  %count = phi i32 [ 0, %entry ], [ %counted, %next ]
  %negative = icmp slt i32 %bits, 0
  %all = icmp eq i32 %count, 32
  %stop = or i1 %negative, %all
  br i1 %stop, label %done, label %next
next:
  %more = shl i32 %bits, 1
  %counted = add i32 %count, 1
  br label %round
done:
  ret i32 %count
}
