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
