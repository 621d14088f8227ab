; One thread that walks a list of commands, which `pool.ll` describes (it is for several). A command without a kernel is
; a jump by the number of commands in its task's first slot. If the second slot is not 0, `onert_jumps` decides it.

%Command = type { ptr, ptr, i64, i64,   i64, ptr, ptr, i64 }
%Jump = type { i64, ptr, ptr, i64, i64, ptr, ptr }
%Copied = type { ptr, ptr, i64 }

; Run the commands on the calling thread only.
define void @onert_run(ptr %commands, i64 %count) {
entry:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %done, label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %following ], [ %there, %taken ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  %fn = load ptr, ptr %c, align 8
  %taskp = getelementptr %Command, ptr %c, i32 0, i32 1
  %task = load ptr, ptr %taskp, align 8
  %none = icmp eq ptr %fn, null
  br i1 %none, label %jump, label %run
run:
  %tilesp = getelementptr %Command, ptr %c, i32 0, i32 2
  %tiles = load i64, ptr %tilesp, align 8
  call void %fn(ptr %task, i64 0, i64 %tiles, i64 0)
  br label %following
following:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %command
jump:
  %by = load i64, ptr %task, align 8
  %flagp = getelementptr %Jump, ptr %task, i32 0, i32 1
  %flag = load ptr, ptr %flagp, align 8
  %always = icmp eq ptr %flag, null
  br i1 %always, label %taken, label %ask
ask:
  %reportsp = getelementptr %Jump, ptr %task, i32 0, i32 2
  %reports = load ptr, ptr %reportsp, align 8
  %checksp = getelementptr %Jump, ptr %task, i32 0, i32 3
  %checks = load i64, ptr %checksp, align 8
  %mostp = getelementptr %Jump, ptr %task, i32 0, i32 4
  %most = load i64, ptr %mostp, align 8
  %reportp = getelementptr %Jump, ptr %task, i32 0, i32 5
  %report = load ptr, ptr %reportp, align 8
  %stopp = getelementptr %Jump, ptr %task, i32 0, i32 6
  %stop = load ptr, ptr %stopp, align 8
  %jumps = call i1 @onert_jumps(ptr %flag, ptr %reports, i64 %checks, i64 %most, ptr %report, ptr %stop)
  br i1 %jumps, label %taken, label %following
taken:
  %there = add i64 %i, %by
  %last = icmp eq i64 %there, %count
  br i1 %last, label %done, label %command
done:
  ret void
}

; Run the commands, and then copy bytes, one array of `copies` after the other. An array and its copy do not overlap.
define void @onert_run_and_copy(ptr %commands, i64 %count, ptr %copies, i64 %arrays) {
entry:
  call void @onert_run(ptr %commands, i64 %count)
  br label %array
array:
  %i = phi i64 [ 0, %entry ], [ %next, %copied ]
  %end = icmp eq i64 %i, %arrays
  br i1 %end, label %done, label %copy
copy:
  %top = getelementptr %Copied, ptr %copies, i64 %i
  %to = load ptr, ptr %top, align 8
  %fromp = getelementptr %Copied, ptr %top, i32 0, i32 1
  %from = load ptr, ptr %fromp, align 8
  %bytesp = getelementptr %Copied, ptr %top, i32 0, i32 2
  %bytes = load i64, ptr %bytesp, align 8
  %whole = and i64 %bytes, -64
  br label %lines
lines:
  %at = phi i64 [ 0, %copy ], [ %after, %line ]
  %lined = icmp eq i64 %at, %whole
  br i1 %lined, label %rest, label %line
line:
  %line_from = getelementptr i8, ptr %from, i64 %at
  %line_to = getelementptr i8, ptr %to, i64 %at
  %read = load <64 x i8>, ptr %line_from, align 1
  store <64 x i8> %read, ptr %line_to, align 1
  %after = add i64 %at, 64
  br label %lines
rest:
  %byte = phi i64 [ %whole, %lines ], [ %following, %single ]
  %ended = icmp eq i64 %byte, %bytes
  br i1 %ended, label %copied, label %single
single:
  %byte_from = getelementptr i8, ptr %from, i64 %byte
  %byte_to = getelementptr i8, ptr %to, i64 %byte
  %one = load i8, ptr %byte_from, align 1
  store i8 %one, ptr %byte_to, align 1
  %following = add i64 %byte, 1
  br label %rest
copied:
  %next = add i64 %i, 1
  br label %array
done:
  ret void
}

; `onert_run` as a kernel, whose task is a program and whose tiles are its commands.
define void @onert_program(ptr %commands, i64 %begin, i64 %count, i64 %thread) {
  call void @onert_run(ptr %commands, i64 %count)
  ret void
}

; Several commands of one kernel as one, whose task is their array; its number of pieces is their count. Tile t is tile
; t / n of command t % n, so that a thread computes the same rows of an image for all groups of its channels.
define void @onert_several(ptr %commands, i64 %begin, i64 %end, i64 %thread) {
entry:
  %countp = getelementptr %Command, ptr %commands, i32 0, i32 3
  %count = load i64, ptr %countp, align 8
  %none = icmp sge i64 %begin, %end
  br i1 %none, label %done, label %each
each:
  %t = phi i64 [ %begin, %entry ], [ %next, %each ]
  %number = urem i64 %t, %count
  %tile = udiv i64 %t, %count
  %stop = add i64 %tile, 1
  %c = getelementptr %Command, ptr %commands, i64 %number
  %fn = load ptr, ptr %c, align 8
  %taskp = getelementptr %Command, ptr %c, i32 0, i32 1
  %task = load ptr, ptr %taskp, align 8
  call void %fn(ptr %task, i64 %tile, i64 %stop, i64 %thread)
  %next = add i64 %t, 1
  %last = icmp eq i64 %next, %end
  br i1 %last, label %done, label %each
done:
  ret void
}
