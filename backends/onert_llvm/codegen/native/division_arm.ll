
; The quotients alone, which are returned as quotients with remainders.

define { i32, i32 } @__aeabi_uidiv(i32 %n, i32 %d) nounwind {
  %both = call { i32, i32 } @__aeabi_uidivmod(i32 %n, i32 %d)
  ret { i32, i32 } %both
}

define { i32, i32 } @__aeabi_idiv(i32 %n, i32 %d) nounwind {
  %both = call { i32, i32 } @__aeabi_idivmod(i32 %n, i32 %d)
  ret { i32, i32 } %both
}
