// Synchronous SGD in which each worker has its own learning rate: it scales its gradient before the ps take the mean of
// all. So workers with smaller or noisier data can count for less.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a round.
  return TrainDigits(argc, argv,
                     {.name = "synchronous_different_rates",
                      .parameters = {{"rates", "0.1,0.2,0.3"}, {"server_rule", "sgd:learning_rate=1"}}},
                     /*steps=*/800);
}
