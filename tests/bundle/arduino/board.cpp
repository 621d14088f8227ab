// The board-specific part of an Arduino core, for an emulated Cortex-M4: start-up, clock, and a serial port that writes to
// the emulator's standard output. The first delay() ends the program.
#include <Arduino.h>

int main();

extern "C" {
extern uint8_t stack_top[];

static uintptr_t host(uintptr_t what, const void *argument) {
  register uintptr_t r0 __asm__("r0") = what;
  register const void *r1 __asm__("r1") = argument;
  __asm__ volatile("bkpt 0xab" : "+r"(r0) : "r"(r1) : "memory");
  return r0;
}

[[noreturn]] static void leave(uintptr_t code) {
  const uintptr_t block[2] = {0x20026, code};
  for (;;) host(0x20, block);  // SYS_EXIT_EXTENDED
}

void fault() { leave(99); }

extern void (*constructors_begin[])(), (*constructors_end[])();

void start() {
  *reinterpret_cast<volatile uint32_t *>(0xE000ED14) |= 8;           // CCR.UNALIGN_TRP
  *reinterpret_cast<volatile uint32_t *>(0xE000ED88) |= 0xF << 20;  // CPACR: enable the floating-point unit
  __asm__ volatile("dsb\n isb" ::: "memory");
  for (auto constructor = constructors_begin; constructor != constructors_end; ++constructor) (*constructor)();
  main();
  leave(98);
}

typedef void (*Vector)();
__attribute__((section(".start"), used)) static const Vector vectors[16] = {
    reinterpret_cast<Vector>(stack_top), start, fault, fault, fault, fault, fault, fault,
    fault,                               fault, fault, fault, fault, fault, fault, fault};

void init() {}
void delay(unsigned long) { leave(0); }
}

inline HardwareSerial::HardwareSerial(volatile uint8_t *, volatile uint8_t *, volatile uint8_t *, volatile uint8_t *,
                                      volatile uint8_t *, volatile uint8_t *)
    : _ubrrh(), _ubrrl(), _ucsra(), _ucsrb(), _ucsrc(), _udr() {}
void HardwareSerial::begin(unsigned long, uint8_t) {}
int HardwareSerial::available() { return 0; }
int HardwareSerial::peek() { return -1; }
int HardwareSerial::read() { return -1; }
int HardwareSerial::availableForWrite() { return 1; }
void HardwareSerial::flush() {}
size_t HardwareSerial::write(uint8_t letter) {
  host(0x03, &letter);  // SYS_WRITEC
  return 1;
}
HardwareSerial Serial(nullptr, nullptr, nullptr, nullptr, nullptr, nullptr);
