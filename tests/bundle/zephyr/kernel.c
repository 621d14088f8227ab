/* Runs an application's main as native_sim does: in a thread whose stack has the configured size. */
#define _GNU_SOURCE
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

extern int zephyr_main(void);

#define PAGE 4096
#define UP(size) (((size) + PAGE - 1) / PAGE * PAGE)

static ucontext_t kernel, thread;
static char said[4096];
static int code;

void printk(const char *text, ...) {
  static char line[256];
  va_list values;
  va_start(values, text);
  vsnprintf(line, sizeof line, text, values);
  va_end(values);
  strncat(said, line, sizeof said - strlen(said) - 1);
}

static void run(void) { code = zephyr_main(); }

int main(void) {
  char *stack = mmap(0, PAGE + UP(MAIN_STACK_SIZE), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (stack == MAP_FAILED || mprotect(stack, PAGE, PROT_NONE) != 0 || getcontext(&thread) != 0) abort();
  thread.uc_stack.ss_sp = stack + PAGE;
  thread.uc_stack.ss_size = UP(MAIN_STACK_SIZE);
  thread.uc_link = &kernel;
  makecontext(&thread, run, 0);
  swapcontext(&kernel, &thread);
  fputs(said, stdout);
  return code;
}
