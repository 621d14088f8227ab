/* Start-up code for a bare-metal board: runs each entry of the bundle once on linked-in inputs and returns the results.
 *
 * Uses no library: vector table, stack, and semihosting for the results. Compiled with -include NAME.h
 * -DENTRIES=A,B,... -DCOUNT=... (of entries) -DMUTABLES=... -DACTIVATIONS=... (sizes). Writes the mutables to "made",
 * and to "told" three words per entry: its return value, its instructions (0 if they cannot be counted), and bytes of
 * stack.
 */
#include <stdint.h>

extern uint8_t constants[], given[], stack_low[], stack_top[];

static int (*const entries[COUNT])(const uint8_t *, uint8_t *, uint8_t *) = {ENTRIES};
static uint32_t told[COUNT][3];
static uint8_t mutables[MUTABLES + 1] __attribute__((aligned(64)));
static uint8_t activations[ACTIVATIONS + 1] __attribute__((aligned(64)));

#define PAINT 0xA5A5A5A5u
#define FAULT 99u

#if defined(__arm__)
static uintptr_t host(uintptr_t what, void *arguments) {
  register uintptr_t r0 __asm__("r0") = what;
  register void *r1 __asm__("r1") = arguments;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

#define WORD(address) (*(volatile uint32_t *)(address))
/* SysTick: 24 bits at 25 MHz; with -icount shift=0 an instruction takes a nanosecond. */
static void begin_count(void) {
  WORD(0xE000E014) = 0xFFFFFF;
  WORD(0xE000E018) = 0;
  WORD(0xE000E010) = 5;
}
static uint32_t counted(void) { return (0xFFFFFF - WORD(0xE000E018)) * NANOSECONDS; }

static void prepare(void) {
  WORD(0xE000ED14) |= 8; /* CCR.UNALIGN_TRP */
#if UNIT
  WORD(0xE000ED88) |= 0xF << 20; /* CPACR: enable the floating-point and vector unit */
  __asm__ volatile("dsb\n isb" ::: "memory");
#endif
}
#else
static uintptr_t host(uintptr_t what, void *arguments) {
  register uintptr_t a0 __asm__("a0") = what;
  register void *a1 __asm__("a1") = arguments;
  __asm__ volatile(
      ".option push\n.option norvc\n.balign 16\nslli x0, x0, 0x1f\nebreak\nsrai x0, x0, 7\n.option pop\n"
      : "+r"(a0) : "r"(a1) : "memory");
  return a0;
}
static uint32_t started;
static uint32_t instructions(void) {
  uint32_t now;
  __asm__ volatile("csrr %0, minstret" : "=r"(now));
  return now;
}
static void begin_count(void) { started = instructions(); }
static uint32_t counted(void) { return instructions() - started; }
static void prepare(void) {}
#endif

static void leave(uintptr_t code) {
  uintptr_t block[2] = {0x20026, code};
  for (;;) host(0x20, block); /* SYS_EXIT_EXTENDED */
}

static void send(const char *name, uintptr_t length, const void *from, uintptr_t bytes) {
  uintptr_t opened[3] = {(uintptr_t)name, 5, length}; /* wb */
  uintptr_t file = host(0x01, opened);
  uintptr_t block[3] = {file, (uintptr_t)from, bytes};
  if (file == (uintptr_t)-1 || host(0x05, block) != 0) leave(98);
  host(0x02, block);
}

void fault(void) { leave(FAULT); }

static void __attribute__((noinline)) one(uint32_t number) {
  uintptr_t frame = (uintptr_t)__builtin_frame_address(0);
  volatile uint32_t *word, *below = (volatile uint32_t *)(frame - 128);
  uintptr_t at;
  for (at = 0; at != ACTIVATIONS; ++at) activations[at] = 0xAA; /* entries must not rely on their contents */
  for (word = (uint32_t *)stack_low; word < below; ++word) *word = PAINT;
  begin_count();
  told[number][0] = (uint32_t)entries[number](constants, mutables, activations);
  told[number][1] = counted();
  for (word = (uint32_t *)stack_low; *word == PAINT; ++word) {
  }
  told[number][2] = (uint32_t)(frame - (uintptr_t)word);
}

void run(void) {
  uintptr_t at;
  uint32_t number;
  prepare();
  for (at = 0; at != MUTABLES; ++at) mutables[at] = given[at];
  for (number = 0; number != COUNT; ++number) one(number);
  send("made", 4, mutables, MUTABLES);
  send("told", 4, told, sizeof told);
  leave(0);
}

#if defined(__arm__)
__attribute__((section(".start"), used)) static const uintptr_t vectors[16] = {
    (uintptr_t)stack_top, (uintptr_t)run,   (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault,
    (uintptr_t)fault,     (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault,
    (uintptr_t)fault,     (uintptr_t)fault, (uintptr_t)fault, (uintptr_t)fault};
#else
__attribute__((section(".start"), naked, used)) void _start(void) {
  __asm__ volatile(
      "la t0, fault\n csrw mtvec, t0\n la sp, stack_top\n j run\n.balign 4\n");
}
#endif

/* Data linked in beside the code. */
__asm__(
    ".section .rodata.constants,\"a\"\n.balign 64\n.global constants\nconstants:\n.incbin \"" WEIGHTS "\"\n"
    ".global given\ngiven:\n.incbin \"given\"\n.previous\n");
