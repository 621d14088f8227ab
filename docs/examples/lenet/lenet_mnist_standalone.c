/* Classifies pictures of digits with the bundle lenet_mnist, and shows step by step how to use a bundle.
 *
 *     lenet_mnist_standalone WEIGHTS IMAGE...
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "image.h"
#include "lenet_mnist.h"

/* 1. Memory areas, with the sizes and the alignment in the bundle's configuration. */
static uint8_t *allocate(size_t size) {
  size_t alignment = lenet_mnist_config.alignment;
  size_t whole = (size + alignment - 1) / alignment * alignment;
  uint8_t *area = (uint8_t *)aligned_alloc(alignment, whole ? whole : alignment);
  if (area == NULL) {
    fprintf(stderr, "no memory for %lu bytes\n", (unsigned long)size);
    exit(1);
  }
  memset(area, 0, whole);
  return area;
}

/* 2. The weights, which must be exactly as long as the configuration says. */
static void load_weights(const char *path, uint8_t *area) {
  size_t size = lenet_mnist_config.constantWeightVarsMemSize;
  FILE *file = fopen(path, "rb");
  if (file == NULL || fread(area, 1, size, file) != size || fgetc(file) != EOF) {
    fprintf(stderr, "%s does not hold the %lu bytes of weights\n", path, (unsigned long)size);
    exit(1);
  }
  fclose(file);
}

/* 3. A variable's offset, found by the variable's name in the model. */
static float *variable(uint8_t *mutables, const char *name, size_t elements) {
  const SymbolTableEntry *symbol = bundle_find_symbol(&lenet_mnist_config, name);
  if (symbol == NULL || symbol->kind != 1 || symbol->size != elements) {
    fprintf(stderr, "the bundle has no variable %s of %lu elements\n", name, (unsigned long)elements);
    exit(1);
  }
  return (float *)GLOW_GET_ADDR(mutables, symbol->offset);
}

int main(int argc, char **argv) {
  uint8_t *constants, *mutables, *activations;
  float *data, *softmax;
  int i, failed = 0;
  if (argc < 3) {
    fprintf(stderr, "usage: %s WEIGHTS IMAGE...\n", argv[0]);
    return 2;
  }
  constants = allocate(lenet_mnist_config.constantWeightVarsMemSize);
  mutables = allocate(lenet_mnist_config.mutableWeightVarsMemSize);
  activations = allocate(lenet_mnist_config.activationsMemSize);
  load_weights(argv[1], constants);
  data = variable(mutables, "data", 28 * 28);
  softmax = variable(mutables, "softmax", 10);
  for (i = 2; i < argc; ++i) {
    unsigned char pixels[28 * 28];
    const char *wrong = read_image(argv[i], 28, 28, pixels);
    int p, best = 0, code;
    if (wrong != NULL) {
      fprintf(stderr, "%s: %s\n", argv[i], wrong);
      failed = 1;
      continue;
    }
    /* 4. Inputs go into the mutables, 5. the entry point runs the network, 6. outputs are in the mutables. */
    for (p = 0; p < 28 * 28; ++p) data[p] = (float)pixels[p] / 255.0f;
    code = lenet_mnist(constants, mutables, activations);
    if (code != GLOW_SUCCESS) {
      fprintf(stderr, "lenet_mnist returned error code %d\n", code);
      return 1;
    }
    for (p = 1; p < 10; ++p)
      if (softmax[p] > softmax[best]) best = p;
    printf("%s\nResult: %d\nConfidence: %f\n", argv[i], best, softmax[best]);
  }
  free(constants);
  free(mutables);
  free(activations);
  return failed;
}
