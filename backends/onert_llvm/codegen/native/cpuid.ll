; The x86-64 feature queries. The functions are raw machine code, because without an assembler for the target LLVM has
; no other form for these instructions. All follow the System V calling convention, on every system.

; void cpuid(uint32_t found[4], uint32_t leaf, uint32_t subleaf): push rbx; mov eax, esi; mov ecx, edx; cpuid;
; mov [rdi], eax; mov [rdi+4], ebx; mov [rdi+8], ecx; mov [rdi+12], edx; pop rbx; ret
define x86_64_sysvcc void @onert.cpuid(ptr %found, i32 %leaf, i32 %subleaf) noinline nounwind prologue [20 x i8]
    c"\53\89\f0\89\d1\0f\a2\89\07\89\5f\04\89\4f\08\89\57\0c\5b\c3" {
  unreachable
}

; uint32_t xgetbv(void), the low half of XCR0: xor ecx, ecx; xgetbv; ret
define x86_64_sysvcc i32 @onert.xgetbv() noinline nounwind prologue [6 x i8] c"\31\c9\0f\01\d0\c3" {
  unreachable
}
