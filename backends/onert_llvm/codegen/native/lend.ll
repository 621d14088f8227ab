; A waiting caller lends its processor to the worker it waits for; appended to `workers.ll`.
;
; If another program computes on a worker's processor, the system preempts the worker in the middle of a piece for a
; whole time slice: some milliseconds, in which the caller could only wait. So a caller that has waited for some
; microseconds checks whether a worker inside the run gets any processor time. One that gets none is moved to the
; caller's processor, and the caller sleeps: the worker finishes its piece there at once. Then it leaves the run, so
; that the caller has its processor back, moves away, and rejoins the run when another processor has time for it.
;
; If the caller's processor is used by another program too, that one may get it instead, and both threads wait. A caller
; that slept for a millisecond does not lend its processor again for 24 times as long as it slept.
;
; A worker that is ready but does not run is moved by binding it, and stays where it was moved when it may run anywhere
; again: so nothing stays bound for longer than the two calls.

declare i32 @pthread_getcpuclockid(i64, ptr)

; Nanoseconds that a thread has computed so far, or -1.
define internal i64 @spent(i64 %handle) {
entry:
  %clock = alloca i32, align 4
  %time = alloca %Time, align 8
  %unknown = call i32 @pthread_getcpuclockid(i64 %handle, ptr %clock)
  %known = icmp eq i32 %unknown, 0
  br i1 %known, label %ask, label %none
ask:
  %id = load i32, ptr %clock, align 4
  %failed = call i32 @clock_gettime(i32 %id, ptr %time)
  %told = icmp eq i32 %failed, 0
  br i1 %told, label %sum, label %none
sum:
  %seconds = load i64, ptr %time, align 8
  %restp = getelementptr %Time, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %restp, align 8
  %whole = mul i64 %seconds, 1000000000
  %all = add i64 %whole, %rest
  ret i64 %all
none:
  ret i64 -1
}

; The awaited worker inside the run: one in the middle of a piece, else any that is awake; 0 if there is none.
define internal i64 @awaited(ptr %pool) {
entry:
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 9
  %threads = load i64, ptr %threadsp, align 8
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  br label %each
each:
  %w = phi i64 [ 1, %entry ], [ %w2, %one ]
  %found = phi i64 [ 0, %entry ], [ %better, %one ]
  %most = phi i64 [ 0, %entry ], [ %more, %one ]
  %all = icmp sge i64 %w, %threads
  br i1 %all, label %done, label %one
one:
  %stagep = getelementptr %Worker, ptr %workers, i64 %w, i32 2
  %stage = load atomic i64, ptr %stagep monotonic, align 8
  %nearer = icmp ugt i64 %stage, %most
  %better = select i1 %nearer, i64 %w, i64 %found
  %more = select i1 %nearer, i64 %stage, i64 %most
  %w2 = add i64 %w, 1
  br label %each
done:
  ret i64 %found
}

; Called by a waiting caller at time `now`; returns whether it lent its processor and must sleep. A worker is checked
; twice, some time apart.
define internal i1 @lend(ptr %pool, ptr %wait, i64 %now) noinline {
entry:
  %sincep = getelementptr %Wait, ptr %wait, i32 0, i32 4
  %since = load i64, ptr %sincep, align 8
  %spentp = getelementptr %Wait, ptr %wait, i32 0, i32 5
  %whop = getelementptr %Wait, ptr %wait, i32 0, i32 6
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  %againp = getelementptr %Pool, ptr %pool, i32 0, i32 17
  %again = load i64, ptr %againp, align 8
  %paused = icmp slt i64 %now, %again
  br i1 %paused, label %no, label %may
may:
  %first = icmp eq i64 %since, 0
  br i1 %first, label %choose, label %later
later:
  %passed = sub i64 %now, %since
  %soon = icmp slt i64 %passed, 10000
  br i1 %soon, label %no, label %compare
compare:
  %who = load i64, ptr %whop, align 8
  %handlep = getelementptr %Worker, ptr %workers, i64 %who, i32 0
  %handle = load i64, ptr %handlep, align 8
  %before = load i64, ptr %spentp, align 8
  %after = call i64 @spent(i64 %handle)
  %computed = sub i64 %after, %before
  %part = lshr i64 %passed, 2
  %runs = icmp ugt i64 %computed, %part
  %stagep = getelementptr %Worker, ptr %workers, i64 %who, i32 2
  %stage = load atomic i64, ptr %stagep monotonic, align 8
  %left = icmp eq i64 %stage, 0
  %other = or i1 %runs, %left
  br i1 %other, label %choose, label %give
choose:
  %chosen = call i64 @awaited(ptr %pool)
  %none = icmp eq i64 %chosen, 0
  br i1 %none, label %nobody, label %note
nobody:
  store i64 0, ptr %sincep, align 8
  br label %no
note:
  %handlep2 = getelementptr %Worker, ptr %workers, i64 %chosen, i32 0
  %handle2 = load i64, ptr %handlep2, align 8
  %until_now = call i64 @spent(i64 %handle2)
  store i64 %now, ptr %sincep, align 8
  store i64 %until_now, ptr %spentp, align 8
  store i64 %chosen, ptr %whop, align 8
  br label %no
give:
  %here = call i32 @sched_getcpu()
  %known = icmp ult i32 %here, 1024
  br i1 %known, label %move, label %no
move:
  %cpu = zext i32 %here to i64
  %place = add i64 %cpu, 1
  %lentp = getelementptr %Worker, ptr %workers, i64 %who, i32 3
  store atomic i64 %place, ptr %lentp monotonic, align 8
  %moved = call i1 @move(i64 %handle, i64 %cpu, i1 true)
  br i1 %moved, label %given, label %refused
given:
  store i64 -1, ptr %sincep, align 8
  ret i1 true
refused:
  ; The system forbids the move, or the worker may not use this processor: do not try again for a while.
  store atomic i64 0, ptr %lentp monotonic, align 8
  %then = add i64 %now, 100000000
  store i64 %then, ptr %againp, align 8
  br label %no
no:
  ret i1 false
}

; A caller that lent its processor slept for `slept` nanoseconds, until `now`.
define internal void @judge(ptr %pool, i64 %slept, i64 %now) {
entry:
  %long = icmp sgt i64 %slept, 1000000
  br i1 %long, label %pause, label %done
pause:
  %times = mul i64 %slept, 24
  %then = add i64 %now, %times
  %againp = getelementptr %Pool, ptr %pool, i32 0, i32 17
  store i64 %then, ptr %againp, align 8
  br label %done
done:
  ret void
}

; Move a thread to a processor, or away from it, within the set that it may use; returns whether that was possible.
define internal i1 @move(i64 %handle, i64 %cpu, i1 %there) {
entry:
  %set = alloca %Set, align 8
  %fewer = alloca %Set, align 8
  %found = call i32 @pthread_getaffinity_np(i64 %handle, i64 128, ptr %set)
  %known = icmp eq i32 %found, 0
  br i1 %known, label %begin, label %no
begin:
  %number = lshr i64 %cpu, 6
  %at = and i64 %cpu, 63
  %bit = shl i64 1, %at
  br label %each
each:
  %i = phi i64 [ 0, %begin ], [ %next, %each ]
  %any = phi i64 [ 0, %begin ], [ %some, %each ]
  %wordp = getelementptr %Set, ptr %set, i32 0, i64 %i
  %word = load i64, ptr %wordp, align 8
  %of = icmp eq i64 %i, %number
  %mine = select i1 %of, i64 %bit, i64 0
  %others = xor i64 %mine, -1
  %only = and i64 %word, %mine
  %without = and i64 %word, %others
  %kept = select i1 %there, i64 %only, i64 %without
  %keptp = getelementptr %Set, ptr %fewer, i32 0, i64 %i
  store i64 %kept, ptr %keptp, align 8
  %some = or i64 %any, %kept
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, 16
  br i1 %end, label %look, label %each
look:
  %empty = icmp eq i64 %some, 0
  br i1 %empty, label %no, label %bind
bind:
  %failed = call i32 @pthread_setaffinity_np(i64 %handle, i64 128, ptr %fewer)
  %again = call i32 @pthread_setaffinity_np(i64 %handle, i64 128, ptr %set)
  %done = icmp eq i32 %failed, 0
  ret i1 %done
no:
  ret i1 false
}
