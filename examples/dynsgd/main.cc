// DynSGD: like DOWNPOUR, but the ps divide what a worker sends by 1 + the number of updates that others have made since
// that worker pulled, so that stale updates count for less.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a commit of five minibatches.
  return TrainDigits(argc, argv,
                     {.name = "dynsgd", .parameters = {{"window", "5"}, {"worker_rule", "sgd:learning_rate=0.1"}}},
                     /*steps=*/600);
}
