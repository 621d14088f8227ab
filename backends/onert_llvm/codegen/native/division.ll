; Unsigned and signed division of integers with $bits bits: quotient and remainder.
;
; Division by zero gives quotient zero and the dividend as remainder. Shift and subtract, with one round per quotient
; bit: sizes and indices have few. The functions are made local when the object is linked.

declare i$bits @llvm.ctlz.i$bits(i$bits, i1)

define { i$bits, i$bits } @$unsigned(i$bits %n, i$bits %d) nounwind {
entry:
  %zero = icmp eq i$bits %d, 0
  %less = icmp ult i$bits %n, %d
  %nothing = or i1 %zero, %less
  br i1 %nothing, label %done, label %start
start:
  %nz = call i$bits @llvm.ctlz.i$bits(i$bits %n, i1 false)
  %dz = call i$bits @llvm.ctlz.i$bits(i$bits %d, i1 false)
  %shift = sub i$bits %dz, %nz
  %high = shl i$bits %d, %shift
  br label %round
round:
  %left = phi i$bits [ %shift, %start ], [ %fewer, %round ]
  %by = phi i$bits [ %high, %start ], [ %half, %round ]
  %rest = phi i$bits [ %n, %start ], [ %newrest, %round ]
  %bits = phi i$bits [ 0, %start ], [ %newbits, %round ]
  %fits = icmp uge i$bits %rest, %by
  %taken = select i1 %fits, i$bits %by, i$bits 0
  %newrest = sub i$bits %rest, %taken
  %twice = shl i$bits %bits, 1
  %bit = zext i1 %fits to i$bits
  %newbits = or i$bits %twice, %bit
  %half = lshr i$bits %by, 1
  %fewer = sub i$bits %left, 1
  %last = icmp eq i$bits %left, 0
  br i1 %last, label %done, label %round
done:
  %q = phi i$bits [ 0, %entry ], [ %newbits, %round ]
  %r = phi i$bits [ %n, %entry ], [ %newrest, %round ]
  %a = insertvalue { i$bits, i$bits } poison, i$bits %q, 0
  %b = insertvalue { i$bits, i$bits } %a, i$bits %r, 1
  ret { i$bits, i$bits } %b
}

; The quotient of the magnitudes, negative if signs differ; the remainder has the dividend's sign.
define { i$bits, i$bits } @$signed(i$bits %n, i$bits %d) nounwind {
  %nsign = ashr i$bits %n, $last
  %dsign = ashr i$bits %d, $last
  %nflip = xor i$bits %n, %nsign
  %nsize = sub i$bits %nflip, %nsign
  %dflip = xor i$bits %d, %dsign
  %dsize = sub i$bits %dflip, %dsign
  %both = call { i$bits, i$bits } @$unsigned(i$bits %nsize, i$bits %dsize)
  %q = extractvalue { i$bits, i$bits } %both, 0
  %r = extractvalue { i$bits, i$bits } %both, 1
  %sign = xor i$bits %nsign, %dsign
  %qflip = xor i$bits %q, %sign
  %qout = sub i$bits %qflip, %sign
  %rflip = xor i$bits %r, %nsign
  %rout = sub i$bits %rflip, %nsign
  %a = insertvalue { i$bits, i$bits } poison, i$bits %qout, 0
  %b = insertvalue { i$bits, i$bits } %a, i$bits %rout, 1
  ret { i$bits, i$bits } %b
}
