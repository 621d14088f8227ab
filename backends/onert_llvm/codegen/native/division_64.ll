
; 64-bit division on targets with 32-bit registers, under the names that the code generator calls.
;
; Source of the names: libgcc's integer library routines.

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

define i64 @__divdi3(i64 %n, i64 %d) nounwind {
  %both = call { i64, i64 } @divided_signed(i64 %n, i64 %d)
  %q = extractvalue { i64, i64 } %both, 0
  ret i64 %q
}

define i64 @__moddi3(i64 %n, i64 %d) nounwind {
  %both = call { i64, i64 } @divided_signed(i64 %n, i64 %d)
  %r = extractvalue { i64, i64 } %both, 1
  ret i64 %r
}
