/* Classifies one picture and prints its class. prj.conf must grant the stack that onert_bundle --report prints. */
#include <zephyr/kernel.h>
#include <zephyr/sys/printk.h>

#include "digits.h"

static GLOW_MEM_ALIGN(DIGITS_MEM_ALIGN) uint8_t mutables[DIGITS_MUTABLE_MEM_SIZE];
static GLOW_MEM_ALIGN(DIGITS_MEM_ALIGN) uint8_t activations[DIGITS_ACTIVATIONS_MEM_SIZE];

int main(void) {
  int8_t *pixels = (int8_t *)mutables + DIGITS_serving_default_image_0;
  const int8_t *scores = (const int8_t *)mutables + DIGITS_StatefulPartitionedCall_1_0;
  int code, i, best = 0;

  if (digits_verify(digits_weights) != GLOW_SUCCESS) {
    printk("the header is not the object's\n");
    return 1;
  }
  for (i = 0; i < DIGITS_serving_default_image_0_SIZE; ++i) pixels[i] = (int8_t)(i % 16);
  code = digits(digits_weights, mutables, activations);
  if (code != GLOW_SUCCESS) {
    printk("error code %d\n", code);
    return 1;
  }
  for (i = 1; i < DIGITS_StatefulPartitionedCall_1_0_SIZE; ++i)
    if (scores[i] > scores[best]) best = i;
  printk("class %d\n", best);
  return 0;
}
