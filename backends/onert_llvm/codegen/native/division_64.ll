; 64-bit division on targets with 32-bit registers, under the names that the code generator calls.
;
; Source of the names: libgcc's integer library routines. Division by zero gives quotient zero and the dividend as
; remainder. Shift and subtract, with one round per quotient bit: sizes and indices have few. The functions are made
; local when the object is linked.

declare i64 @llvm.ctlz.i64(i64, i1)

; Quotient and remainder.
define internal { i64, i64 } @divided(i64 %n, i64 %d) nounwind {
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
  %a = insertvalue { i64, i64 } poison, i64 %q, 0
  %b = insertvalue { i64, i64 } %a, i64 %r, 1
  ret { i64, i64 } %b
}

define i64 @__udivdi3(i64 %n, i64 %d) nounwind {
  %both = call { i64, i64 } @divided(i64 %n, i64 %d)
  %q = extractvalue { i64, i64 } %both, 0
  ret i64 %q
}

define i64 @__umoddi3(i64 %n, i64 %d) nounwind {
  %both = call { i64, i64 } @divided(i64 %n, i64 %d)
  %r = extractvalue { i64, i64 } %both, 1
  ret i64 %r
}

; Signed: the quotient of the magnitudes, negative if signs differ; the remainder has the dividend's sign.
define i64 @__divdi3(i64 %n, i64 %d) nounwind {
  %nsign = ashr i64 %n, 63
  %dsign = ashr i64 %d, 63
  %nflip = xor i64 %n, %nsign
  %nsize = sub i64 %nflip, %nsign
  %dflip = xor i64 %d, %dsign
  %dsize = sub i64 %dflip, %dsign
  %both = call { i64, i64 } @divided(i64 %nsize, i64 %dsize)
  %q = extractvalue { i64, i64 } %both, 0
  %sign = xor i64 %nsign, %dsign
  %flip = xor i64 %q, %sign
  %out = sub i64 %flip, %sign
  ret i64 %out
}

define i64 @__moddi3(i64 %n, i64 %d) nounwind {
  %nsign = ashr i64 %n, 63
  %dsign = ashr i64 %d, 63
  %nflip = xor i64 %n, %nsign
  %nsize = sub i64 %nflip, %nsign
  %dflip = xor i64 %d, %dsign
  %dsize = sub i64 %dflip, %dsign
  %both = call { i64, i64 } @divided(i64 %nsize, i64 %dsize)
  %r = extractvalue { i64, i64 } %both, 1
  %flip = xor i64 %r, %nsign
  %out = sub i64 %flip, %nsign
  ret i64 %out
}
