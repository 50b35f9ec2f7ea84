// DiLoCo: each worker takes fifty AdamW steps of its own; then all wait, and the ps move the shared values with
// Nesterov's momentum along the mean of the workers' changes. This sends a fiftieth of what synchronous SGD sends.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  // A step is a round of fifty minibatches of each worker.
  return TrainDigits(argc, argv,
                     {.name = "diloco",
                      .parameters = {{"window", "50"},
                                     {"worker_rule", "adamw:learning_rate=0.001"},
                                     {"server_rule", "momentum:learning_rate=0.7,momentum=0.9,nesterov=1"}}},
                     /*steps=*/16);
}
