// Accumulated gradient normalisation: like DOWNPOUR, but the result of a window is divided by its number of
// minibatches, so that many workers with long windows don't push the shared values too far.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a commit of five minibatches.
  return TrainDigits(argc, argv,
                     {.name = "agn", .parameters = {{"window", "5"}, {"worker_rule", "sgd:learning_rate=0.2"}}},
                     /*steps=*/600);
}
