/* Runs a bundle on files: run WEIGHTS MUTABLES_IN MUTABLES_OUT [TIMES [NUMBER]]. Exits with the entry's return value.
 *
 * Compiled with -include NAME.h -DCONFIG=NAME_config -DENTRY=NAME, or -DENTRIES=A,B,... of which NUMBER selects one.
 * With TIMES the entry is called that often, and the minimum time of a call in microseconds is printed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#ifndef ENTRIES
#define ENTRIES ENTRY
#endif

static int (*const entries[])(const uint8_t *, uint8_t *, uint8_t *) = {ENTRIES};

static uint8_t *area(size_t size) {
  uint8_t *raw = (uint8_t *)calloc(1, size + 64);
  if (raw == NULL) exit(101);
  return (uint8_t *)(((uintptr_t)raw + 63) / 64 * 64);
}

static void fill(uint8_t *target, size_t size, const char *path) {
  FILE *file = fopen(path, "rb");
  if (file == NULL || fread(target, 1, size, file) != size || fgetc(file) != EOF) exit(102);
  fclose(file);
}

int main(int argc, char **argv) {
  uint8_t *constants, *mutables, *activations;
  FILE *out;
  int code = 0, i, times, entry;
  double best = 1e30;
  if (argc < 4) return 100;
  times = argc > 4 ? atoi(argv[4]) : 1;
  entry = argc > 5 ? atoi(argv[5]) : 0;
  constants = area(CONFIG.constantWeightVarsMemSize);
  mutables = area(CONFIG.mutableWeightVarsMemSize);
  activations = area(CONFIG.activationsMemSize);
  memset(activations, 0xAA, CONFIG.activationsMemSize); /* entries must not rely on their contents */
  fill(constants, CONFIG.constantWeightVarsMemSize, argv[1]);
  fill(mutables, CONFIG.mutableWeightVarsMemSize, argv[2]);
  for (i = 0; i < times && code == 0; ++i) {
    struct timespec start, stop;
    double took;
    clock_gettime(CLOCK_MONOTONIC, &start);
    code = entries[entry](constants, mutables, activations);
    clock_gettime(CLOCK_MONOTONIC, &stop);
    took = (double)(stop.tv_sec - start.tv_sec) * 1e6 + (double)(stop.tv_nsec - start.tv_nsec) / 1e3;
    if (took < best) best = took;
  }
  if (argc > 4) printf("%.3f\n", best);
  out = fopen(argv[3], "wb");
  if (out == NULL || fwrite(mutables, 1, CONFIG.mutableWeightVarsMemSize, out) != CONFIG.mutableWeightVarsMemSize)
    return 103;
  fclose(out);
  return code;
}
