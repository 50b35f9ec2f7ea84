// Asynchronous elastic averaging SGD: each worker trains its own model, and every ten minibatches the worker and the
// centre on the ps pull each other closer by a fifth of their distance. The centre is the result.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is an exchange, one per ten minibatches.
  return TrainDigits(
      argc, argv,
      {.name = "aeasgd", .parameters = {{"window", "10"}, {"alpha", "0.2"}, {"worker_rule", "sgd:learning_rate=0.1"}}},
      /*steps=*/300);
}
