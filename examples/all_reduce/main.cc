// Synchronous SGD without ps: the workers average their gradients among themselves, and each applies the mean to its
// own copy of the model, which stays the same everywhere.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a round.
  return TrainDigits(argc, argv, {.name = "all_reduce", .parameters = {{"server_rule", "sgd:learning_rate=0.2"}}},
                     /*steps=*/800);
}
