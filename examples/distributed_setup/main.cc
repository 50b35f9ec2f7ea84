// The smallest cluster: one ps holds the model, one worker trains it, in a session that initialises or restores the
// model and ends both processes in order. supervisor.cc does the same in a Supervisor's session.
#include "examples/digits/train.h"

int main(int argc, char** argv) {
  return TrainDigits(argc, argv, {.name = "hogwild", .parameters = {{"server_rule", "adam:learning_rate=0.001"}}},
                     /*steps=*/1500);
}
