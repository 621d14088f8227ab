;                fn   task tiles pieces sync shares runs threads
%Command = type { ptr, ptr, i64, i64,   i64, ptr, ptr, i64 }

; The pieces taken of a share, by any thread, and the pieces that its thread has done, of any share: the low 16 bits,
; with the number of the run above. Each share has its own cache line.
%Share = type { i64, i64, [6 x i64] }

; One line, which the caller writes and workers read when a run begins: 0 commands, 1 count, 2 number of the run, 3
; shares of a command, 4 generation, 5 the gate, 6 stop, 7 threads of this run. Then 8 sleepers, 9 threads, 10 threads
; that have a number, 11 workers, 12 threads that wait for others within a run, 13 how often these were roused, 14
; nanoseconds that such a thread spins, 15 nanoseconds that the caller has slept within runs; 16 the most nanoseconds
; that a worker without a run spins, and half the most within one; 17 when the caller may lend its processor again; 19
; mutex, 20 condition of workers without a run, 21 of threads that wait within one. The gate counts the workers inside,
; plus 2**32 while it is open.
%Pool = type { ptr, i64, i64, i64, i64, i64, i64, i64,
               i64, i64, i64, ptr, i64, i64, i64, i64,
               i64, i64, [6 x i64],
               [16 x i64], [16 x i64], [16 x i64] }

; The state of a thread that waits for others: 0 tries, 1 when it stops spinning (0: not known yet), 2 whether it has
; announced that it will sleep, 3 how often waiting threads had been roused before; for a caller, 4 when it last checked
; a worker (0: not yet, -1: it lent its processor), 5 how long that worker had computed by then, 6 its number.
%Wait = type { i64, i64, i64, i64, i64, i64, i64 }

%Time = type { i64, i64 }

; A thread's line, the caller's first. 0 handle; 1 a worker's state, guarded by the mutex: 0 awake, -1 asleep, above 0
; barred from the processor of that number less 1; 2 what it is doing (see `onert_pool_stage`), 3 the number of the
; processor that it was lent plus 1, or 0.
%Worker = type { i64, i64, i64, i64, [4 x i64] }

; A set of processors, in the C library's layout.
%Set = type [16 x i64]
