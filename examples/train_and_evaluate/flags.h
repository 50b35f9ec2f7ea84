// The flags of this example, beside those of all examples. Used by main.
#pragma once

#include <cstdint>

#include "examples/digits/example_flags.h"

struct Flags : ExampleFlags {
  int64_t save_steps = 100;
  double throttle_secs = 1;
  double start_delay_secs = 0;
  double patience_secs = 86400;
  double stop_at_accuracy = 0;  // 0: no early stopping
};

// Parses the rest of the command line. --help ends the process with 0; a mistake ends it with one line and 2.
Flags ParseFlags(int argc, char** argv);
