; Whether a conditional jump is taken; the only code that decides this. `JUMP` in `command/command.py` describes the
; arguments.

define i1 @onert_jumps(ptr %flag, ptr %reports, i64 %count, i64 %most, ptr %report, ptr %stop) nounwind {
entry:
  %counted = icmp ne ptr %report, null
  %roundsp = getelementptr i64, ptr %report, i32 1
  %byte = load i8, ptr %flag, align 1
  %unset = icmp eq i8 %byte, 0
  br i1 %unset, label %leave, label %set
set:
  %stops = icmp ne ptr %stop, null
  br i1 %stops, label %ask, label %check
ask:
  ; Another thread stores this word. An atomic load would need a library on processors of 32 bits.
  %word = load volatile i64, ptr %stop, align 8
  %stopped = icmp ne i64 %word, 0
  br i1 %stopped, label %leave, label %check
check:
  %i = phi i64 [ 0, %set ], [ 0, %ask ], [ %next, %test ]
  %all = icmp eq i64 %i, %count
  br i1 %all, label %kept, label %test
test:
  %brokenp = getelementptr [2 x i64], ptr %reports, i64 %i
  %broken = load i64, ptr %brokenp, align 8
  %is = icmp ne i64 %broken, 0
  %next = add i64 %i, 1
  br i1 %is, label %leave, label %check
kept:
  br i1 %counted, label %round, label %jump
round:
  %rounds = load i64, ptr %roundsp, align 8
  %over = icmp sge i64 %rounds, %most
  br i1 %over, label %refuse, label %one
one:
  %more = add i64 %rounds, 1
  store i64 %more, ptr %roundsp, align 8
  ret i1 true
jump:
  ret i1 true
refuse:
  store i64 1, ptr %report, align 8
  ret i1 false
leave:
  ; The count starts again the next time the loop is entered.
  br i1 %counted, label %reset, label %out
reset:
  store i64 0, ptr %roundsp, align 8
  ret i1 false
out:
  ret i1 false
}
