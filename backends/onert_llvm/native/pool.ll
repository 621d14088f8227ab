; Native threads that walk a list of commands together.
;
; A program is an array of commands. A kernel is `void kernel(ptr task, i64 begin, i64 end)` over a range of independent
; tiles. All threads walk the same array in the same order; at a command whose `sync` is set they first meet at a
; barrier, so that everything before it is done; between barriers they take tiles, `grain` at a time, from the command's
; counter. Tiles are independent and each is computed by one thread, so the result is the same for any number of threads.
;
; A worker that has nothing to do spins for a while, because the next inference often follows closely, then sleeps on a
; condition variable, so that an idle pool costs nothing.
;
; `@PAUSE@` is replaced by the target's spin hint.

; Two cache lines: what all threads only read, and the counter that they all change.
;                fn   task tiles grain sync  padding      counter  padding
%Command = type { ptr, ptr, i64, i64,  i64, [3 x i64],    i64,     [7 x i64] }

; Fields: 0 commands, 1 count, 2 threads, 3 spins, 4 stop; each on its own line 6 generation, 8 workers pending,
; 10 threads arrived at the barrier, 12 the barrier's phase; 14 sleepers, 15 mutex, 16 condition.
%Pool = type { ptr, i64, i64, i64, i64, [3 x i64],
               i64, [7 x i64],
               i64, [7 x i64],
               i64, [7 x i64],
               i64, [7 x i64],
               i64, [16 x i64], [16 x i64] }

declare i32 @pthread_mutex_lock(ptr)
declare i32 @pthread_mutex_unlock(ptr)
declare i32 @pthread_mutex_init(ptr, ptr)
declare i32 @pthread_cond_init(ptr, ptr)
declare i32 @pthread_cond_wait(ptr, ptr)
declare i32 @pthread_cond_broadcast(ptr)
declare i32 @pthread_create(ptr, ptr, ptr, ptr)
declare i32 @pthread_join(i64, ptr)
declare i32 @sched_yield()

; Bytes of a pool; the caller allocates it, zeroed and aligned to 64.
define i64 @onert_pool_size() {
  %end = getelementptr %Pool, ptr null, i64 1
  %size = ptrtoint ptr %end to i64
  ret i64 %size
}

; Meet the other threads: the last to arrive turns the phase.
define internal void @barrier(ptr %pool, i64 %threads) {
entry:
  %arrived = getelementptr %Pool, ptr %pool, i32 0, i32 10
  %phase = getelementptr %Pool, ptr %pool, i32 0, i32 12
  %now = load atomic i64, ptr %phase acquire, align 8
  %before = atomicrmw add ptr %arrived, i64 1 acq_rel
  %count = add i64 %before, 1
  %last = icmp eq i64 %count, %threads
  br i1 %last, label %turn, label %spin
turn:
  store atomic i64 0, ptr %arrived monotonic, align 8
  %following = add i64 %now, 1
  store atomic i64 %following, ptr %phase release, align 8
  ret void
spin:
  %tries = phi i64 [ 0, %entry ], [ %tried, %again ]
  %seen = load atomic i64, ptr %phase acquire, align 8
  %turned = icmp ne i64 %seen, %now
  br i1 %turned, label %done, label %wait
wait:
  %tried = add i64 %tries, 1
  %low = and i64 %tried, 1023
  %tired = icmp eq i64 %low, 0
  br i1 %tired, label %yield, label %again
yield:
  ; The thread that is awaited may have no processor: let it have this one.
  %ignored = call i32 @sched_yield()
  br label %again
again:
  @PAUSE@
  br label %spin
done:
  ret void
}

; Walk the commands as one of several threads.
define internal void @walk(ptr %pool, ptr %commands, i64 %count, i64 %threads) {
entry:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %done, label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  %syncp = getelementptr %Command, ptr %c, i32 0, i32 4
  %sync = load i64, ptr %syncp, align 8
  %meet = icmp ne i64 %sync, 0
  br i1 %meet, label %before, label %begin
before:
  call void @barrier(ptr %pool, i64 %threads)
  br label %begin
begin:
  %fn = load ptr, ptr %c, align 8
  %taskp = getelementptr %Command, ptr %c, i32 0, i32 1
  %task = load ptr, ptr %taskp, align 8
  %tilesp = getelementptr %Command, ptr %c, i32 0, i32 2
  %tiles = load i64, ptr %tilesp, align 8
  %grainp = getelementptr %Command, ptr %c, i32 0, i32 3
  %grain = load i64, ptr %grainp, align 8
  %counter = getelementptr %Command, ptr %c, i32 0, i32 6
  br label %take
take:
  %from = atomicrmw add ptr %counter, i64 %grain monotonic
  %over = icmp sge i64 %from, %tiles
  br i1 %over, label %advance, label %work
work:
  %upto = add i64 %from, %grain
  %short = icmp slt i64 %upto, %tiles
  %to = select i1 %short, i64 %upto, i64 %tiles
  call void %fn(ptr %task, i64 %from, i64 %to)
  br label %take
advance:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %command
done:
  ret void
}

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

; Run the commands on the calling thread and the pool's workers. One caller at a time.
define void @onert_pool_run(ptr %pool, ptr %commands, i64 %count) {
entry:
  %commandsp = getelementptr %Pool, ptr %pool, i32 0, i32 0
  store ptr %commands, ptr %commandsp, align 8
  %countp = getelementptr %Pool, ptr %pool, i32 0, i32 1
  store i64 %count, ptr %countp, align 8
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 2
  %threads = load i64, ptr %threadsp, align 8
  %workers = sub i64 %threads, 1
  %pending = getelementptr %Pool, ptr %pool, i32 0, i32 8
  store atomic i64 %workers, ptr %pending monotonic, align 8
  call void @wake(ptr %pool)
  call void @walk(ptr %pool, ptr %commands, i64 %count, i64 %threads)
  br label %join
join:
  %tries = phi i64 [ 0, %entry ], [ %tried, %again ]
  %left = load atomic i64, ptr %pending acquire, align 8
  %all = icmp eq i64 %left, 0
  br i1 %all, label %reset, label %wait
wait:
  %tried = add i64 %tries, 1
  %low = and i64 %tried, 1023
  %tired = icmp eq i64 %low, 0
  br i1 %tired, label %yield, label %again
yield:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  @PAUSE@
  br label %join
reset:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %clear
clear:
  %i = phi i64 [ 0, %reset ], [ %next, %clear ]
  %counter = getelementptr %Command, ptr %commands, i64 %i, i32 6
  store i64 0, ptr %counter, align 8
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %clear
done:
  ret void
}

; A new generation: spinning workers see it, sleeping ones are woken.
define internal void @wake(ptr %pool) {
entry:
  %generation = getelementptr %Pool, ptr %pool, i32 0, i32 6
  %ignored = atomicrmw add ptr %generation, i64 1 seq_cst
  %sleepersp = getelementptr %Pool, ptr %pool, i32 0, i32 14
  %sleepers = load atomic i64, ptr %sleepersp seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %broadcast, label %done
broadcast:
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 15
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 16
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %done
done:
  ret void
}

; A worker's life: wait for a generation it has not seen, walk, say that it is done.
define internal ptr @worker(ptr %pool) {
entry:
  %generation = getelementptr %Pool, ptr %pool, i32 0, i32 6
  %pending = getelementptr %Pool, ptr %pool, i32 0, i32 8
  %sleepers = getelementptr %Pool, ptr %pool, i32 0, i32 14
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 15
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 16
  %stopp = getelementptr %Pool, ptr %pool, i32 0, i32 4
  %spinsp = getelementptr %Pool, ptr %pool, i32 0, i32 3
  %spins = load i64, ptr %spinsp, align 8
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %current, %finished ]
  br label %spin
spin:
  %tries = phi i64 [ 0, %idle ], [ %tried, %again ]
  %g = load atomic i64, ptr %generation acquire, align 8
  %new = icmp ne i64 %g, %seen
  br i1 %new, label %work, label %wait
wait:
  %tried = add i64 %tries, 1
  %tired = icmp sge i64 %tried, %spins
  br i1 %tired, label %sleep, label %again
again:
  @PAUSE@
  br label %spin
sleep:
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = atomicrmw add ptr %sleepers, i64 1 seq_cst
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
  %e = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %work
work:
  %current = phi i64 [ %g, %spin ], [ %g2, %awake ]
  %stop = load atomic i64, ptr %stopp acquire, align 8
  %stopping = icmp ne i64 %stop, 0
  br i1 %stopping, label %leave, label %run
run:
  %commandsp = getelementptr %Pool, ptr %pool, i32 0, i32 0
  %commands = load ptr, ptr %commandsp, align 8
  %countp = getelementptr %Pool, ptr %pool, i32 0, i32 1
  %count = load i64, ptr %countp, align 8
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 2
  %threads = load i64, ptr %threadsp, align 8
  call void @walk(ptr %pool, ptr %commands, i64 %count, i64 %threads)
  br label %finished
finished:
  %f = atomicrmw sub ptr %pending, i64 1 acq_rel
  br label %idle
leave:
  ret ptr null
}

; Start `threads - 1` workers, their handles written to `handles`; gives how many there are threads in all then
; (fewer than asked when the system refuses more).
define i64 @onert_pool_start(ptr %pool, i64 %threads, i64 %spins, ptr %handles) {
entry:
  %spinsp = getelementptr %Pool, ptr %pool, i32 0, i32 3
  store i64 %spins, ptr %spinsp, align 8
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 15
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 16
  %a = call i32 @pthread_mutex_init(ptr %mutex, ptr null)
  %b = call i32 @pthread_cond_init(ptr %condition, ptr null)
  br label %more
more:
  %n = phi i64 [ 1, %entry ], [ %n2, %started ]
  %enough = icmp sge i64 %n, %threads
  br i1 %enough, label %done, label %start
start:
  %at = sub i64 %n, 1
  %handle = getelementptr i64, ptr %handles, i64 %at
  %failed = call i32 @pthread_create(ptr %handle, ptr null, ptr @worker, ptr %pool)
  %ok = icmp eq i32 %failed, 0
  br i1 %ok, label %started, label %done
started:
  %n2 = add i64 %n, 1
  br label %more
done:
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 2
  store i64 %n, ptr %threadsp, align 8
  ret i64 %n
}

; Stop the workers and wait until they have left.
define void @onert_pool_stop(ptr %pool, ptr %handles) {
entry:
  %stopp = getelementptr %Pool, ptr %pool, i32 0, i32 4
  store atomic i64 1, ptr %stopp release, align 8
  call void @wake(ptr %pool)
  %threadsp = getelementptr %Pool, ptr %pool, i32 0, i32 2
  %threads = load i64, ptr %threadsp, align 8
  br label %more
more:
  %n = phi i64 [ 1, %entry ], [ %n2, %join ]
  %all = icmp sge i64 %n, %threads
  br i1 %all, label %done, label %join
join:
  %at = sub i64 %n, 1
  %handlep = getelementptr i64, ptr %handles, i64 %at
  %handle = load i64, ptr %handlep, align 8
  %ignored = call i32 @pthread_join(i64 %handle, ptr null)
  %n2 = add i64 %n, 1
  br label %more
done:
  ret void
}
