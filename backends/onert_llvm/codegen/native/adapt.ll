; How many of a pool's threads take part in a run; joined to `pool.ll`.
;
; Where other programs use the processors, a thread may lose its own in the middle of a piece, for some milliseconds, and
; all others wait for it. How much that costs depends on how long runs are and on how the system gives turns. So when a
; caller was held up for long enough, runs of its program are timed with half the threads, or twice as many, and the way
; that took less time is kept for a while. Nothing is timed before somebody was held up, and nothing after a while in which
; all threads were at work and nobody was.

; What is known of a program's runs: 0 phase, 1 threads by which power of two fewer than there are, 2 the same for the
; other way that is tried, 3 nanoseconds left until the next trial or window, 4 trials in a row that changed nothing, 5 and 6
; nanoseconds and runs of the way that is kept in this trial, 7 and 8 those of the other, 9 runs in this window, 10
; nanoseconds for which callers were held up, 11 when that was last, 12 how long it is from one trial to the next, 13 and 14
; nanoseconds and runs of late. Phases: 0 nothing is timed, 1 between trials, 2 to 13 the windows of a trial, the ways in
; turn.
%State = type [16 x i64]

; Run the commands on the calling thread alone.
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
  call void %fn(ptr %task, i64 0, i64 %tiles)
  %next = add i64 %i, 1
  %end = icmp eq i64 %next, %count
  br i1 %end, label %done, label %command
done:
  ret void
}

define internal i64 @word(ptr %state, i64 %number) alwaysinline {
  %place = getelementptr i64, ptr %state, i64 %number
  %value = load i64, ptr %place, align 8
  ret i64 %value
}

define internal void @set(ptr %state, i64 %number, i64 %value) alwaysinline {
  %place = getelementptr i64, ptr %state, i64 %number
  store i64 %value, ptr %place, align 8
  ret void
}

define internal void @increase(ptr %state, i64 %number, i64 %by) alwaysinline {
  %value = call i64 @word(ptr %state, i64 %number)
  %sum = add i64 %value, %by
  call void @set(ptr %state, i64 %number, i64 %sum)
  ret void
}

; So many threads by a power of two fewer, at least 1.
define internal i64 @fewer(i64 %threads, i64 %level) alwaysinline {
  %some = lshr i64 %threads, %level
  %none = icmp eq i64 %some, 0
  %least = select i1 %none, i64 1, i64 %some
  ret i64 %least
}

; A run from Python, where each argument takes time: the commands, how many there are, and the state.
define void @onert_pool_call(ptr %pool, ptr %call) {
  %commands = load ptr, ptr %call, align 8
  %countp = getelementptr i64, ptr %call, i64 1
  %count = load i64, ptr %countp, align 8
  %statep = getelementptr i64, ptr %call, i64 2
  %state = load ptr, ptr %statep, align 8
  call void @onert_pool_run(ptr %pool, ptr %commands, i64 %count, ptr %state)
  ret void
}

; Run the commands on the calling thread and the pool's workers, or some of them. One caller at a time. `state` is zeroed
; at first and belongs to the program; null is for runs that all threads share, whatever comes.
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
  %phase = call i64 @word(ptr %state, i64 0)
  %calm = icmp eq i64 %phase, 0
  br i1 %calm, label %all, label %timed
all:
  call void @share(ptr %pool, ptr %commands, i64 %count, i64 %threads)
  %after = load i64, ptr %sleptp, align 8
  %slept = sub i64 %after, %before
  %held = icmp ne i64 %slept, 0
  br i1 %held, label %note, label %done
note:
  call void @held_up(ptr %state, i64 %threads, i64 %slept)
  ret void
timed:
  %odd = and i64 %phase, 1
  %window = icmp ugt i64 %phase, 1
  %second = icmp ne i64 %odd, 0
  %other = and i1 %window, %second
  %which = select i1 %other, i64 2, i64 1
  %level = call i64 @word(ptr %state, i64 %which)
  %some = call i64 @fewer(i64 %threads, i64 %level)
  %single = icmp eq i64 %some, 1
  %start = call i64 @now()
  br i1 %single, label %one, label %several
one:
  call void @alone(ptr %commands, i64 %count)
  br label %count_it
several:
  call void @share(ptr %pool, ptr %commands, i64 %count, i64 %some)
  br label %count_it
count_it:
  %stop = call i64 @now()
  %time = sub i64 %stop, %start
  %after2 = load i64, ptr %sleptp, align 8
  %slept2 = sub i64 %after2, %before
  call void @timed(ptr %state, i64 %threads, i64 %time, i64 %slept2)
  br label %done
done:
  ret void
}

; A caller was held up for so long while nothing is timed. A trial begins where that came to 6 milliseconds, without a
; break of 100.
define internal void @held_up(ptr %state, i64 %threads, i64 %slept) noinline {
entry:
  %now = call i64 @now()
  %last = call i64 @word(ptr %state, i64 11)
  call void @set(ptr %state, i64 11, i64 %now)
  %since = sub i64 %now, %last
  %long = icmp sgt i64 %since, 100000000
  %earlier = call i64 @word(ptr %state, i64 10)
  %kept = select i1 %long, i64 0, i64 %earlier
  %sum = add i64 %kept, %slept
  call void @set(ptr %state, i64 10, i64 %sum)
  %enough = icmp sgt i64 %sum, 6000000
  br i1 %enough, label %try, label %done
try:
  call void @set(ptr %state, i64 4, i64 0)
  call void @trial(ptr %state, i64 %threads)
  br label %done
done:
  ret void
}

; Begin a trial of half the threads or twice as many: where both are possible in turn. A window takes 16 milliseconds of
; runs, which is long against the turns in which Linux gives processors away, and at least two runs.
define internal void @trial(ptr %state, i64 %threads) {
entry:
  %level = call i64 @word(ptr %state, i64 1)
  %now = call i64 @fewer(i64 %threads, i64 %level)
  %least = icmp eq i64 %now, 1
  %most = icmp eq i64 %level, 0
  %before = call i64 @word(ptr %state, i64 2)
  %were_fewer = icmp ugt i64 %before, %level
  %up = or i1 %least, %were_fewer
  %not_most = xor i1 %most, true
  %more = and i1 %up, %not_most
  %by = select i1 %more, i64 -1, i64 1
  %other = add i64 %level, %by
  ; What an earlier trial of the same ways found counts half, so that a few of them tell what chance hides from one.
  %again = icmp eq i64 %before, %other
  %half = zext i1 %again to i64
  call void @lessen(ptr %state, i64 5, i64 %half)
  call void @lessen(ptr %state, i64 6, i64 %half)
  call void @lessen(ptr %state, i64 7, i64 %half)
  call void @lessen(ptr %state, i64 8, i64 %half)
  call void @set(ptr %state, i64 2, i64 %other)
  call void @set(ptr %state, i64 0, i64 2)
  call void @set(ptr %state, i64 3, i64 16000000)
  call void @set(ptr %state, i64 9, i64 0)
  call void @set(ptr %state, i64 10, i64 0)
  call void @set(ptr %state, i64 13, i64 0)
  call void @set(ptr %state, i64 14, i64 0)
  ret void
}

; Half of a word where `kept` is 1, and 0 where it is 0.
define internal void @lessen(ptr %state, i64 %number, i64 %kept) alwaysinline {
  %value = call i64 @word(ptr %state, i64 %number)
  %half = lshr i64 %value, 1
  %part = mul i64 %half, %kept
  call void @set(ptr %state, i64 %number, i64 %part)
  ret void
}

; How long 64 runs take.
define internal i64 @mean(i64 %time, i64 %runs) alwaysinline {
  %fine = shl i64 %time, 6
  %none = icmp eq i64 %runs, 0
  %some = select i1 %none, i64 1, i64 %runs
  %mean = udiv i64 %fine, %some
  ret i64 %mean
}

; A run took so long, of which its caller was held up for so long.
define internal void @timed(ptr %state, i64 %threads, i64 %time, i64 %slept) noinline {
entry:
  %negative = sub i64 0, %time
  call void @increase(ptr %state, i64 3, i64 %negative)
  call void @increase(ptr %state, i64 10, i64 %slept)
  %left = call i64 @word(ptr %state, i64 3)
  %over = icmp sle i64 %left, 0
  %phase = call i64 @word(ptr %state, i64 0)
  %between = icmp eq i64 %phase, 1
  br i1 %between, label %settled, label %window
settled:
  br i1 %over, label %look, label %on
on:
  ; Where the runs of 50 milliseconds took three quarters or less of what they took in the trial, the others may be gone.
  call void @increase(ptr %state, i64 13, i64 %time)
  call void @increase(ptr %state, i64 14, i64 1)
  %recent = call i64 @word(ptr %state, i64 13)
  %enough = icmp sgt i64 %recent, 50000000
  br i1 %enough, label %compare, label %done
compare:
  %count = call i64 @word(ptr %state, i64 14)
  call void @set(ptr %state, i64 13, i64 0)
  call void @set(ptr %state, i64 14, i64 0)
  %now = call i64 @mean(i64 %recent, i64 %count)
  %usual_time = call i64 @word(ptr %state, i64 5)
  %usual_runs = call i64 @word(ptr %state, i64 6)
  %usual = call i64 @mean(i64 %usual_time, i64 %usual_runs)
  %part_of_usual = lshr i64 %usual, 2
  %threshold = sub i64 %usual, %part_of_usual
  %quick = icmp slt i64 %now, %threshold
  %deprived = call i64 @word(ptr %state, i64 1)
  %some = icmp ne i64 %deprived, 0
  %gone = and i1 %quick, %some
  br i1 %gone, label %restart, label %done
restart:
  ; What was found before is no longer so.
  call void @set(ptr %state, i64 2, i64 %deprived)
  call void @set(ptr %state, i64 4, i64 0)
  br label %try
look:
  ; Held up for less than a 64th of the time with all threads at work: the others are gone.
  %level = call i64 @word(ptr %state, i64 1)
  %all = icmp eq i64 %level, 0
  %held = call i64 @word(ptr %state, i64 10)
  %period = call i64 @word(ptr %state, i64 12)
  %part = lshr i64 %period, 6
  %rarely = icmp slt i64 %held, %part
  %calm = and i1 %all, %rarely
  br i1 %calm, label %end, label %try
end:
  call void @set(ptr %state, i64 0, i64 0)
  call void @set(ptr %state, i64 10, i64 0)
  ret void
try:
  call void @trial(ptr %state, i64 %threads)
  ret void
window:
  %odd = and i64 %phase, 1
  %double = shl i64 %odd, 1
  %times = add i64 %double, 5
  %runs = add i64 %double, 6
  call void @increase(ptr %state, i64 %times, i64 %time)
  call void @increase(ptr %state, i64 %runs, i64 1)
  call void @increase(ptr %state, i64 9, i64 1)
  %here = call i64 @word(ptr %state, i64 9)
  %several = icmp ugt i64 %here, 1
  %full = and i1 %over, %several
  br i1 %full, label %next, label %done
next:
  call void @increase(ptr %state, i64 0, i64 1)
  call void @set(ptr %state, i64 3, i64 16000000)
  call void @set(ptr %state, i64 9, i64 0)
  %pair = icmp ne i64 %odd, 0
  br i1 %pair, label %weigh, label %done
weigh:
  ; More threads win by a sixteenth after two windows of each, fewer by a third after three; after six, fewer have to be
  ; faster by an eighth: where others come and go, chance speaks for fewer more often than it should.
  %time0 = call i64 @word(ptr %state, i64 5)
  %runs0 = call i64 @word(ptr %state, i64 6)
  %time1 = call i64 @word(ptr %state, i64 7)
  %runs1 = call i64 @word(ptr %state, i64 8)
  %mine = call i64 @word(ptr %state, i64 1)
  %other = call i64 @word(ptr %state, i64 2)
  %mean0 = call i64 @mean(i64 %time0, i64 %runs0)
  %mean1 = call i64 @mean(i64 %time1, i64 %runs1)
  %fewer_now = icmp ugt i64 %mine, %other
  %many = select i1 %fewer_now, i64 %mean1, i64 %mean0
  %few = select i1 %fewer_now, i64 %mean0, i64 %mean1
  %sixteenth = lshr i64 %many, 4
  %many_more = add i64 %many, %sixteenth
  %many_won = icmp slt i64 %many_more, %few
  %twice = icmp ugt i64 %phase, 4
  %many_early = and i1 %many_won, %twice
  %third = udiv i64 %few, 3
  %few_more = add i64 %few, %third
  %few_won = icmp slt i64 %few_more, %many
  %thrice = icmp ugt i64 %phase, 6
  %few_early = and i1 %few_won, %thrice
  %early = or i1 %many_early, %few_early
  %last = icmp eq i64 %phase, 13
  %decided = or i1 %early, %last
  br i1 %decided, label %decide, label %done
decide:
  %eighth = lshr i64 %few, 3
  %few_little = add i64 %few, %eighth
  %best_few = icmp slt i64 %few_little, %many
  %otherwise = xor i1 %best_few, %fewer_now
  br i1 %otherwise, label %change, label %stay
change:
  call void @set(ptr %state, i64 1, i64 %other)
  call void @set(ptr %state, i64 2, i64 %mine)
  call void @set(ptr %state, i64 4, i64 0)
  call void @set(ptr %state, i64 5, i64 %time1)
  call void @set(ptr %state, i64 6, i64 %runs1)
  call void @set(ptr %state, i64 7, i64 %time0)
  call void @set(ptr %state, i64 8, i64 %runs0)
  br label %wait
stay:
  %same = call i64 @word(ptr %state, i64 4)
  %more = add i64 %same, 1
  %often = icmp ugt i64 %more, 4
  %kept = select i1 %often, i64 4, i64 %more
  call void @set(ptr %state, i64 4, i64 %kept)
  br label %wait
wait:
  ; The next one comes after four times the time that this took, or after twice as many times while nothing changes.
  %outcomes = call i64 @word(ptr %state, i64 4)
  %shift = add i64 %outcomes, 2
  %took = add i64 %time0, %time1
  %pause = shl i64 %took, %shift
  call void @set(ptr %state, i64 3, i64 %pause)
  call void @set(ptr %state, i64 12, i64 %pause)
  call void @set(ptr %state, i64 0, i64 1)
  call void @set(ptr %state, i64 10, i64 0)
  br label %done
done:
  ret void
}
