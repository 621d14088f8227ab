// Classifies one picture again and again and prints its class.
#include <Arduino.h>
#include <digits.h>

static GLOW_MEM_ALIGN(DIGITS_MEM_ALIGN) uint8_t mutables[DIGITS_MUTABLE_MEM_SIZE];
static GLOW_MEM_ALIGN(DIGITS_MEM_ALIGN) uint8_t activations[DIGITS_ACTIVATIONS_MEM_SIZE];

void setup() {
  Serial.begin(115200);
  if (digits_verify(digits_weights) != GLOW_SUCCESS) Serial.println("the header is not the object's");
}

void loop() {
  int8_t *pixels = reinterpret_cast<int8_t *>(mutables + DIGITS_serving_default_image_0);
  const int8_t *scores = reinterpret_cast<const int8_t *>(mutables + DIGITS_StatefulPartitionedCall_1_0);
  int best = 0;
  for (int i = 0; i < DIGITS_serving_default_image_0_SIZE; ++i) pixels[i] = static_cast<int8_t>(i % 16);
  const int code = digits(digits_weights, mutables, activations);
  for (int i = 1; i < DIGITS_StatefulPartitionedCall_1_0_SIZE; ++i)
    if (scores[i] > scores[best]) best = i;
  Serial.println(code == GLOW_SUCCESS ? best : code);
  delay(1000);
}
