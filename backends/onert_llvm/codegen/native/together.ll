; An object's own thread pool, linked with `pool.ll`: it starts with the first run and is used by one run at a time; a
; concurrent run uses only its own thread. After a fork, the child starts its own threads.
;
; `@THREADS@` is replaced by the number of threads that share a run, `@NAME@` by the bundle's name. 320 words are enough
; for a pool on any 64-bit target.

@onert.pool = internal global [320 x i64] zeroinitializer, align 64
@onert.workers = internal global [@THREADS@ x [8 x i64]] zeroinitializer, align 64
@onert.busy = internal global i32 0, align 4
@onert.owner = internal global i32 0, align 4

; As in `pool.ll`.
%Command = type { ptr, ptr, i64, i64,   i64, ptr, ptr, i64 }
%Share = type { i64, i64, [6 x i64] }

declare i32 @getpid()
declare void @onert_run(ptr, i64)
declare void @onert_pool_run(ptr, ptr, i64, ptr)
declare i64 @onert_pool_start(ptr, i64, i64, ptr)
declare void @onert_pool_stop(ptr)

define void @onert.together(ptr %commands, i64 %count) nounwind {
entry:
  %try = cmpxchg ptr @onert.busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %try, 1
  br i1 %mine, label %look, label %alone
alone:
  call void @onert_run(ptr %commands, i64 %count)
  ret void
look:
  %process = call i32 @getpid()
  %owner = load i32, ptr @onert.owner, align 4
  %started = icmp eq i32 %process, %owner
  br i1 %started, label %run, label %clear
clear:
  %i = phi i64 [ 0, %look ], [ %next, %clear ]
  %word = getelementptr i64, ptr @onert.pool, i64 %i
  store volatile i64 0, ptr %word, align 8
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, 320
  br i1 %end, label %start, label %clear
start:
  %threads = call i64 @onert_pool_start(ptr @onert.pool, i64 @THREADS@, i64 100000, ptr @onert.workers)
  store i32 %process, ptr @onert.owner, align 4
  br label %run
run:
  ; The memory may have been overwritten since the previous run.
  %empty = icmp eq i64 %count, 0
  br i1 %empty, label %share, label %clear_count
clear_count:
  %runsp = getelementptr %Command, ptr %commands, i32 0, i32 6
  %runs = load ptr, ptr %runsp, align 8
  store i64 0, ptr %runs, align 8
  br label %command
command:
  %at = phi i64 [ 0, %clear_count ], [ %after, %following ]
  %linesp = getelementptr %Command, ptr %commands, i64 %at, i32 5
  %lines = load ptr, ptr %linesp, align 8
  br label %line
line:
  %of = phi i64 [ 0, %command ], [ %of2, %line ]
  %takenp = getelementptr %Share, ptr %lines, i64 %of, i32 0
  store i64 0, ptr %takenp, align 8
  %donep = getelementptr %Share, ptr %lines, i64 %of, i32 1
  store i64 0, ptr %donep, align 8
  %of2 = add i64 %of, 1
  %each = icmp eq i64 %of2, @THREADS@
  br i1 %each, label %following, label %line
following:
  %after = add i64 %at, 1
  %last = icmp eq i64 %after, %count
  br i1 %last, label %share, label %command
share:
  call void @onert_pool_run(ptr @onert.pool, ptr %commands, i64 %count, ptr null)
  store atomic i32 0, ptr @onert.busy release, align 4
  ret void
}

; Stop the threads, unless a run is using them.
define void @@NAME@_stop() nounwind {
entry:
  %try = cmpxchg ptr @onert.busy, i32 0, i32 1 acquire monotonic
  %mine = extractvalue { i32, i1 } %try, 1
  br i1 %mine, label %look, label %done
look:
  %process = call i32 @getpid()
  %owner = load i32, ptr @onert.owner, align 4
  %started = icmp eq i32 %process, %owner
  br i1 %started, label %stop, label %free
stop:
  call void @onert_pool_stop(ptr @onert.pool)
  store i32 0, ptr @onert.owner, align 4
  br label %free
free:
  store atomic i32 0, ptr @onert.busy release, align 4
  br label %done
done:
  ret void
}
