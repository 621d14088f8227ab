; Computes a program's numbers for other lengths. `onert/ir/symbolic/instructions.py` defines the instructions, in the
; order of their opcodes here. Registers are 64 bits wide.

%Instruction = type { i32, i32, i32, i32, i32, i32 }
; An addend, the sum stored last, a register, what is stored (0 for 64 bits, 1 for the lower 32, 2 for a float64 as
; float32), the number of addresses, and whether a sum was stored.
%Group = type { i64, i64, i32, i32, i32, i32 }
; Instructions and their count, registers, tables, groups of stores, their count, and the addresses of all groups.
%Lengths = type { ptr, i64, ptr, ptr, ptr, i64, ptr }

declare { i64, i1 } @llvm.sadd.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.ssub.with.overflow.i64(i64, i64)
declare { i64, i1 } @llvm.smul.with.overflow.i64(i64, i64)
declare double @llvm.fabs.f64(double)

; Execute `count` instructions; false if one has no result, or a condition does not hold.
define internal i1 @numbers(ptr %code, i64 %count, ptr %registers, ptr %tables) nounwind {
entry:
  br label %each
each:
  %at = phi i64 [ 0, %entry ], [ %following, %next ]
  %all = icmp eq i64 %at, %count
  br i1 %all, label %done, label %one
one:
  %i = getelementptr %Instruction, ptr %code, i64 %at
  %opcode = load i32, ptr %i, align 4
  %outp = getelementptr %Instruction, ptr %i, i32 0, i32 1
  %out = load i32, ptr %outp, align 4
  %result = getelementptr i64, ptr %registers, i32 %out
  %firstp = getelementptr %Instruction, ptr %i, i32 0, i32 2
  %first = load i32, ptr %firstp, align 4
  %ap = getelementptr i64, ptr %registers, i32 %first
  %a = load i64, ptr %ap, align 8
  %secondp = getelementptr %Instruction, ptr %i, i32 0, i32 3
  %second = load i32, ptr %secondp, align 4
  %thirdp = getelementptr %Instruction, ptr %i, i32 0, i32 4
  %third = load i32, ptr %thirdp, align 4
  ; The second operand of these is no register.
  switch i32 %opcode, label %plain [
    i32 12, label %bounded
    i32 25, label %row
  ]
bounded:
  ; Unsigned, so that negative indices are out of range too.
  %wide = zext i32 %third to i64
  %inside = icmp ult i64 %a, %wide
  br i1 %inside, label %found, label %refused
found:
  %start = zext i32 %second to i64
  %place = add i64 %start, %a
  %elementp = getelementptr i64, ptr %tables, i64 %place
  %element = load i64, ptr %elementp, align 8
  br label %store
plain:
  %bp = getelementptr i64, ptr %registers, i32 %second
  %b = load i64, ptr %bp, align 8
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  switch i32 %opcode, label %refused [
    i32 0, label %add
    i32 1, label %sub
    i32 2, label %mul
    i32 3, label %divide
    i32 4, label %divide
    i32 5, label %neg
    i32 6, label %lt
    i32 7, label %le
    i32 8, label %eq
    i32 9, label %ne
    i32 10, label %greater
    i32 11, label %bool
    i32 13, label %require
    i32 14, label %tofloat
    i32 15, label %fadd
    i32 16, label %fsub
    i32 17, label %fmul
    i32 18, label %fdiv
    i32 19, label %flt
    i32 20, label %fle
    i32 21, label %feq
    i32 22, label %fne
    i32 23, label %round
    i32 24, label %round
    i32 26, label %finite
  ]
add:
  %sums = call { i64, i1 } @llvm.sadd.with.overflow.i64(i64 %a, i64 %b)
  br label %checked
sub:
  %differences = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 %a, i64 %b)
  br label %checked
mul:
  %products = call { i64, i1 } @llvm.smul.with.overflow.i64(i64 %a, i64 %b)
  br label %checked
neg:
  %negated = call { i64, i1 } @llvm.ssub.with.overflow.i64(i64 0, i64 %a)
  br label %checked
checked:
  %both = phi { i64, i1 } [ %sums, %add ], [ %differences, %sub ], [ %products, %mul ], [ %negated, %neg ]
  %exact = extractvalue { i64, i1 } %both, 0
  %over = extractvalue { i64, i1 } %both, 1
  br i1 %over, label %refused, label %store
divide:
  ; Rounded down as in Python; the remainder has the divisor's sign. Only positive divisors, as -1 might overflow.
  %above = icmp sgt i64 %b, 0
  br i1 %above, label %divided, label %refused
divided:
  %toward = sdiv i64 %a, %b
  %left = srem i64 %a, %b
  %below = icmp slt i64 %left, 0
  %less = sub i64 %toward, 1
  %more = add i64 %left, %b
  %quotient = select i1 %below, i64 %less, i64 %toward
  %rest = select i1 %below, i64 %more, i64 %left
  %whole = icmp eq i32 %opcode, 3
  %half = select i1 %whole, i64 %quotient, i64 %rest
  br label %store
lt:
  %islt = icmp slt i64 %a, %b
  br label %truth
le:
  %isle = icmp sle i64 %a, %b
  br label %truth
eq:
  %iseq = icmp eq i64 %a, %b
  br label %truth
ne:
  %isne = icmp ne i64 %a, %b
  br label %truth
bool:
  %isbool = icmp ne i64 %a, 0
  br label %truth
flt:
  %isflt = fcmp olt double %x, %y
  br label %truth
fle:
  %isfle = fcmp ole double %x, %y
  br label %truth
feq:
  %isfeq = fcmp oeq double %x, %y
  br label %truth
fne:
  %isfne = fcmp une double %x, %y
  br label %truth
truth:
  %is = phi i1 [ %islt, %lt ], [ %isle, %le ], [ %iseq, %eq ], [ %isne, %ne ], [ %isbool, %bool ], [ %isflt, %flt ], [ %isfle, %fle ], [ %isfeq, %feq ], [ %isfne, %fne ]
  %one.bit = zext i1 %is to i64
  %no.condition = icmp eq i32 %third, 0
  %kind = select i1 %is, i32 2, i32 1
  %as.wanted = icmp eq i32 %third, %kind
  %goes.on = or i1 %no.condition, %as.wanted
  br i1 %goes.on, label %store, label %refused
greater:
  %fourthp = getelementptr %Instruction, ptr %i, i32 0, i32 5
  %fourth = load i32, ptr %fourthp, align 4
  %thenp = getelementptr i64, ptr %registers, i32 %third
  %then = load i64, ptr %thenp, align 8
  %elsep = getelementptr i64, ptr %registers, i32 %fourth
  %else = load i64, ptr %elsep, align 8
  %isgreater = icmp sgt i64 %a, %b
  %chosen = select i1 %isgreater, i64 %then, i64 %else
  br label %store
require:
  %same = icmp eq i64 %a, %b
  br i1 %same, label %next, label %refused
row:
  ; Unsigned, so that negative rows are out of range too.
  %rows = zext i32 %third to i64
  %is.row = icmp ult i64 %a, %rows
  br i1 %is.row, label %cells, label %refused
cells:
  %widthp = getelementptr %Instruction, ptr %i, i32 0, i32 5
  %width = load i32, ptr %widthp, align 4
  %columns = zext i32 %width to i64
  %row.start = zext i32 %second to i64
  %before = mul i64 %a, %columns
  %first.cell = add i64 %row.start, %before
  %cellsp = getelementptr i64, ptr %tables, i64 %first.cell
  br label %cell
cell:
  %column = phi i64 [ 0, %cells ], [ %next.column, %cell ]
  %cellp = getelementptr i64, ptr %cellsp, i64 %column
  %word = load i64, ptr %cellp, align 8
  %targetp = getelementptr i64, ptr %result, i64 %column
  store i64 %word, ptr %targetp, align 8
  %next.column = add i64 %column, 1
  %is.last = icmp eq i64 %next.column, %columns
  br i1 %is.last, label %next, label %cell
tofloat:
  ; Every integer from -2^53 to 2^53 is a double.
  %shifted = add i64 %a, 9007199254740992
  %fits = icmp ule i64 %shifted, 18014398509481984
  %converted = sitofp i64 %a to double
  br i1 %fits, label %float, label %refused
fadd:
  %fsum = fadd double %x, %y
  br label %float
fsub:
  %fdifference = fsub double %x, %y
  br label %float
fmul:
  %fproduct = fmul double %x, %y
  br label %float
fdiv:
  %zero = fcmp oeq double %y, 0.0
  %fquotient = fdiv double %x, %y
  br i1 %zero, label %refused, label %float
round:
  ; Truncate, then correct by one if that was the wrong direction.
  %low = fcmp oge double %x, -9007199254740992.0
  %high = fcmp ole double %x, 9007199254740992.0
  %in = and i1 %low, %high
  br i1 %in, label %rounded, label %refused
rounded:
  %cut = fptosi double %x to i64
  %back = sitofp i64 %cut to double
  %toohigh = fcmp ogt double %back, %x
  %toolow = fcmp olt double %back, %x
  %down = sext i1 %toohigh to i64
  %up = zext i1 %toolow to i64
  %isfloor = icmp eq i32 %opcode, 23
  %step = select i1 %isfloor, i64 %down, i64 %up
  %rounding = add i64 %cut, %step
  br label %store
finite:
  %narrow = fptrunc double %x to float
  %widened = fpext float %narrow to double
  %is.narrow = icmp eq i32 %third, 1
  %nearest = select i1 %is.narrow, double %widened, double %x
  %size = call double @llvm.fabs.f64(double %nearest)
  %is.finite = fcmp olt double %size, 0x7FF0000000000000
  br i1 %is.finite, label %float, label %refused
float:
  %number = phi double [ %nearest, %finite ], [ %converted, %tofloat ], [ %fsum, %fadd ], [ %fdifference, %fsub ], [ %fproduct, %fmul ], [ %fquotient, %fdiv ]
  %bits = bitcast double %number to i64
  br label %store
store:
  %value = phi i64 [ %element, %found ], [ %exact, %checked ], [ %half, %divided ], [ %one.bit, %truth ], [ %chosen, %greater ], [ %bits, %float ], [ %rounding, %rounded ]
  store i64 %value, ptr %result, align 8
  br label %next
next:
  %following = add i64 %at, 1
  br label %each
refused:
  ret i1 false
done:
  ret i1 true
}

; Store registers, each plus an addend, into commands and constants: `groups` of addresses that get the same number, as
; `runtime/stretched_kernel.py` writes them. Most numbers are those of the previous lengths, and are there already.
define internal void @put(ptr %stores, i64 %groups, ptr %targets, ptr %registers) nounwind {
entry:
  %none = icmp eq i64 %groups, 0
  br i1 %none, label %done, label %group
group:
  %at = phi i64 [ 0, %entry ], [ %next, %stored ]
  %first = phi ptr [ %targets, %entry ], [ %end, %stored ]
  %g = getelementptr %Group, ptr %stores, i64 %at
  %all = load %Group, ptr %g, align 8
  %more = extractvalue %Group %all, 0
  %last.sum = extractvalue %Group %all, 1
  %register = extractvalue %Group %all, 2
  %kind = extractvalue %Group %all, 3
  %count = extractvalue %Group %all, 4
  %is.stored = extractvalue %Group %all, 5
  %end = getelementptr ptr, ptr %first, i32 %count
  %valuep = getelementptr i64, ptr %registers, i32 %register
  %value = load i64, ptr %valuep, align 8
  %sum = add i64 %value, %more
  %is.same = icmp eq i64 %sum, %last.sum
  %was.stored = icmp ne i32 %is.stored, 0
  %is.there = and i1 %is.same, %was.stored
  br i1 %is.there, label %stored, label %changed
changed:
  %sump = getelementptr %Group, ptr %g, i64 0, i32 1
  store i64 %sum, ptr %sump, align 8
  %flagp = getelementptr %Group, ptr %g, i64 0, i32 5
  store i32 1, ptr %flagp, align 4
  %is.word = icmp eq i32 %kind, 0
  br i1 %is.word, label %words, label %half
words:
  %wp = phi ptr [ %first, %changed ], [ %next.word, %words ]
  %word.target = load ptr, ptr %wp, align 8
  store i64 %sum, ptr %word.target, align 8
  %next.word = getelementptr ptr, ptr %wp, i64 1
  %last.word = icmp eq ptr %next.word, %end
  br i1 %last.word, label %stored, label %words
half:
  %double = bitcast i64 %value to double
  %float = fptrunc double %double to float
  %float.bits = bitcast float %float to i32
  %low = trunc i64 %sum to i32
  %is.float = icmp eq i32 %kind, 2
  %bits = select i1 %is.float, i32 %float.bits, i32 %low
  br label %halves
halves:
  %hp = phi ptr [ %first, %half ], [ %next.half, %halves ]
  %half.target = load ptr, ptr %hp, align 8
  store i32 %bits, ptr %half.target, align 4
  %next.half = getelementptr ptr, ptr %hp, i64 1
  %last.half = icmp eq ptr %next.half, %end
  br i1 %last.half, label %stored, label %halves
stored:
  %next = add i64 %at, 1
  %last = icmp eq i64 %next, %groups
  br i1 %last, label %done, label %group
done:
  ret void
}

; Execute the instructions and store their results; false, and nothing stored, if they have no result.
define i1 @onert_become(ptr %lengths) nounwind {
entry:
  %all = load %Lengths, ptr %lengths, align 8
  %code = extractvalue %Lengths %all, 0
  %count = extractvalue %Lengths %all, 1
  %registers = extractvalue %Lengths %all, 2
  %tables = extractvalue %Lengths %all, 3
  %fits = call i1 @numbers(ptr %code, i64 %count, ptr %registers, ptr %tables)
  br i1 %fits, label %put, label %refused
put:
  %stores = extractvalue %Lengths %all, 4
  %groups = extractvalue %Lengths %all, 5
  %targets = extractvalue %Lengths %all, 6
  call void @put(ptr %stores, i64 %groups, ptr %targets, ptr %registers)
  ret i1 true
refused:
  ret i1 false
}
