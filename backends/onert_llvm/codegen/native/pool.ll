; Native threads that walk a list of commands together; `run.ll` is for one alone.
;
; A program is an array of commands. A kernel is `void kernel(ptr task, i64 begin, i64 end)` over a range of independent
; tiles, which are cut into pieces. All threads walk the same array in the same order, and each has a share of every
; command's pieces, that of its number; so one that computed some rows of a picture computes the same rows of the next,
; which are in its cache. Who is done with its own share takes pieces of the others'.
; Before a command whose `sync` is set a thread waits until all pieces of the commands before it are done: for pieces,
; not for threads, so that one that the system does not run holds up nobody unless it is in the middle of a piece. Tiles
; are independent and each is computed by one thread, so the result is the same for any number of threads.
;
; What one processor writes and another reads takes as long as some thousand products. So a share has a cache line of its
; own, for which no other thread asks before it is done with its own; and nothing is cleared between runs: the counts in
; a line have the number of their run beside them, and those of another run are 0. All commands of a program point to the
; count of its runs.
;
; Where `threads` is set, for all commands of a program or for none, a command belongs to some of the threads: the number
; of the first, and 2**32 times how many they are. Then `sync` is a list of the commands that it waits for, and each
; thread goes through its own. So small commands are done side by side, each by one thread, and large ones by all. A
; thread that has to wait does what others have not begun, so nobody waits for a thread that sleeps.
;
; A worker that has nothing to do spins for a while, because the next inference often follows closely, then sleeps on a
; condition variable, so that an idle pool costs nothing. Workers come and go through a gate, which the caller shuts when
; all is done: one that comes too late finds it shut, and the caller leaves when the last one inside has left.
;
; A system may wake a worker on the caller's processor, and leave it there for several inferences. So one that sleeps is
; barred from it until it has woken.
;
; `@PAUSE@` is replaced by the target's spin hint.

;                fn   task tiles pieces sync shares runs threads
%Command = type { ptr, ptr, i64, i64,   i64, ptr, ptr, i64 }

; The pieces taken of a share, by whomever, and those that its thread has done, of any share: 16 bits below the number of
; the run. Each share has a line.
%Share = type { i64, i64, [6 x i64] }

; One line, which the caller writes and workers read when a run begins: 0 commands, 1 count, 2 number of the run, 3 shares
; of a command, 4 generation, 5 the gate, 6 stop, 7 threads of this run. Then 8 sleepers, 9 threads, 10 threads that have a
; number, 11 workers, 12 threads that wait for others within a run, 13 how often these were roused, 14 nanoseconds that such
; a thread spins, 15 nanoseconds that the caller has slept within runs; 16 the most nanoseconds that a
; worker without a run spins, and half of what one spins within; 17 when the caller may lend its processor again; 19 mutex,
; 20 condition of workers without a run, 21 of who waits within one. The gate counts the workers inside, plus 2**32 while it is
; open.
%Pool = type { ptr, i64, i64, i64, i64, i64, i64, i64,
               i64, i64, i64, ptr, i64, i64, i64, i64,
               i64, i64, [6 x i64],
               [16 x i64], [16 x i64], [16 x i64] }

; How a thread waits for others: 0 tries, 1 when it stops to spin (0: not known yet), 2 whether it has said that it is about
; to sleep, 3 how often waiting threads were roused before that; of a caller, 4 when it last looked at a worker (0: not
; yet, -1: it lent its processor), 5 how long that one had computed by then, 6 its number.
%Wait = type { i64, i64, i64, i64, i64, i64, i64 }

%Time = type { i64, i64 }

; A thread's line, the caller's first. 0 handle; 1 a worker's state, which the mutex guards: 0 while it is awake, -1 while it
; sleeps, 1 and more where it is barred from the processor of that number less 1; 2 what it is doing (see `lend.ll`), 3 the
; number of the processor that it was lent plus 1, or 0.
%Worker = type { i64, i64, i64, i64, [4 x i64] }

; A set of processors, as the C library has it.
%Set = type [16 x i64]

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @clock_gettime(i32, ptr)
declare i32 @sched_getcpu()
declare i32 @pthread_getaffinity_np(i64, i64, ptr)
declare i32 @pthread_setaffinity_np(i64, i64, ptr)
declare i64 @pthread_self()

; Bytes of a pool; the caller allocates it, zeroed and aligned to 64.
define i64 @onert_pool_size() {
  %end = getelementptr %Pool, ptr null, i64 1
  %size = ptrtoint ptr %end to i64
  ret i64 %size
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

; The first piece of a share: the pieces, cut so that earlier shares have one more where they cannot be alike.
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

; Nanoseconds of a clock that only goes forward.
define internal i64 @now() {
  %time = alloca %Time, align 8
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %restp = getelementptr %Time, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %restp, align 8
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}

; Rouse threads that wait, after something was done for which they may. They say that they wait before they look for the
; last time, and this looks whether somebody waits after it was done: so one of the two is seen.
define internal void @tell(ptr %pool) alwaysinline {
entry:
  %waitingp = getelementptr %Pool, ptr %pool, i32 0, i32 12
  %waiting = load atomic i64, ptr %waitingp seq_cst, align 8
  %some = icmp ne i64 %waiting, 0
  br i1 %some, label %rouse, label %done
rouse:
  call void @rouse(ptr %pool)
  br label %done
done:
  ret void
}

define internal void @rouse(ptr %pool) noinline {
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 19
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 21
  %rousedp = getelementptr %Pool, ptr %pool, i32 0, i32 13
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %roused = load atomic i64, ptr %rousedp monotonic, align 8
  %more = add i64 %roused, 1
  store atomic i64 %more, ptr %rousedp release, align 8
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  ret void
}

; Pass the time of one try. A thread that is awaited may have no processor, because others use it: so who has spun for long
; enough says that he waits, looks once more, and sleeps until something is done. A thread that sleeps gets a processor soon
; when it is roused; one that yields it, or spins for as long as it is let, would have to wait for a turn of the others.
define internal void @pass(ptr %pool, ptr %wait, i64 %me) {
entry:
  %saidp = getelementptr %Wait, ptr %wait, i32 0, i32 2
  %said = load i64, ptr %saidp, align 8
  %ready = icmp ne i64 %said, 0
  br i1 %ready, label %sleep, label %count
count:
  %tries = load i64, ptr %wait, align 8
  %tried = add i64 %tries, 1
  store i64 %tried, ptr %wait, align 8
  %low = and i64 %tried, 63
  %due = icmp eq i64 %low, 0
  br i1 %due, label %clock, label %spin
spin:
  @PAUSE@
  ret void
clock:
  %now = call i64 @now()
  %untilp = getelementptr %Wait, ptr %wait, i32 0, i32 1
  %until = load i64, ptr %untilp, align 8
  %known = icmp ne i64 %until, 0
  br i1 %known, label %compare, label %set
set:
  %spinp = getelementptr %Pool, ptr %pool, i32 0, i32 14
  %spin_for = load atomic i64, ptr %spinp monotonic, align 8
  %end = add i64 %now, %spin_for
  store i64 %end, ptr %untilp, align 8
  ret void
compare:
  %over = icmp sgt i64 %now, %until
  br i1 %over, label %say, label %ask
ask:
  %calls = icmp eq i64 %me, 0
  br i1 %calls, label %look, label %on
look:
  %lent = call i1 @lend(ptr %pool, ptr %wait, i64 %now)
  br i1 %lent, label %say, label %on
on:
  ret void
say:
  %waitingp = getelementptr %Pool, ptr %pool, i32 0, i32 12
  %a = atomicrmw add ptr %waitingp, i64 1 seq_cst
  %rousedp = getelementptr %Pool, ptr %pool, i32 0, i32 13
  %roused = load atomic i64, ptr %rousedp seq_cst, align 8
  %seenp = getelementptr %Wait, ptr %wait, i32 0, i32 3
  store i64 %roused, ptr %seenp, align 8
  store i64 1, ptr %saidp, align 8
  ret void
sleep:
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 19
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 21
  %seenp2 = getelementptr %Wait, ptr %wait, i32 0, i32 3
  %seen = load i64, ptr %seenp2, align 8
  %rousedp2 = getelementptr %Pool, ptr %pool, i32 0, i32 13
  %start = call i64 @now()
  call void @stage(ptr %pool, i64 %me, i64 0)
  %b = call i32 @pthread_mutex_lock(ptr %mutex)
  br label %asleep
asleep:
  %roused2 = load atomic i64, ptr %rousedp2 monotonic, align 8
  %new = icmp ne i64 %roused2, %seen
  br i1 %new, label %awake, label %doze
doze:
  %c = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %asleep
awake:
  %d = call i32 @pthread_mutex_unlock(ptr %mutex)
  call void @stage(ptr %pool, i64 %me, i64 1)
  %sincep = getelementptr %Wait, ptr %wait, i32 0, i32 4
  %since = load i64, ptr %sincep, align 8
  call void @forget(ptr %pool, ptr %wait)
  ; Where one had to sleep, others soon have to: they spin for less until runs pass without.
  %shortp = getelementptr %Pool, ptr %pool, i32 0, i32 14
  store atomic i64 50000, ptr %shortp monotonic, align 8
  %caller = icmp eq i64 %me, 0
  br i1 %caller, label %add, label %leave
add:
  %stop = call i64 @now()
  %time = sub i64 %stop, %start
  %sleptp = getelementptr %Pool, ptr %pool, i32 0, i32 15
  %slept = load i64, ptr %sleptp, align 8
  %sum = add i64 %slept, %time
  store i64 %sum, ptr %sleptp, align 8
  %lending = icmp eq i64 %since, -1
  br i1 %lending, label %judge, label %leave
judge:
  call void @judge(ptr %pool, i64 %time, i64 %stop)
  br label %leave
leave:
  ret void
}

; The wait is over, or begins anew.
define internal void @forget(ptr %pool, ptr %wait) {
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

; Wait until all pieces of the commands from `first` up to `last` are done. A worker looks now and then whether the one that
; it waits for was begun: the caller may have no processor.
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
  call void @pass(ptr %pool, ptr %wait, i64 %me)
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
  call void @forget(ptr %pool, ptr %wait)
  br label %over
over:
  ret void
}

; Do pieces of a command as the thread of a number until none is left: those of share `own`, then those of the others of
; so many. A worker that was lent a processor meanwhile ends after a piece; whether that was so.
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
  call void @stage(ptr %pool, i64 %me, i64 2)
  call void %fn(ptr %task, i64 %tile, i64 %stop)
  %more = add i64 %making, 1
  %lent = call i1 @is_lent(ptr %pool, i64 %me)
  br i1 %lent, label %write, label %look
empty:
  ; What a thread has done others may wait for: it says so before it looks at their shares.
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

; Say that the thread of a number has done so many pieces more of the command with these lines: one that found pieces of
; others, helps, or was away has said so of some before.
define internal void @report(ptr %pool, ptr %lines, i64 %me, i64 %did, i64 %run) alwaysinline {
  %tag = shl i64 %run, 16
  %donep = getelementptr %Share, ptr %lines, i64 %me, i32 1
  %earlier = call i64 @counted(ptr %donep, i64 %run)
  %sum = add i64 %earlier, %did
  %told = or i64 %tag, %sum
  store atomic i64 %told, ptr %donep seq_cst, align 8
  call void @stage(ptr %pool, i64 %me, i64 1)
  call void @tell(ptr %pool)
  ret void
}

; Walk the commands as the thread of a number.
;
; A single piece between two meetings is the caller's: a worker neither looks whether it is there still, nor waits for it
; before it comes to a command with more.
define internal void @walk(ptr %pool, ptr %commands, i64 %count, i64 %me, i64 %shares, i64 %run) {
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
  ; Commands before `open` are done, those before `due` have to be.
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

; Whether commands have threads of their own.
define internal i1 @has_lanes(ptr %commands) alwaysinline {
  %homep = getelementptr %Command, ptr %commands, i32 0, i32 7
  %home = load i64, ptr %homep, align 8
  %lanes = icmp ne i64 %home, 0
  ret i1 %lanes
}

; Walk the commands of which this thread is one: each when those are done that it waits for. At the end help the others.
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
  ; Where others were once found behind they are helped at once from then on.
  %tried = add i64 %tries, 1
  %helped = call i1 @bide(ptr %pool, ptr %waited, ptr %commands, i64 %i, i64 %me, i64 %shares, i64 %run, i64 %tried)
  %again = select i1 %helped, i64 31, i64 %tried
  %found = or i1 %behind, %helped
  %lent = call i1 @is_lent(ptr %pool, i64 %me)
  br i1 %lent, label %leave, label %look
leave:
  call void @forget(ptr %pool, ptr %waited)
  ret void
begin:
  call void @forget(ptr %pool, ptr %waited)
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

; Whether the commands are done that one waits for: a list of how far before it they are. Those before the first of the
; program belong to an earlier run.
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

; Pass the time of one try while something is not done. At every 32nd, and before it sleeps, do what others have not begun
; of the commands up to `last`, for a thread may sleep or have no processor; whether there was something.
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
  call void @forget(ptr %pool, ptr %wait)
  ret i1 true
spin:
  call void @pass(ptr %pool, ptr %wait, i64 %me)
  ret i1 false
}

; Do what is left of the commands up to `last` that wait for nothing any more, whosever they are; whether there was one.
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

; Wait until all commands are done, helping.
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
  call void @forget(ptr %pool, ptr %wait)
  ret void
}

; Run the commands, of which there are some, on the calling thread and some of the pool's workers, `threads` in all.
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
  call void @wake(ptr %pool)
  call void @walk(ptr %pool, ptr %commands, i64 %count, i64 0, i64 %shares, i64 %run)
  %lanes = call i1 @has_lanes(ptr %commands)
  ; The caller has come by all commands, so all pieces are taken, and who does one is inside of the gate until it is done.
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
  call void @pass(ptr %pool, ptr %wait, i64 0)
  br label %join
joined:
  call void @forget(ptr %pool, ptr %wait)
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

; A new generation: spinning workers see it, sleeping ones are woken.
define internal void @wake(ptr %pool) {
entry:
  %generation = getelementptr %Pool, ptr %pool, i32 0, i32 4
  %ignored = atomicrmw add ptr %generation, i64 1 seq_cst
  %sleepersp = getelementptr %Pool, ptr %pool, i32 0, i32 8
  %sleepers = load atomic i64, ptr %sleepersp seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %broadcast, label %done
broadcast:
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 19
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 20
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %here = call i32 @sched_getcpu()
  %known = icmp ult i32 %here, 1024
  br i1 %known, label %look, label %call
look:
  %cpu = zext i32 %here to i64
  %barred = add i64 %cpu, 1
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 9
  %threads = load i64, ptr %threadsp, align 8
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  br label %each
each:
  %w = phi i64 [ 1, %look ], [ %w2, %following ]
  %all = icmp sge i64 %w, %threads
  br i1 %all, label %call, label %one
one:
  %statep = getelementptr %Worker, ptr %workers, i64 %w, i32 1
  %state = load i64, ptr %statep, align 8
  %sleeps = icmp eq i64 %state, -1
  br i1 %sleeps, label %bar, label %following
bar:
  %handlep = getelementptr %Worker, ptr %workers, i64 %w, i32 0
  %handle = load i64, ptr %handlep, align 8
  %taken = call i1 @allow(i64 %handle, i64 %cpu, i1 false)
  br i1 %taken, label %note, label %following
note:
  store i64 %barred, ptr %statep, align 8
  br label %following
following:
  %w2 = add i64 %w, 1
  br label %each
call:
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %done
done:
  ret void
}

; Allow a thread a processor beside those it has, or take it from these where others are left; whether that was done.
define internal i1 @allow(i64 %handle, i64 %cpu, i1 %allowed) {
entry:
  %set = alloca %Set, align 8
  %found = call i32 @pthread_getaffinity_np(i64 %handle, i64 128, ptr %set)
  %known = icmp eq i32 %found, 0
  br i1 %known, label %change, label %no
change:
  %number = lshr i64 %cpu, 6
  %at = and i64 %cpu, 63
  %bit = shl i64 1, %at
  %wordp = getelementptr %Set, ptr %set, i32 0, i64 %number
  %word = load i64, ptr %wordp, align 8
  %with = or i64 %word, %bit
  %others = xor i64 %bit, -1
  %without = and i64 %word, %others
  %changed = select i1 %allowed, i64 %with, i64 %without
  store i64 %changed, ptr %wordp, align 8
  %failed = call i32 @pthread_setaffinity_np(i64 %handle, i64 128, ptr %set)
  %done = icmp eq i32 %failed, 0
  ret i1 %done
no:
  ret i1 false
}

; A worker's life: wait for a generation it has not seen, go in while the gate is open, walk, leave.
define internal ptr @worker(ptr %pool) {
entry:
  %generation = getelementptr %Pool, ptr %pool, i32 0, i32 4
  %gate = getelementptr %Pool, ptr %pool, i32 0, i32 5
  %sleepers = getelementptr %Pool, ptr %pool, i32 0, i32 8
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 19
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 20
  %stopp = getelementptr %Pool, ptr %pool, i32 0, i32 6
  %spinsp = getelementptr %Pool, ptr %pool, i32 0, i32 16
  %spins = load i64, ptr %spinsp, align 8
  %limitp = getelementptr %Pool, ptr %pool, i32 0, i32 7
  %sharesp = getelementptr %Pool, ptr %pool, i32 0, i32 3
  %shares = load i64, ptr %sharesp, align 8
  %numbered = getelementptr %Pool, ptr %pool, i32 0, i32 10
  %before = atomicrmw add ptr %numbered, i64 1 monotonic
  %me = add i64 %before, 1
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  %statep = getelementptr %Worker, ptr %workers, i64 %me, i32 1
  %lentp = getelementptr %Worker, ptr %workers, i64 %me, i32 3
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %current, %enter ], [ %current, %join ]
  %start = call i64 @now()
  %until = add i64 %start, %spins
  br label %spin
spin:
  %tries = phi i64 [ 0, %idle ], [ %tried, %again ], [ %tried, %clock ]
  %g = load atomic i64, ptr %generation acquire, align 8
  %new = icmp ne i64 %g, %seen
  br i1 %new, label %work, label %wait
wait:
  %tried = add i64 %tries, 1
  %low = and i64 %tried, 63
  %look = icmp eq i64 %low, 0
  br i1 %look, label %clock, label %again
clock:
  %now = call i64 @now()
  %tired = icmp sgt i64 %now, %until
  br i1 %tired, label %sleep, label %spin
again:
  @PAUSE@
  br label %spin
sleep:
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = atomicrmw add ptr %sleepers, i64 1 seq_cst
  store i64 -1, ptr %statep, align 8
  br label %asleep
asleep:
  %g2 = load atomic i64, ptr %generation seq_cst, align 8
  %new2 = icmp ne i64 %g2, %seen
  br i1 %new2, label %awake, label %doze
doze:
  %c = call i32 @pthread_cond_wait(ptr %condition, ptr %mutex)
  br label %asleep
awake:
  %d = atomicrmw sub ptr %sleepers, i64 1 seq_cst
  %state = load i64, ptr %statep, align 8
  store i64 0, ptr %statep, align 8
  %e = call i32 @pthread_mutex_unlock(ptr %mutex)
  %barred = icmp sgt i64 %state, 0
  br i1 %barred, label %free, label %work
free:
  %self = call i64 @pthread_self()
  %taken = sub i64 %state, 1
  %freed = call i1 @allow(i64 %self, i64 %taken, i1 true)
  br label %work
work:
  %current = phi i64 [ %g, %spin ], [ %g2, %awake ], [ %g2, %free ], [ %current, %away ]
  %stop = load atomic i64, ptr %stopp acquire, align 8
  %stopping = icmp ne i64 %stop, 0
  br i1 %stopping, label %leave, label %run
run:
  %waiting = load atomic i64, ptr %gate acquire, align 8
  br label %enter
enter:
  %inside = phi i64 [ %waiting, %run ], [ %found, %try ]
  %shut = icmp slt i64 %inside, 4294967296
  %limit = load atomic i64, ptr %limitp monotonic, align 8
  %more_than = icmp sge i64 %me, %limit
  %out = or i1 %shut, %more_than
  br i1 %out, label %idle, label %try
try:
  %more = add i64 %inside, 1
  %swap = cmpxchg ptr %gate, i64 %inside, i64 %more acq_rel acquire
  %found = extractvalue { i64, i1 } %swap, 0
  %entered = extractvalue { i64, i1 } %swap, 1
  br i1 %entered, label %join, label %enter
join:
  %commands = load ptr, ptr %pool, align 8
  %countp = getelementptr %Pool, ptr %pool, i32 0, i32 1
  %count = load i64, ptr %countp, align 8
  %runp = getelementptr %Pool, ptr %pool, i32 0, i32 2
  %number = load i64, ptr %runp, align 8
  call void @stage(ptr %pool, i64 %me, i64 1)
  call void @walk(ptr %pool, ptr %commands, i64 %count, i64 %me, i64 %shares, i64 %number)
  %lent = load atomic i64, ptr %lentp monotonic, align 8
  call void @stage(ptr %pool, i64 %me, i64 0)
  %f = atomicrmw sub ptr %gate, i64 1 seq_cst
  call void @tell(ptr %pool)
  %is_lent = icmp ne i64 %lent, 0
  br i1 %is_lent, label %away, label %idle
away:
  ; The caller may be in the same run still, or in a later one.
  %me_self = call i64 @pthread_self()
  %callers = sub i64 %lent, 1
  %moved = call i1 @move(i64 %me_self, i64 %callers, i1 false)
  store atomic i64 0, ptr %lentp monotonic, align 8
  br label %work
leave:
  ret ptr null
}

; Start `threads - 1` workers, told in `workers`, which stays theirs and has a line for each thread; gives how many there are threads in all then (fewer
; than asked when the system refuses more).
define i64 @onert_pool_start(ptr %pool, i64 %threads, i64 %spins, ptr %workers) {
entry:
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  store ptr %workers, ptr %workersp, align 8
  %spinsp = getelementptr %Pool, ptr %pool, i32 0, i32 16
  store i64 %spins, ptr %spinsp, align 8
  %spinp = getelementptr %Pool, ptr %pool, i32 0, i32 14
  %within_for = shl i64 %spins, 1
  store i64 %within_for, ptr %spinp, align 8
  %sharesp = getelementptr %Pool, ptr %pool, i32 0, i32 3
  store i64 %threads, ptr %sharesp, align 8
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 19
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 20
  %a = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr %condition, ptr null)
  %within = getelementptr %Pool, ptr %pool, i32 0, i32 21
  %c = call i32 @pthread_cond_init(ptr %within, ptr null)
  br label %more
more:
  %n = phi i64 [ 1, %entry ], [ %n2, %started ]
  %enough = icmp sge i64 %n, %threads
  br i1 %enough, label %done, label %start
start:
  %line = getelementptr %Worker, ptr %workers, i64 %n
  store %Worker zeroinitializer, ptr %line, align 8
  %handle = getelementptr %Worker, ptr %line, i32 0, i32 0
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %pool)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %started, label %done
started:
  %n2 = add i64 %n, 1
  br label %more
done:
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 9
  store i64 %n, ptr %threadsp, align 8
  ret i64 %n
}

; Stop the workers and wait until they have left.
define void @onert_pool_stop(ptr %pool) {
entry:
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  %stopp = getelementptr %Pool, ptr %pool, i32 0, i32 6
  store atomic i64 1, ptr %stopp release, align 8
  call void @wake(ptr %pool)
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 9
  %threads = load i64, ptr %threadsp, align 8
  br label %more
more:
  %n = phi i64 [ 1, %entry ], [ %n2, %join ]
  %all = icmp sge i64 %n, %threads
  br i1 %all, label %done, label %join
join:
  %handlep = getelementptr %Worker, ptr %workers, i64 %n, i32 0
  %handle = load i64, ptr %handlep, align 8
  %ignored = call i32 @pthread_join(i64 %handle, ptr null)
  %n2 = add i64 %n, 1
  br label %more
done:
  ret void
}
