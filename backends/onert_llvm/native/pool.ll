; Native threads that walk a list of commands together; `run.ll` is for one alone.
;
; A program is an array of commands. A kernel is `void kernel(ptr task, i64 begin, i64 end)` over a range of independent
; tiles. All threads walk the same array in the same order and take tiles, `grain` at a time, from each command's counter.
; Before a command whose `sync` is set a thread waits until all tiles of the commands before it are done: for tiles, not
; for threads, so that one that the system does not run holds up nobody unless it is in the middle of a tile. Tiles are
; independent and each is computed by one thread, so the result is the same for any number of threads.
;
; A worker that has nothing to do spins for a while, because the next inference often follows closely, then sleeps on a
; condition variable, so that an idle pool costs nothing. Workers come and go through a gate, which the caller shuts when
; all is done: one that comes too late finds it shut, and the caller leaves when the last one inside has left.
;
; `@PAUSE@` is replaced by the target's spin hint.

; Two cache lines: what all threads only read, and the tiles taken and done, which they all change.
;                fn   task tiles grain sync  padding      taken done  padding
%Command = type { ptr, ptr, i64, i64,  i64, [3 x i64],    i64,  i64, [6 x i64] }

; Fields: 0 commands, 1 count, 2 threads, 3 spins, 4 stop; each on its own line 6 generation, 8 the gate; 10 sleepers,
; 11 mutex, 12 condition. The gate counts the workers inside, plus 2**32 while it is open.
%Pool = type { ptr, i64, i64, i64, i64, [3 x i64],
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

; Wait until all tiles of the commands from `first` up to `last` are done.
define internal void @finished(ptr %commands, i64 %first, i64 %last) {
entry:
  %none = icmp sge i64 %first, %last
  br i1 %none, label %done, label %command
command:
  %i = phi i64 [ %first, %entry ], [ %next, %advance ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  %tilesp = getelementptr %Command, ptr %c, i32 0, i32 2
  %tiles = load i64, ptr %tilesp, align 8
  %madep = getelementptr %Command, ptr %c, i32 0, i32 7
  br label %spin
spin:
  %tries = phi i64 [ 0, %command ], [ %tried, %again ]
  %made = load atomic i64, ptr %madep acquire, align 8
  %all = icmp eq i64 %made, %tiles
  br i1 %all, label %advance, label %wait
wait:
  %tried = add i64 %tries, 1
  %low = and i64 %tried, 255
  %tired = icmp eq i64 %low, 0
  br i1 %tired, label %yield, label %again
yield:
  ; The thread that is awaited may have no processor: let it have this one.
  %ignored = call i32 @sched_yield()
  br label %again
again:
  @PAUSE@
  br label %spin
advance:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %last
  br i1 %end, label %done, label %command
done:
  ret void
}

; Walk the commands as one of several threads.
define internal void @walk(ptr %commands, i64 %count) {
entry:
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %done, label %command
command:
  %i = phi i64 [ 0, %entry ], [ %next, %advance ]
  %open = phi i64 [ 0, %entry ], [ %opened, %advance ]
  %c = getelementptr %Command, ptr %commands, i64 %i
  %syncp = getelementptr %Command, ptr %c, i32 0, i32 4
  %sync = load i64, ptr %syncp, align 8
  %meet = icmp ne i64 %sync, 0
  br i1 %meet, label %before, label %begin
before:
  call void @finished(ptr %commands, i64 %open, i64 %i)
  br label %begin
begin:
  %opened = phi i64 [ %open, %command ], [ %i, %before ]
  %fn = load ptr, ptr %c, align 8
  %taskp = getelementptr %Command, ptr %c, i32 0, i32 1
  %task = load ptr, ptr %taskp, align 8
  %tilesp = getelementptr %Command, ptr %c, i32 0, i32 2
  %tiles = load i64, ptr %tilesp, align 8
  %grainp = getelementptr %Command, ptr %c, i32 0, i32 3
  %grain = load i64, ptr %grainp, align 8
  %takenp = getelementptr %Command, ptr %c, i32 0, i32 6
  %madep = getelementptr %Command, ptr %c, i32 0, i32 7
  br label %look
look:
  ; Who comes late to a command that is taken does not write to its line.
  %seen = load atomic i64, ptr %takenp monotonic, align 8
  %gone = icmp sge i64 %seen, %tiles
  br i1 %gone, label %advance, label %take
take:
  %from = atomicrmw add ptr %takenp, i64 %grain monotonic
  %over = icmp sge i64 %from, %tiles
  br i1 %over, label %advance, label %work
work:
  %upto = add i64 %from, %grain
  %short = icmp slt i64 %upto, %tiles
  %to = select i1 %short, i64 %upto, i64 %tiles
  call void %fn(ptr %task, i64 %from, i64 %to)
  %some = sub i64 %to, %from
  %ignored = atomicrmw add ptr %madep, i64 %some release
  br label %take
advance:
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %command
done:
  ret void
}

; Run the commands on the calling thread and the pool's workers. One caller at a time.
define void @onert_pool_run(ptr %pool, ptr %commands, i64 %count) {
entry:
  %none = icmp eq i64 %count, 0
  br i1 %none, label %done, label %clear
clear:
  %i = phi i64 [ 0, %entry ], [ %next, %clear ]
  %takenp = getelementptr %Command, ptr %commands, i64 %i, i32 6
  store i64 0, ptr %takenp, align 8
  %madep = getelementptr %Command, ptr %commands, i64 %i, i32 7
  store i64 0, ptr %madep, align 8
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %open, label %clear
open:
  %commandsp = getelementptr %Pool, ptr %pool, i32 0, i32 0
  store ptr %commands, ptr %commandsp, align 8
  %countp = getelementptr %Pool, ptr %pool, i32 0, i32 1
  store i64 %count, ptr %countp, align 8
  %gate = getelementptr %Pool, ptr %pool, i32 0, i32 8
  store atomic i64 4294967296, ptr %gate release, align 8
  call void @wake(ptr %pool)
  call void @walk(ptr %commands, i64 %count)
  call void @finished(ptr %commands, i64 0, i64 %count)
  %shut = atomicrmw sub ptr %gate, i64 4294967296 acq_rel
  br label %join
join:
  %tries = phi i64 [ 0, %open ], [ %tried, %again ]
  %left = load atomic i64, ptr %gate acquire, align 8
  %all = icmp eq i64 %left, 0
  br i1 %all, label %done, label %wait
wait:
  %tried = add i64 %tries, 1
  %low = and i64 %tried, 255
  %tired = icmp eq i64 %low, 0
  br i1 %tired, label %yield, label %again
yield:
  %ignored = call i32 @sched_yield()
  br label %again
again:
  @PAUSE@
  br label %join
done:
  ret void
}

; A new generation: spinning workers see it, sleeping ones are woken.
define internal void @wake(ptr %pool) {
entry:
  %generation = getelementptr %Pool, ptr %pool, i32 0, i32 6
  %ignored = atomicrmw add ptr %generation, i64 1 seq_cst
  %sleepersp = getelementptr %Pool, ptr %pool, i32 0, i32 10
  %sleepers = load atomic i64, ptr %sleepersp seq_cst, align 8
  %asleep = icmp ne i64 %sleepers, 0
  br i1 %asleep, label %broadcast, label %done
broadcast:
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 12
  %a = call i32 @pthread_mutex_lock(ptr %mutex)
  %b = call i32 @pthread_cond_broadcast(ptr %condition)
  %c = call i32 @pthread_mutex_unlock(ptr %mutex)
  br label %done
done:
  ret void
}

; A worker's life: wait for a generation it has not seen, go in while the gate is open, walk, leave.
define internal ptr @worker(ptr %pool) {
entry:
  %generation = getelementptr %Pool, ptr %pool, i32 0, i32 6
  %gate = getelementptr %Pool, ptr %pool, i32 0, i32 8
  %sleepers = getelementptr %Pool, ptr %pool, i32 0, i32 10
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 12
  %stopp = getelementptr %Pool, ptr %pool, i32 0, i32 4
  %spinsp = getelementptr %Pool, ptr %pool, i32 0, i32 3
  %spins = load i64, ptr %spinsp, align 8
  br label %idle
idle:
  %seen = phi i64 [ 0, %entry ], [ %current, %enter ], [ %current, %join ]
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
  %waiting = load atomic i64, ptr %gate acquire, align 8
  br label %enter
enter:
  %inside = phi i64 [ %waiting, %run ], [ %found, %try ]
  %shut = icmp slt i64 %inside, 4294967296
  br i1 %shut, label %idle, label %try
try:
  %more = add i64 %inside, 1
  %swap = cmpxchg ptr %gate, i64 %inside, i64 %more acq_rel acquire
  %found = extractvalue { i64, i1 } %swap, 0
  %entered = extractvalue { i64, i1 } %swap, 1
  br i1 %entered, label %join, label %enter
join:
  %commandsp = getelementptr %Pool, ptr %pool, i32 0, i32 0
  %commands = load ptr, ptr %commandsp, align 8
  %countp = getelementptr %Pool, ptr %pool, i32 0, i32 1
  %count = load i64, ptr %countp, align 8
  call void @walk(ptr %commands, i64 %count)
  %f = atomicrmw sub ptr %gate, i64 1 acq_rel
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
  %mutex = getelementptr %Pool, ptr %pool, i32 0, i32 11
  %condition = getelementptr %Pool, ptr %pool, i32 0, i32 12
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
