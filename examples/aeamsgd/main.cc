// Asynchronous elastic averaging with Nesterov's momentum (EAMSGD): like AEASGD, but between exchanges each worker
// moves with momentum, and looks ahead along it. The centre is the result.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is an exchange, one per ten minibatches.
  return TrainDigits(argc, argv,
                     {.name = "aeamsgd",
                      .parameters = {{"window", "10"},
                                     {"alpha", "0.2"},
                                     {"momentum", "0.9"},
                                     {"worker_rule", "sgd:learning_rate=0.01"}}},
                     /*steps=*/300);
}
