; The threads of a pool: how they start and stop, sleep, wake and wait. `pool_types.ll` is prepended, `lend.ll` and
; `adapt.ll` are appended. `pool.ll`, which walks the commands, is a separate module: the code here runs rarely, or
; while a thread is idle, so it is generated without optimisation, in a sixth of the time.
;
; `@PAUSE@` is replaced by the target's spin hint.

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

; Defined by `pool.ll`.
declare i64 @onert_pool_word(ptr, i64)
declare void @onert_pool_set(ptr, i64, i64)
declare i64 @onert_pool_fewer(i64, i64)
declare void @onert_pool_stage(ptr, i64, i64)
declare void @onert_pool_tell(ptr)
declare void @onert_pool_forget(ptr, ptr)
declare void @onert_pool_walk(ptr, ptr, i64, i64, i64, i64)

; The size of a pool in bytes; the caller allocates it, zeroed and 64-byte aligned.
define i64 @onert_pool_size() {
  %end = getelementptr %Pool, ptr null, i64 1
  %size = ptrtoint ptr %end to i64
  ret i64 %size
}

; Nanoseconds of a monotonic clock.
define i64 @onert_pool_now() {
  %time = alloca %Time, align 8
  %ignored = call i32 @clock_gettime(i32 1, ptr %time)
  %seconds = load i64, ptr %time, align 8
  %restp = getelementptr %Time, ptr %time, i32 0, i32 1
  %rest = load i64, ptr %restp, align 8
  %whole = mul i64 %seconds, 1000000000
  %sum = add i64 %whole, %rest
  ret i64 %sum
}

define void @onert_pool_rouse(ptr %pool) noinline {
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

; Pass the time of one try. An awaited thread may have no processor, because others use it: so a thread that has spun
; for long announces that it waits, checks once more, and sleeps until something is done. A sleeping thread soon gets a
; processor when roused; one that yields, or spins until preempted, would have to wait for other time slices.
define void @onert_pool_pass(ptr %pool, ptr %wait, i64 %me) {
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
  %now = call i64 @onert_pool_now()
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
  %start = call i64 @onert_pool_now()
  call void @onert_pool_stage(ptr %pool, i64 %me, i64 0)
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
  call void @onert_pool_stage(ptr %pool, i64 %me, i64 1)
  %sincep = getelementptr %Wait, ptr %wait, i32 0, i32 4
  %since = load i64, ptr %sincep, align 8
  call void @onert_pool_forget(ptr %pool, ptr %wait)
  ; If one thread had to sleep, others soon will: they spin for less until runs pass without sleep.
  %shortp = getelementptr %Pool, ptr %pool, i32 0, i32 14
  store atomic i64 50000, ptr %shortp monotonic, align 8
  %caller = icmp eq i64 %me, 0
  br i1 %caller, label %add, label %leave
add:
  %stop = call i64 @onert_pool_now()
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

; Start a new generation: spinning workers see it, sleeping ones are woken.
define void @onert_pool_wake(ptr %pool) {
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

; Add a processor to those that a thread may use, or remove it if others remain; returns whether that was done.
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

; A worker's loop: wait for a generation it has not seen, enter while the gate is open, walk the commands, leave.
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
  %start = call i64 @onert_pool_now()
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
  %now = call i64 @onert_pool_now()
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
  call void @onert_pool_stage(ptr %pool, i64 %me, i64 1)
  call void @onert_pool_walk(ptr %pool, ptr %commands, i64 %count, i64 %me, i64 %shares, i64 %number)
  %lent = load atomic i64, ptr %lentp monotonic, align 8
  call void @onert_pool_stage(ptr %pool, i64 %me, i64 0)
  %f = atomicrmw sub ptr %gate, i64 1 seq_cst
  call void @onert_pool_tell(ptr %pool)
  %is_lent = icmp ne i64 %lent, 0
  br i1 %is_lent, label %away, label %idle
away:
  ; The caller may still be in the same run, or in a later one.
  %me_self = call i64 @pthread_self()
  %callers = sub i64 %lent, 1
  %moved = call i1 @move(i64 %me_self, i64 %callers, i1 false)
  store atomic i64 0, ptr %lentp monotonic, align 8
  br label %work
leave:
  ret ptr null
}

; Start `threads - 1` workers, described in `workers`, which they use from then on and which has a line for each thread.
; Returns the total number of threads, fewer than requested if the system refuses more.
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

; Stop the workers and wait until they have ended.
define void @onert_pool_stop(ptr %pool) {
entry:
  %workersp = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %workers = load ptr, ptr %workersp, align 8
  %stopp = getelementptr %Pool, ptr %pool, i32 0, i32 6
  store atomic i64 1, ptr %stopp release, align 8
  call void @onert_pool_wake(ptr %pool)
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
