// DOWNPOUR without adaptive rates: a worker takes five steps of plain SGD, the ps add their sum, and the worker goes on
// from the values that come back.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a commit of five minibatches.
  return TrainDigits(
      argc, argv, {.name = "downpour_easy", .parameters = {{"window", "5"}, {"worker_rule", "sgd:learning_rate=0.05"}}},
      /*steps=*/500,
      "\nThe Distributed TensorFlow Guide's own settings, with Adagrad on the ps: "
      "--server_rule=adagrad:learning_rate=0.01");
}
