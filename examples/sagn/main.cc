// SAGN, synchronous accumulated gradients normalisation: each worker takes five steps of its own and contributes the
// mean of its five gradients to a synchronous round; the ps apply the mean over all workers with Adam.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a round of five minibatches of each worker.
  return TrainDigits(argc, argv,
                     {.name = "sagn",
                      .parameters = {{"window", "5"},
                                     {"worker_rule", "sgd:learning_rate=0.1"},
                                     {"server_rule", "adam:learning_rate=0.002"}}},
                     /*steps=*/400);
}
