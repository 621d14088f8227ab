; One thread that walks a list of commands; `pool.ll` says what these are, and is for several.

%Command = type { ptr, ptr, i64, i64,   i64, ptr, ptr, i64 }

; Run the commands on the calling thread alone.
define void @onert_run(ptr %commands, i64 %count) {
entry:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %done, label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %command ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  %fn = load ptr, ptr %c, align 8
  %taskp = getelementptr %Command, ptr %c, i32 0, i32 1
  %task = load ptr, ptr %taskp, align 8
  %tilesp = getelementptr %Command, ptr %c, i32 0, i32 2
  %tiles = load i64, ptr %tilesp, align 8
  call void %fn(ptr %task, i64 0, i64 %tiles)
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %command
done:
  ret void
}
