; Division for 32-bit Arm cores without an instruction for it, under the names that the code generator calls.
;
; Source of names and registers: Run-time ABI for the Arm Architecture, section 4.3. Quotient and remainder are returned
; in r0 to r3, where the code generator puts a struct of that many words. Division by zero gives quotient zero and the
; dividend as remainder. Shift and subtract, with one round per quotient bit: sizes and indices have few. The functions
; are made local when the object is linked.

declare i64 @llvm.ctlz.i64(i64, i1)

define { i32, i32, i32, i32 } @__aeabi_uldivmod(i64 %n, i64 %d) nounwind {
entry:
  %zero = icmp eq i64 %d, 0
  %less = icmp ult i64 %n, %d
  %nothing = or i1 %zero, %less
  br i1 %nothing, label %done, label %start
start:
  %nz = call i64 @llvm.ctlz.i64(i64 %n, i1 false)
  %dz = call i64 @llvm.ctlz.i64(i64 %d, i1 false)
  %shift = sub i64 %dz, %nz
  %high = shl i64 %d, %shift
  br label %round
round:
  %left = phi i64 [ %shift, %start ], [ %fewer, %round ]
  %by = phi i64 [ %high, %start ], [ %half, %round ]
  %rest = phi i64 [ %n, %start ], [ %newrest, %round ]
  %bits = phi i64 [ 0, %start ], [ %newbits, %round ]
  %fits = icmp uge i64 %rest, %by
  %taken = select i1 %fits, i64 %by, i64 0
  %newrest = sub i64 %rest, %taken
  %twice = shl i64 %bits, 1
  %bit = zext i1 %fits to i64
  %newbits = or i64 %twice, %bit
  %half = lshr i64 %by, 1
  %fewer = sub i64 %left, 1
  %last = icmp eq i64 %left, 0
  br i1 %last, label %done, label %round
done:
  %q = phi i64 [ 0, %entry ], [ %newbits, %round ]
  %r = phi i64 [ %n, %entry ], [ %newrest, %round ]
  %qlow = trunc i64 %q to i32
  %qup = lshr i64 %q, 32
  %qhigh = trunc i64 %qup to i32
  %rlow = trunc i64 %r to i32
  %rup = lshr i64 %r, 32
  %rhigh = trunc i64 %rup to i32
  %a = insertvalue { i32, i32, i32, i32 } poison, i32 %qlow, 0
  %b = insertvalue { i32, i32, i32, i32 } %a, i32 %qhigh, 1
  %c = insertvalue { i32, i32, i32, i32 } %b, i32 %rlow, 2
  %e = insertvalue { i32, i32, i32, i32 } %c, i32 %rhigh, 3
  ret { i32, i32, i32, i32 } %e
}

declare i32 @llvm.ctlz.i32(i32, i1)

define { i32, i32 } @__aeabi_uidivmod(i32 %n, i32 %d) nounwind {
entry:
  %zero = icmp eq i32 %d, 0
  %less = icmp ult i32 %n, %d
  %nothing = or i1 %zero, %less
  br i1 %nothing, label %done, label %start
start:
  %nz = call i32 @llvm.ctlz.i32(i32 %n, i1 false)
  %dz = call i32 @llvm.ctlz.i32(i32 %d, i1 false)
  %shift = sub i32 %dz, %nz
  %high = shl i32 %d, %shift
  br label %round
round:
  %left = phi i32 [ %shift, %start ], [ %fewer, %round ]
  %by = phi i32 [ %high, %start ], [ %half, %round ]
  %rest = phi i32 [ %n, %start ], [ %newrest, %round ]
  %bits = phi i32 [ 0, %start ], [ %newbits, %round ]
  %fits = icmp uge i32 %rest, %by
  %taken = select i1 %fits, i32 %by, i32 0
  %newrest = sub i32 %rest, %taken
  %twice = shl i32 %bits, 1
  %bit = zext i1 %fits to i32
  %newbits = or i32 %twice, %bit
  %half = lshr i32 %by, 1
  %fewer = sub i32 %left, 1
  %last = icmp eq i32 %left, 0
  br i1 %last, label %done, label %round
done:
  %q = phi i32 [ 0, %entry ], [ %newbits, %round ]
  %r = phi i32 [ %n, %entry ], [ %newrest, %round ]
  %a = insertvalue { i32, i32 } poison, i32 %q, 0
  %b = insertvalue { i32, i32 } %a, i32 %r, 1
  ret { i32, i32 } %b
}

define { i32, i32 } @__aeabi_uidiv(i32 %n, i32 %d) nounwind {
  %both = call { i32, i32 } @__aeabi_uidivmod(i32 %n, i32 %d)
  ret { i32, i32 } %both
}

; Signed: the quotient of the magnitudes, negative if signs differ; the remainder has the dividend's sign.
define { i32, i32 } @__aeabi_idivmod(i32 %n, i32 %d) nounwind {
  %nsign = ashr i32 %n, 31
  %dsign = ashr i32 %d, 31
  %nflip = xor i32 %n, %nsign
  %nsize = sub i32 %nflip, %nsign
  %dflip = xor i32 %d, %dsign
  %dsize = sub i32 %dflip, %dsign
  %both = call { i32, i32 } @__aeabi_uidivmod(i32 %nsize, i32 %dsize)
  %q = extractvalue { i32, i32 } %both, 0
  %r = extractvalue { i32, i32 } %both, 1
  %sign = xor i32 %nsign, %dsign
  %qflip = xor i32 %q, %sign
  %qout = sub i32 %qflip, %sign
  %rflip = xor i32 %r, %nsign
  %rout = sub i32 %rflip, %nsign
  %a = insertvalue { i32, i32 } poison, i32 %qout, 0
  %b = insertvalue { i32, i32 } %a, i32 %rout, 1
  ret { i32, i32 } %b
}

define { i32, i32 } @__aeabi_idiv(i32 %n, i32 %d) nounwind {
  %both = call { i32, i32 } @__aeabi_idivmod(i32 %n, i32 %d)
  ret { i32, i32 } %both
}

define { i32, i32, i32, i32 } @__aeabi_ldivmod(i64 %n, i64 %d) nounwind {
  %nsign = ashr i64 %n, 63
  %dsign = ashr i64 %d, 63
  %nflip = xor i64 %n, %nsign
  %nsize = sub i64 %nflip, %nsign
  %dflip = xor i64 %d, %dsign
  %dsize = sub i64 %dflip, %dsign
  %both = call { i32, i32, i32, i32 } @__aeabi_uldivmod(i64 %nsize, i64 %dsize)
  %q0 = extractvalue { i32, i32, i32, i32 } %both, 0
  %q1 = extractvalue { i32, i32, i32, i32 } %both, 1
  %r0 = extractvalue { i32, i32, i32, i32 } %both, 2
  %r1 = extractvalue { i32, i32, i32, i32 } %both, 3
  %qlow = zext i32 %q0 to i64
  %qhigh = zext i32 %q1 to i64
  %qup = shl i64 %qhigh, 32
  %q = or i64 %qup, %qlow
  %rlow = zext i32 %r0 to i64
  %rhigh = zext i32 %r1 to i64
  %rup = shl i64 %rhigh, 32
  %r = or i64 %rup, %rlow
  %sign = xor i64 %nsign, %dsign
  %qflip = xor i64 %q, %sign
  %qout = sub i64 %qflip, %sign
  %rflip = xor i64 %r, %nsign
  %rout = sub i64 %rflip, %nsign
  %a0 = trunc i64 %qout to i32
  %a1 = lshr i64 %qout, 32
  %a2 = trunc i64 %a1 to i32
  %b0 = trunc i64 %rout to i32
  %b1 = lshr i64 %rout, 32
  %b2 = trunc i64 %b1 to i32
  %w = insertvalue { i32, i32, i32, i32 } poison, i32 %a0, 0
  %x = insertvalue { i32, i32, i32, i32 } %w, i32 %a2, 1
  %y = insertvalue { i32, i32, i32, i32 } %x, i32 %b0, 2
  %z = insertvalue { i32, i32, i32, i32 } %y, i32 %b2, 3
  ret { i32, i32, i32, i32 } %z
}
