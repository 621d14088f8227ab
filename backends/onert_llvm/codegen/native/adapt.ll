; Chooses how many of a pool's threads take part in a run; appended to `workers.ll`.
;
; Where other programs use the processors, a thread may be preempted in the middle of a piece, for some milliseconds,
; while all others wait for it. What that costs depends on the length of runs and on the system's time slices. So once a
; caller was held up for long enough, runs of its program are timed, and from time to time half the threads, or twice as
; many, are tried. The loss of a try is bounded: it ends when it took some milliseconds longer than previous runs, and
; the next one comes after 24 or 48 times what was lost. So permanent load costs one forty-eighth, and soon after it has
; gone all threads are in use again. Once all threads are in use and no caller was held up for a while, timing stops.
;
; Threads may also be slower together when nothing preempts them: a virtual machine's processors may be so far apart
; that synchronising takes longer than the work. So timing also starts after 50 milliseconds of calm, then after twice
; as long each time, up to 13 seconds.

; The state of a program's runs: 0 phase; 1 level, the power of two by which all threads are divided; 2 the
; alternative's level; 3 nanoseconds left until the next try; 4 their initial number; 5 and 6 nanoseconds and 64ths of
; recent runs of the current choice; 7 and 8 those of the try; 9 the nanoseconds by which recent runs were faster than
; the alternative; 10 nanoseconds for which callers were held up; 11 when that was last; 12 how long 64 runs of the
; alternative took, or 0; 13 the number of untimed runs; 14 when to check a calm program; 15 the previous interval.
; Phases: 0 not timed, 1 the choice is kept, 2 the alternative is tried.
%State = type [16 x i64]

define internal void @increase(ptr %state, i64 %number, i64 %by) alwaysinline {
  %value = call i64 @onert_pool_word(ptr %state, i64 %number)
  %sum = add i64 %value, %by
  call void @onert_pool_set(ptr %state, i64 %number, i64 %sum)
  ret void
}

; A caller was held up for `slept` nanoseconds while runs are not timed. If that adds up to 6 milliseconds, without a
; break of 100, runs are timed from now on: for 16 milliseconds with all threads, which is long compared with Linux's
; time slices.
define void @onert_pool_held_up(ptr %state, i64 %slept) noinline {
entry:
  %now = call i64 @onert_pool_now()
  %last = call i64 @onert_pool_word(ptr %state, i64 11)
  call void @onert_pool_set(ptr %state, i64 11, i64 %now)
  %since = sub i64 %now, %last
  %long = icmp sgt i64 %since, 100000000
  %earlier = call i64 @onert_pool_word(ptr %state, i64 10)
  %kept = select i1 %long, i64 0, i64 %earlier
  %sum = add i64 %kept, %slept
  call void @onert_pool_set(ptr %state, i64 10, i64 %sum)
  %enough = icmp sgt i64 %sum, 6000000
  br i1 %enough, label %time, label %done
time:
  call void @begin(ptr %state)
  br label %done
done:
  ret void
}

; A program was calm for some runs: check whether it is time to time it.
define void @onert_pool_calm(ptr %state) noinline {
entry:
  %now = call i64 @onert_pool_now()
  %due = call i64 @onert_pool_word(ptr %state, i64 14)
  %pause = call i64 @onert_pool_word(ptr %state, i64 15)
  %first = icmp eq i64 %pause, 0
  %late = icmp sge i64 %now, %due
  %look = or i1 %first, %late
  br i1 %look, label %again, label %done
again:
  %double = shl i64 %pause, 1
  %least = select i1 %first, i64 50000000, i64 %double
  %much = icmp ugt i64 %least, 12800000000
  %most = select i1 %much, i64 12800000000, i64 %least
  %following = add i64 %now, %most
  call void @onert_pool_set(ptr %state, i64 14, i64 %following)
  call void @onert_pool_set(ptr %state, i64 15, i64 %most)
  br i1 %first, label %done, label %time
time:
  call void @begin(ptr %state)
  br label %done
done:
  ret void
}

; Time runs from now on, without knowledge of previous ones.
define internal void @begin(ptr %state) {
  call void @onert_pool_set(ptr %state, i64 5, i64 0)
  call void @onert_pool_set(ptr %state, i64 6, i64 0)
  call void @onert_pool_set(ptr %state, i64 12, i64 0)
  call void @keep(ptr %state, i64 16000000)
  ret void
}

; Keep the current choice until the next try, after `pause` nanoseconds of runs.
define internal void @keep(ptr %state, i64 %pause) {
  call void @onert_pool_set(ptr %state, i64 0, i64 1)
  call void @onert_pool_set(ptr %state, i64 3, i64 %pause)
  call void @onert_pool_set(ptr %state, i64 4, i64 %pause)
  call void @onert_pool_set(ptr %state, i64 9, i64 0)
  call void @onert_pool_set(ptr %state, i64 10, i64 0)
  ret void
}

; Begin to try half the threads or twice as many: alternately if both are possible, or with `again` the last one tried.
define internal void @try(ptr %state, i64 %threads, i1 %again) {
entry:
  %level = call i64 @onert_pool_word(ptr %state, i64 1)
  %now = call i64 @onert_pool_fewer(i64 %threads, i64 %level)
  %least = icmp eq i64 %now, 1
  %most = icmp eq i64 %level, 0
  %before = call i64 @onert_pool_word(ptr %state, i64 2)
  %were_fewer = icmp ugt i64 %before, %level
  %turned = xor i1 %were_fewer, %again
  %up = or i1 %least, %turned
  %not_most = xor i1 %most, true
  %more = and i1 %up, %not_most
  %by = select i1 %more, i64 -1, i64 1
  %other = add i64 %level, %by
  call void @onert_pool_set(ptr %state, i64 2, i64 %other)
  call void @onert_pool_set(ptr %state, i64 0, i64 2)
  call void @onert_pool_set(ptr %state, i64 7, i64 0)
  call void @onert_pool_set(ptr %state, i64 8, i64 0)
  ret void
}

; How long 64 runs take.
define internal i64 @mean(i64 %time, i64 %runs) alwaysinline {
  %fine = shl i64 %time, 12
  %none = icmp eq i64 %runs, 0
  %some = select i1 %none, i64 64, i64 %runs
  %mean = udiv i64 %fine, %some
  ret i64 %mean
}

; The nanoseconds that one choice may lose to another: `least`, but at least two runs.
define internal i64 @bound(i64 %mean, i64 %least) alwaysinline {
  %two = lshr i64 %mean, 5
  %long = icmp ugt i64 %two, %least
  %bound = select i1 %long, i64 %two, i64 %least
  ret i64 %bound
}

; A run took `time`, for `slept` of which its caller was held up.
define void @onert_pool_timed(ptr %state, i64 %threads, i64 %time, i64 %slept) noinline {
entry:
  %phase = call i64 @onert_pool_word(ptr %state, i64 0)
  %trying = icmp eq i64 %phase, 2
  br i1 %trying, label %try, label %kept
kept:
  call void @kept(ptr %state, i64 %threads, i64 %time, i64 %slept)
  ret void
try:
  call void @tried(ptr %state, i64 %time)
  ret void
}

; The same for a run of the current choice. Its statistics are mostly of the last 64 milliseconds.
define internal void @kept(ptr %state, i64 %threads, i64 %time, i64 %slept) alwaysinline {
entry:
  %negative = sub i64 0, %time
  call void @increase(ptr %state, i64 3, i64 %negative)
  call void @increase(ptr %state, i64 5, i64 %time)
  call void @increase(ptr %state, i64 6, i64 64)
  call void @increase(ptr %state, i64 10, i64 %slept)
  %sum = call i64 @onert_pool_word(ptr %state, i64 5)
  %much = icmp sgt i64 %sum, 64000000
  br i1 %much, label %halve, label %compare
halve:
  %runs = call i64 @onert_pool_word(ptr %state, i64 6)
  %half = lshr i64 %sum, 1
  %half_runs = lshr i64 %runs, 1
  call void @onert_pool_set(ptr %state, i64 5, i64 %half)
  call void @onert_pool_set(ptr %state, i64 6, i64 %half_runs)
  br label %compare
compare:
  ; Gains over the alternative are capped at 8 milliseconds, so that later losses are soon noticed.
  %other = call i64 @onert_pool_word(ptr %state, i64 12)
  %known = icmp ne i64 %other, 0
  br i1 %known, label %weigh, label %look
weigh:
  %one = lshr i64 %other, 6
  %gained = sub i64 %one, %time
  %before = call i64 @onert_pool_word(ptr %state, i64 9)
  %credit = add i64 %before, %gained
  %more = icmp sgt i64 %credit, 8000000
  %most = select i1 %more, i64 8000000, i64 %credit
  call void @onert_pool_set(ptr %state, i64 9, i64 %most)
  %bound = call i64 @bound(i64 %other, i64 4000000)
  %least = sub i64 0, %bound
  %worse = icmp slt i64 %most, %least
  br i1 %worse, label %again, label %look
again:
  call void @try(ptr %state, i64 %threads, i1 true)
  br label %done
look:
  %left = call i64 @onert_pool_word(ptr %state, i64 3)
  %over = icmp sle i64 %left, 0
  br i1 %over, label %ask, label %done
ask:
  ; Held up for less than a 64th of the time with all threads in use: the other load is gone.
  %level = call i64 @onert_pool_word(ptr %state, i64 1)
  %all = icmp eq i64 %level, 0
  %held = call i64 @onert_pool_word(ptr %state, i64 10)
  %pause = call i64 @onert_pool_word(ptr %state, i64 4)
  %part = lshr i64 %pause, 6
  %rarely = icmp slt i64 %held, %part
  %quiet = and i1 %all, %rarely
  %calm = and i1 %quiet, %known
  br i1 %calm, label %end, label %begin
end:
  call void @onert_pool_set(ptr %state, i64 0, i64 0)
  call void @onert_pool_set(ptr %state, i64 10, i64 0)
  br label %done
begin:
  call void @try(ptr %state, i64 %threads, i1 false)
  br label %done
done:
  ret void
}

; The same for a run of a try. It ends after 16 milliseconds and at least two runs, or when it has lost too much: with
; more threads, as much as another program's time slice; with fewer, which wait less, a quarter of that. It becomes the
; current choice if its runs were faster; with fewer threads, a sixteenth faster: of two choices with equal means, the
; one with more threads is faster for runs that are not held up.
define internal void @tried(ptr %state, i64 %time) alwaysinline {
entry:
  call void @increase(ptr %state, i64 7, i64 %time)
  call void @increase(ptr %state, i64 8, i64 64)
  %kept_time = call i64 @onert_pool_word(ptr %state, i64 5)
  %kept_runs = call i64 @onert_pool_word(ptr %state, i64 6)
  %kept = call i64 @mean(i64 %kept_time, i64 %kept_runs)
  %tried = call i64 @onert_pool_word(ptr %state, i64 7)
  %runs = call i64 @onert_pool_word(ptr %state, i64 8)
  %product = mul i64 %kept, %runs
  %usual = lshr i64 %product, 12
  %lost = sub i64 %tried, %usual
  %level = call i64 @onert_pool_word(ptr %state, i64 1)
  %tried_level = call i64 @onert_pool_word(ptr %state, i64 2)
  %is_more = icmp ult i64 %tried_level, %level
  %much_less = select i1 %is_more, i64 4000000, i64 1000000
  %bound = call i64 @bound(i64 %kept, i64 %much_less)
  %much = icmp sgt i64 %lost, %bound
  %full = icmp sgt i64 %tried, 16000000
  %several = icmp ugt i64 %runs, 64
  %long = and i1 %full, %several
  %over = or i1 %much, %long
  br i1 %over, label %decide, label %done
decide:
  %mean = call i64 @mean(i64 %tried, i64 %runs)
  %sixteenth = lshr i64 %mean, 4
  %margin = select i1 %is_more, i64 0, i64 %sixteenth
  %little_more = add i64 %mean, %margin
  %faster = icmp slt i64 %little_more, %kept
  br i1 %faster, label %change, label %stay
change:
  %mine = call i64 @onert_pool_word(ptr %state, i64 1)
  %other = call i64 @onert_pool_word(ptr %state, i64 2)
  call void @onert_pool_set(ptr %state, i64 1, i64 %other)
  call void @onert_pool_set(ptr %state, i64 2, i64 %mine)
  call void @onert_pool_set(ptr %state, i64 5, i64 %tried)
  call void @onert_pool_set(ptr %state, i64 6, i64 %runs)
  call void @onert_pool_set(ptr %state, i64 12, i64 %kept)
  call void @keep(ptr %state, i64 32000000)
  br label %done
stay:
  %earlier = call i64 @onert_pool_word(ptr %state, i64 12)
  %first = icmp eq i64 %earlier, 0
  %telling = or i1 %long, %first
  %found = select i1 %telling, i64 %mean, i64 %earlier
  call void @onert_pool_set(ptr %state, i64 12, i64 %found)
  ; The next try comes after 24 times what this one lost, or 48 times if the previous one lost too, limited to between
  ; 32 and 512 milliseconds.
  %pause_before = call i64 @onert_pool_word(ptr %state, i64 4)
  %in_a_row = icmp ugt i64 %pause_before, 32000000
  %times = select i1 %in_a_row, i64 48, i64 24
  %long_after = mul i64 %lost, %times
  %early = icmp slt i64 %long_after, 32000000
  %least = select i1 %early, i64 32000000, i64 %long_after
  %late = icmp sgt i64 %least, 512000000
  %pause = select i1 %late, i64 512000000, i64 %least
  call void @keep(ptr %state, i64 %pause)
  br label %done
done:
  ret void
}
