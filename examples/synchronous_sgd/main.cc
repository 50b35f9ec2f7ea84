// Synchronous SGD: an update is the mean of all workers' gradients, and all wait for it. The result is that of one
// worker with a larger minibatch.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a round.
  return TrainDigits(argc, argv, {.name = "synchronous", .parameters = {{"server_rule", "sgd:learning_rate=0.2"}}},
                     /*steps=*/800);
}
