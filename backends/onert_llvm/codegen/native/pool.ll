; Native threads that walk a list of commands together; `run.ll` is for a single thread.
;
; A program is an array of commands. A kernel is `void kernel(ptr task, i64 begin, i64 end, i64 thread)` over a range of
; independent tiles, which is divided into pieces; the thread's number selects its scratch memory. All threads walk the
; same array in the same order, and each has a share of every command's pieces by its number; so a thread that computed
; some rows of an image computes the same rows of the next, which are in its cache. A thread that is done with its own
; share takes pieces of others.
;
; Before a command whose `sync` is set, a thread waits until all pieces of the previous commands are done. It waits for
; pieces, not for threads, so that a preempted thread holds up others only in the middle of a piece. Tiles are
; independent and each is computed by one thread, so the result is the same for any number of threads.
;
; Passing a cache line from one processor to another takes as long as some thousand products. So a share has a cache
; line of its own, which no other thread accesses before it is done with its own; and nothing is cleared between runs:
; the counts in a line are tagged with the number of their run, and those of another run count as 0. All commands point
; to the count of their program's runs.
;
; If `threads` is set, for all commands of a program or for none, a command belongs to some of the threads: the number
; of the first, plus 2**32 times how many they are. Then `sync` is a list of the commands that it waits for, and each
; thread walks only its own. So small commands run side by side, each on one thread, and large ones on all. A thread
; that has to wait runs what others have not begun, so no thread waits for one that sleeps.
;
; An idle worker spins for a while, because the next inference often follows closely, and then sleeps on a condition
; variable, so that an idle pool costs nothing. Workers come and go through a gate, which the caller shuts when all is
; done: one that comes too late finds it shut, and the caller returns when the last one inside has left.
;
; A system may wake a worker on the caller's processor, and leave it there for several inferences. So a sleeping worker
; is barred from that processor until it has woken.
;
; `pool_types.ll` is prepended to this file; `workers.ll` has the code that runs once or while a thread is idle.

; Defined by `workers.ll`, `adapt.ll` and `lend.ll`.
declare i64 @onert_pool_now()
declare void @onert_pool_rouse(ptr)
declare void @onert_pool_pass(ptr, ptr, i64)
declare void @onert_pool_wake(ptr)
declare void @onert_pool_held_up(ptr, i64)
declare void @onert_pool_calm(ptr)
declare void @onert_pool_timed(ptr, i64, i64, i64)

; Word `number` of the state of a program's runs (`adapt.ll`).
define i64 @onert_pool_word(ptr %state, i64 %number) alwaysinline {
  %place = getelementptr i64, ptr %state, i64 %number
  %value = load i64, ptr %place, align 8
  ret i64 %value
}

define void @onert_pool_set(ptr %state, i64 %number, i64 %value) alwaysinline {
  %place = getelementptr i64, ptr %state, i64 %number
  store i64 %value, ptr %place, align 8
  ret void
}

; The number of threads divided by 2**level, at least 1.
define i64 @onert_pool_fewer(i64 %threads, i64 %level) alwaysinline {
  %some = lshr i64 %threads, %level
  %none = icmp eq i64 %some, 0
  %least = select i1 %none, i64 1, i64 %some
  ret i64 %least
}

; Whether a thread was lent a processor, and must leave the run.
define internal i1 @is_lent(ptr %pool, i64 %me) alwaysinline {
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  %lentp = getelementptr %Worker, ptr %workers, i64 %me, i32 3
  %lent = load atomic i64, ptr %lentp monotonic, align 8
  %is = icmp ne i64 %lent, 0
  ret i1 %is
}

; What a worker is doing: 0 nothing in a run, or asleep there; 1 walking through one; 2 a piece. Not for the caller.
define void @onert_pool_stage(ptr %pool, i64 %me, i64 %stage) alwaysinline {
entry:
  %calls = icmp eq i64 %me, 0
  br i1 %calls, label %done, label %write
write:
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  %stagep = getelementptr %Worker, ptr %workers, i64 %me, i32 2
  store atomic i64 %stage, ptr %stagep monotonic, align 8
  br label %done
done:
  ret void
}

; A count of a share in this run.
define internal i64 @counted(ptr %place, i64 %run) alwaysinline {
  %both = load atomic i64, ptr %place acquire, align 8
  %of = lshr i64 %both, 16
  %this = icmp eq i64 %of, %run
  %low = and i64 %both, 65535
  %count = select i1 %this, i64 %low, i64 0
  ret i64 %count
}

; The first piece of a share; if the pieces cannot be divided evenly, earlier shares have one more.
define internal i64 @first(i64 %share, i64 %pieces, i64 %shares) alwaysinline {
  %product = mul i64 %share, %pieces
  %less = sub i64 %shares, 1
  %up = add i64 %product, %less
  %piece = udiv i64 %up, %shares
  ret i64 %piece
}

; Whether all pieces of a command are done.
define internal i1 @done(ptr %c, i64 %shares, i64 %run) {
entry:
  %piecesp = getelementptr %Command, ptr %c, i32 0, i32 3
  %pieces = load i64, ptr %piecesp, align 8
  %linesp = getelementptr %Command, ptr %c, i32 0, i32 5
  %lines = load ptr, ptr %linesp, align 8
  br label %share
share:
  %s = phi i64 [ 0, %entry ], [ %s2, %share ]
  %sum = phi i64 [ 0, %entry ], [ %sum2, %share ]
  %donep = getelementptr %Share, ptr %lines, i64 %s, i32 1
  %some = call i64 @counted(ptr %donep, i64 %run)
  %sum2 = add i64 %sum, %some
  %s2 = add i64 %s, 1
  %each = icmp eq i64 %s2, %shares
  br i1 %each, label %look, label %share
look:
  %all = icmp eq i64 %sum2, %pieces
  ret i1 %all
}

; Rouse waiting threads, after something was done that may end their wait. They announce that they wait before they
; check for the last time, and this checks for waiting threads after the work was done: so one of the two is noticed.
define void @onert_pool_tell(ptr %pool) alwaysinline {
entry:
  %waitingp = getelementptr %Pool, ptr %pool, i32 0, i32 12
  %waiting = load atomic i64, ptr %waitingp seq_cst, align 8
  %some = icmp ne i64 %waiting, 0
  br i1 %some, label %rouse, label %done
rouse:
  call void @onert_pool_rouse(ptr %pool)
  br label %done
done:
  ret void
}

; The wait is over, or starts again.
define void @onert_pool_forget(ptr %pool, ptr %wait) {
entry:
  %saidp = getelementptr %Wait, ptr %wait, i32 0, i32 2
  %said = load i64, ptr %saidp, align 8
  %counted = icmp ne i64 %said, 0
  br i1 %counted, label %leave, label %done
leave:
  %waitingp = getelementptr %Pool, ptr %pool, i32 0, i32 12
  %a = atomicrmw sub ptr %waitingp, i64 1 seq_cst
  br label %done
done:
  store %Wait zeroinitializer, ptr %wait, align 8
  ret void
}

; Wait until all pieces of the commands from `first` up to `last` are done. A worker checks now and then whether the
; command it waits for was begun, since the caller may have no processor.
define internal void @finished(ptr %pool, ptr %commands, i64 %first, i64 %last, i64 %me, i64 %shares, i64 %run) {
entry:
  %wait = alloca %Wait, align 8
  %none = icmp sge i64 %first, %last
  br i1 %none, label %over, label %begin
begin:
  store %Wait zeroinitializer, ptr %wait, align 8
  %works = icmp ne i64 %me, 0
  br label %command
command:
  %i = phi i64 [ %first, %begin ], [ %next, %advance ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  br label %look
look:
  %is = call i1 @done(ptr %c, i64 %shares, i64 %run)
  br i1 %is, label %advance, label %again
again:
  call void @onert_pool_pass(ptr %pool, ptr %wait, i64 %me)
  %tries = load i64, ptr %wait, align 8
  %low = and i64 %tries, 63
  %due = icmp eq i64 %low, 63
  %late = and i1 %due, %works
  br i1 %late, label %help, label %look
help:
  %lent = call i1 @take(ptr %pool, ptr %c, i64 %me, i64 %me, i64 %shares, i64 %run)
  br label %look
advance:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %last
  br i1 %end, label %leave, label %command
leave:
  call void @onert_pool_forget(ptr %pool, ptr %wait)
  br label %over
over:
  ret void
}

; Run pieces of a command as thread `me` until none is left: those of share `own`, then those of the other `shares`. A
; worker that was lent a processor meanwhile stops after a piece; returns whether that happened.
define internal i1 @take(ptr %pool, ptr %c, i64 %me, i64 %own, i64 %shares, i64 %run) {
entry:
  %tag = shl i64 %run, 16
  %fn = load ptr, ptr %c, align 8
  %taskp = getelementptr %Command, ptr %c, i32 0, i32 1
  %task = load ptr, ptr %taskp, align 8
  %tilesp = getelementptr %Command, ptr %c, i32 0, i32 2
  %tiles = load i64, ptr %tilesp, align 8
  %piecesp = getelementptr %Command, ptr %c, i32 0, i32 3
  %pieces = load i64, ptr %piecesp, align 8
  %linesp = getelementptr %Command, ptr %c, i32 0, i32 5
  %lines = load ptr, ptr %linesp, align 8
  br label %share
share:
  %s = phi i64 [ %own, %entry ], [ %following, %empty_share ]
  %s2 = add i64 %s, 1
  %from = call i64 @first(i64 %s, i64 %pieces, i64 %shares)
  %to = call i64 @first(i64 %s2, i64 %pieces, i64 %shares)
  %size = sub i64 %to, %from
  %takenp = getelementptr %Share, ptr %lines, i64 %s, i32 0
  br label %look
look:
  %making = phi i64 [ 0, %share ], [ %making, %try ], [ %more, %work ]
  %seen = load atomic i64, ptr %takenp monotonic, align 8
  %of = lshr i64 %seen, 16
  %this = icmp eq i64 %of, %run
  %low = and i64 %seen, 65535
  %taken = select i1 %this, i64 %low, i64 0
  %gone = icmp uge i64 %taken, %size
  br i1 %gone, label %empty, label %try
try:
  %one = add i64 %taken, 1
  %new = or i64 %tag, %one
  %swap = cmpxchg ptr %takenp, i64 %seen, i64 %new monotonic monotonic
  %mine = extractvalue { i64, i1 } %swap, 1
  br i1 %mine, label %work, label %look
work:
  %piece = add i64 %from, %taken
  %after = add i64 %piece, 1
  %before1 = mul i64 %piece, %tiles
  %before2 = mul i64 %after, %tiles
  %tile = udiv i64 %before1, %pieces
  %stop = udiv i64 %before2, %pieces
  call void @onert_pool_stage(ptr %pool, i64 %me, i64 2)
  call void %fn(ptr %task, i64 %tile, i64 %stop, i64 %me)
  %more = add i64 %making, 1
  %lent = call i1 @is_lent(ptr %pool, i64 %me)
  br i1 %lent, label %write, label %look
empty:
  ; Others may wait for what this thread has done, so it reports that before it turns to their shares.
  %unsaid = icmp ne i64 %making, 0
  br i1 %unsaid, label %say, label %empty_share
say:
  call void @report(ptr %pool, ptr %lines, i64 %me, i64 %making, i64 %run)
  br label %empty_share
empty_share:
  %last = icmp eq i64 %s2, %shares
  %following = select i1 %last, i64 0, i64 %s2
  %round = icmp eq i64 %following, %own
  br i1 %round, label %leave, label %share
write:
  call void @report(ptr %pool, ptr %lines, i64 %me, i64 %more, i64 %run)
  br label %leave
leave:
  %left = phi i1 [ false, %empty_share ], [ true, %write ]
  ret i1 %left
}

; Report that thread `me` has done `did` more pieces of the command with these lines. It may have reported some before,
; if it found pieces of others, helps, or was away.
define internal void @report(ptr %pool, ptr %lines, i64 %me, i64 %did, i64 %run) alwaysinline {
  %tag = shl i64 %run, 16
  %donep = getelementptr %Share, ptr %lines, i64 %me, i32 1
  %earlier = call i64 @counted(ptr %donep, i64 %run)
  %sum = add i64 %earlier, %did
  %told = or i64 %tag, %sum
  store atomic i64 %told, ptr %donep seq_cst, align 8
  call void @onert_pool_stage(ptr %pool, i64 %me, i64 1)
  call void @onert_pool_tell(ptr %pool)
  ret void
}

; Walk the commands as thread `me`.
;
; A single piece between two synchronisations is left to the caller: a worker neither checks whether it is still there,
; nor waits for it before it comes to a command with more.
define void @onert_pool_walk(ptr %pool, ptr %commands, i64 %count, i64 %me, i64 %shares, i64 %run) {
entry:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %done, label %look
look:
  %works = icmp ne i64 %me, 0
  %lanes = call i1 @has_lanes(ptr %commands)
  br i1 %lanes, label %lane, label %command
lane:
  call void @walk_lane(ptr %pool, ptr %commands, i64 %count, i64 %me, i64 %shares, i64 %run)
  ret void
command:
  ; Commands before `open` are done, those before `due` must be.
  %i = phi i64 [ 0, %look ], [ %next, %on ]
  %open = phi i64 [ 0, %look ], [ %opened, %on ]
  %due = phi i64 [ 0, %look ], [ %dues, %on ]
  %meets = phi i1 [ true, %look ], [ %meets_next, %on ]
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  %dues = select i1 %meets, i64 %i, i64 %due
  %c = getelementptr %Command, ptr %commands, i64 %i
  br i1 %end, label %ask, label %ahead
ahead:
  %syncp = getelementptr %Command, ptr %c, i64 1, i32 4
  %sync = load i64, ptr %syncp, align 8
  %followed = icmp ne i64 %sync, 0
  br label %ask
ask:
  %meets_next = phi i1 [ true, %command ], [ %followed, %ahead ]
  %piecesp = getelementptr %Command, ptr %c, i32 0, i32 3
  %pieces = load i64, ptr %piecesp, align 8
  %single = icmp eq i64 %pieces, 1
  %between = and i1 %meets, %meets_next
  %small = and i1 %single, %between
  %callers = and i1 %small, %works
  br i1 %callers, label %on, label %before
before:
  call void @finished(ptr %pool, ptr %commands, i64 %open, i64 %dues, i64 %me, i64 %shares, i64 %run)
  %lent = call i1 @take(ptr %pool, ptr %c, i64 %me, i64 %me, i64 %shares, i64 %run)
  br i1 %lent, label %done, label %on
on:
  %opened = phi i64 [ %open, %ask ], [ %dues, %before ]
  br i1 %end, label %done, label %command
done:
  ret void
}

; Whether commands belong to certain threads.
define internal i1 @has_lanes(ptr %commands) alwaysinline {
  %homep = getelementptr %Command, ptr %commands, i32 0, i32 7
  %home = load i64, ptr %homep, align 8
  %lanes = icmp ne i64 %home, 0
  ret i1 %lanes
}

; Walk the commands that this thread belongs to, each when those that it waits for are done. At the end help the others.
define internal void @walk_lane(ptr %pool, ptr %commands, i64 %count, i64 %me, i64 %shares, i64 %run) {
entry:
  %waited = alloca %Wait, align 8
  br label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %late = phi i1 [ false, %entry ], [ %later, %advance ]
  store %Wait zeroinitializer, ptr %waited, align 8
  %c = getelementptr %Command, ptr %commands, i64 %i
  %homep = getelementptr %Command, ptr %c, i32 0, i32 7
  %home = load i64, ptr %homep, align 8
  %start = select i1 %late, i64 31, i64 0
  %first = and i64 %home, 4294967295
  %threads = lshr i64 %home, 32
  %own = sub i64 %me, %first
  %mine = icmp ult i64 %own, %threads
  br i1 %mine, label %look, label %advance
look:
  %tries = phi i64 [ %start, %command ], [ %again, %wait ]
  %behind = phi i1 [ %late, %command ], [ %found, %wait ]
  %go = call i1 @ready(ptr %commands, i64 %i, i64 %shares, i64 %run)
  br i1 %go, label %begin, label %wait
wait:
  ; Once others were found to be behind, they are helped at once from then on.
  %tried = add i64 %tries, 1
  %helped = call i1 @bide(ptr %pool, ptr %waited, ptr %commands, i64 %i, i64 %me, i64 %shares, i64 %run, i64 %tried)
  %again = select i1 %helped, i64 31, i64 %tried
  %found = or i1 %behind, %helped
  %lent = call i1 @is_lent(ptr %pool, i64 %me)
  br i1 %lent, label %leave, label %look
leave:
  call void @onert_pool_forget(ptr %pool, ptr %waited)
  ret void
begin:
  call void @onert_pool_forget(ptr %pool, ptr %waited)
  %lent2 = call i1 @take(ptr %pool, ptr %c, i64 %me, i64 %own, i64 %threads, i64 %run)
  br i1 %lent2, label %leave, label %advance
advance:
  %later = phi i1 [ %late, %command ], [ %behind, %begin ]
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %command
done:
  %last = call i1 @help(ptr %pool, ptr %commands, i64 %count, i64 %me, i64 %shares, i64 %run)
  ret void
}

; Whether the commands that command `i` waits for are done: they are listed by how far before it they are. Those before
; the program's first belong to an earlier run.
define internal i1 @ready(ptr %commands, i64 %i, i64 %shares, i64 %run) {
entry:
  %listp = getelementptr %Command, ptr %commands, i64 %i, i32 4
  %list = load ptr, ptr %listp, align 8
  %none = icmp eq ptr %list, null
  br i1 %none, label %yes, label %begin
begin:
  %count = load i64, ptr %list, align 8
  br label %each
each:
  %k = phi i64 [ 1, %begin ], [ %k2, %following ]
  %over = icmp ugt i64 %k, %count
  br i1 %over, label %yes, label %one
one:
  %farp = getelementptr i64, ptr %list, i64 %k
  %far = load i64, ptr %farp, align 8
  %j = sub i64 %i, %far
  %outside = icmp slt i64 %j, 0
  br i1 %outside, label %following, label %look
look:
  %c = getelementptr %Command, ptr %commands, i64 %j
  %is = call i1 @done(ptr %c, i64 %shares, i64 %run)
  br i1 %is, label %following, label %no
following:
  %k2 = add i64 %k, 1
  br label %each
yes:
  ret i1 true
no:
  ret i1 false
}

; Pass the time of one try while something is not done. At every 32nd try, and before sleeping, run what others have not
; begun of the commands up to `last`, as a thread may sleep or have no processor; returns whether there was any.
define internal i1 @bide(ptr %pool, ptr %wait, ptr %commands, i64 %last, i64 %me, i64 %shares, i64 %run, i64 %tries) {
entry:
  %low = and i64 %tries, 31
  %tired = icmp eq i64 %low, 0
  %saidp = getelementptr %Wait, ptr %wait, i32 0, i32 2
  %said = load i64, ptr %saidp, align 8
  %asleep = icmp ne i64 %said, 0
  %look = or i1 %tired, %asleep
  br i1 %look, label %help, label %spin
help:
  %helped = call i1 @help(ptr %pool, ptr %commands, i64 %last, i64 %me, i64 %shares, i64 %run)
  br i1 %helped, label %yes, label %spin
yes:
  call void @onert_pool_forget(ptr %pool, ptr %wait)
  ret i1 true
spin:
  call void @onert_pool_pass(ptr %pool, ptr %wait, i64 %me)
  ret i1 false
}

; Run the rest of any thread's commands up to `last` that wait for nothing any more; returns whether there was any.
define internal i1 @help(ptr %pool, ptr %commands, i64 %last, i64 %me, i64 %shares, i64 %run) {
entry:
  %none = icmp eq i64 %last, 0
  br i1 %none, label %done, label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %helped = phi i1 [ false, %entry ], [ %helping, %advance ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  %piecesp = getelementptr %Command, ptr %c, i32 0, i32 3
  %pieces = load i64, ptr %piecesp, align 8
  %linesp = getelementptr %Command, ptr %c, i32 0, i32 5
  %lines = load ptr, ptr %linesp, align 8
  %homep = getelementptr %Command, ptr %c, i32 0, i32 7
  %home = load i64, ptr %homep, align 8
  %threads = lshr i64 %home, 32
  br label %share
share:
  %s = phi i64 [ 0, %command ], [ %s2, %share ]
  %sum = phi i64 [ 0, %command ], [ %sum2, %share ]
  %takenp = getelementptr %Share, ptr %lines, i64 %s, i32 0
  %some = call i64 @counted(ptr %takenp, i64 %run)
  %sum2 = add i64 %sum, %some
  %s2 = add i64 %s, 1
  %each = icmp eq i64 %s2, %threads
  br i1 %each, label %look, label %share
look:
  %left = icmp ult i64 %sum2, %pieces
  br i1 %left, label %ask, label %advance
ask:
  %go = call i1 @ready(ptr %commands, i64 %i, i64 %shares, i64 %run)
  br i1 %go, label %begin, label %advance
begin:
  %lent = call i1 @take(ptr %pool, ptr %c, i64 %me, i64 0, i64 %threads, i64 %run)
  br i1 %lent, label %done, label %advance
advance:
  %helping = phi i1 [ %helped, %look ], [ %helped, %ask ], [ true, %begin ]
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %last
  br i1 %end, label %done, label %command
done:
  %found = phi i1 [ false, %entry ], [ true, %begin ], [ %helping, %advance ]
  ret i1 %found
}

; Wait until all commands are done, helping meanwhile.
define internal void @settled(ptr %pool, ptr %commands, i64 %count, i64 %shares, i64 %run) {
entry:
  %wait = alloca %Wait, align 8
  store %Wait zeroinitializer, ptr %wait, align 8
  br label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  br label %look
look:
  %tries = phi i64 [ 0, %command ], [ %tried, %bide ]
  %is = call i1 @done(ptr %c, i64 %shares, i64 %run)
  br i1 %is, label %advance, label %bide
bide:
  %tried = add i64 %tries, 1
  %helped = call i1 @bide(ptr %pool, ptr %wait, ptr %commands, i64 %count, i64 0, i64 %shares, i64 %run, i64 %tried)
  br label %look
advance:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %over, label %command
over:
  call void @onert_pool_forget(ptr %pool, ptr %wait)
  ret void
}

; Run the commands, at least one, on the calling thread and some of the pool's workers, `threads` in total.
define internal void @share(ptr %pool, ptr %commands, i64 %count, i64 %threads) {
entry:
  %wait = alloca %Wait, align 8
  %sleptp = getelementptr %Pool, ptr %pool, i32 0, i32 15
  %slept = load i64, ptr %sleptp, align 8
  %limitp = getelementptr %Pool, ptr %pool, i32 0, i32 7
  store atomic i64 %threads, ptr %limitp monotonic, align 8
  %runsp = getelementptr %Command, ptr %commands, i32 0, i32 6
  %runs = load ptr, ptr %runsp, align 8
  %before = load i64, ptr %runs, align 8
  %run = add i64 %before, 1
  store i64 %run, ptr %runs, align 8
  store ptr %commands, ptr %pool, align 8
  %countp = getelementptr %Pool, ptr %pool, i32 0, i32 1
  store i64 %count, ptr %countp, align 8
  %runp = getelementptr %Pool, ptr %pool, i32 0, i32 2
  store i64 %run, ptr %runp, align 8
  %sharesp = getelementptr %Pool, ptr %pool, i32 0, i32 3
  %shares = load i64, ptr %sharesp, align 8
  %gate = getelementptr %Pool, ptr %pool, i32 0, i32 5
  store atomic i64 4294967296, ptr %gate release, align 8
  call void @onert_pool_wake(ptr %pool)
  call void @onert_pool_walk(ptr %pool, ptr %commands, i64 %count, i64 0, i64 %shares, i64 %run)
  %lanes = call i1 @has_lanes(ptr %commands)
  ; The caller has passed all commands, so all pieces are taken; threads that run one stay inside the gate until then.
  br i1 %lanes, label %settle, label %shut
settle:
  call void @settled(ptr %pool, ptr %commands, i64 %count, i64 %shares, i64 %run)
  br label %shut
shut:
  %closed = atomicrmw sub ptr %gate, i64 4294967296 acq_rel
  store %Wait zeroinitializer, ptr %wait, align 8
  br label %join
join:
  %left = load atomic i64, ptr %gate seq_cst, align 8
  %all = icmp eq i64 %left, 0
  br i1 %all, label %joined, label %again
again:
  call void @onert_pool_pass(ptr %pool, ptr %wait, i64 0)
  br label %join
joined:
  call void @onert_pool_forget(ptr %pool, ptr %wait)
  %spinp = getelementptr %Pool, ptr %pool, i32 0, i32 14
  %spin = load atomic i64, ptr %spinp monotonic, align 8
  %mostp = getelementptr %Pool, ptr %pool, i32 0, i32 16
  %half = load i64, ptr %mostp, align 8
  %most = shl i64 %half, 1
  %short = icmp slt i64 %spin, %most
  br i1 %short, label %look, label %done
look:
  %slept_now = load i64, ptr %sleptp, align 8
  %awake = icmp eq i64 %slept_now, %slept
  br i1 %awake, label %longer, label %done
longer:
  %part = lshr i64 %spin, 5
  %more = add i64 %spin, %part
  store atomic i64 %more, ptr %spinp monotonic, align 8
  br label %done
done:
  ret void
}

; Run the commands on the calling thread only.
define internal void @alone(ptr %commands, i64 %count) {
entry:
  br label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %command ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  %fn = load ptr, ptr %c, align 8
  %taskp = getelementptr %Command, ptr %c, i32 0, i32 1
  %task = load ptr, ptr %taskp, align 8
  %tilesp = getelementptr %Command, ptr %c, i32 0, i32 2
  %tiles = load i64, ptr %tilesp, align 8
  call void %fn(ptr %task, i64 0, i64 %tiles, i64 0)
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %command
done:
  ret void
}

; A run from Python, where each argument costs time: the commands, their count, and the state.
define void @onert_pool_call(ptr %pool, ptr %call) {
  %commands = load ptr, ptr %call, align 8
  %countp = getelementptr i64, ptr %call, i64 1
  %count = load i64, ptr %countp, align 8
  %statep = getelementptr i64, ptr %call, i64 2
  %state = load ptr, ptr %statep, align 8
  call void @onert_pool_run(ptr %pool, ptr %commands, i64 %count, ptr %state)
  ret void
}

; Run the commands on the calling thread and the pool's workers, or some of them. One caller at a time. `state` is
; initially zero and belongs to the program; null is for runs that always use all threads.
define void @onert_pool_run(ptr %pool, ptr %commands, i64 %count, ptr %state) {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %begin
begin:
  %sleptp = getelementptr %Pool, ptr %pool, i32 0, i32 15
  %before = load i64, ptr %sleptp, align 8
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 9
  %threads = load i64, ptr %threadsp, align 8
  %stateless = icmp eq ptr %state, null
  br i1 %stateless, label %whatever, label %look
whatever:
  call void @share(ptr %pool, ptr %commands, i64 %count, i64 %threads)
  ret void
look:
  %phase = call i64 @onert_pool_word(ptr %state, i64 0)
  %calm = icmp eq i64 %phase, 0
  br i1 %calm, label %all, label %timed
all:
  call void @share(ptr %pool, ptr %commands, i64 %count, i64 %threads)
  %after = load i64, ptr %sleptp, align 8
  %slept = sub i64 %after, %before
  %held = icmp ne i64 %slept, 0
  br i1 %held, label %note, label %unheld
unheld:
  %before_runs = call i64 @onert_pool_word(ptr %state, i64 13)
  %runs = add i64 %before_runs, 1
  call void @onert_pool_set(ptr %state, i64 13, i64 %runs)
  %low = and i64 %runs, 63
  %some_runs = icmp eq i64 %low, 0
  br i1 %some_runs, label %calm_for_long, label %done
calm_for_long:
  call void @onert_pool_calm(ptr %state)
  ret void
note:
  call void @onert_pool_held_up(ptr %state, i64 %slept)
  ret void
timed:
  %trying = icmp eq i64 %phase, 2
  %which = select i1 %trying, i64 2, i64 1
  %level = call i64 @onert_pool_word(ptr %state, i64 %which)
  %some = call i64 @onert_pool_fewer(i64 %threads, i64 %level)
  %single = icmp eq i64 %some, 1
  %start = call i64 @onert_pool_now()
  br i1 %single, label %one, label %several
one:
  call void @alone(ptr %commands, i64 %count)
  br label %count_it
several:
  call void @share(ptr %pool, ptr %commands, i64 %count, i64 %some)
  br label %count_it
count_it:
  %stop = call i64 @onert_pool_now()
  %time = sub i64 %stop, %start
  %after2 = load i64, ptr %sleptp, align 8
  %slept2 = sub i64 %after2, %before
  call void @onert_pool_timed(ptr %state, i64 %threads, i64 %time, i64 %slept2)
  br label %done
done:
  ret void
}
