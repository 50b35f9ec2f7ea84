// The flags that all programs which learn the digits have, read in one place: each of them has defaults of its own.
// Used by main, before there are threads.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>

#include "examples/digits/input.h"

namespace CLI {
class App;
}

struct ExampleFlags {
  int64_t steps = 2000;
  size_t batch_size = 50;
  uint64_t seed = 1;
  std::string data_dir;  // MNIST's four files; empty: the digits
  std::string csv = DefaultCsv();
};

// Whose flags have been taken out of the command line before: --help and messages about typing mistakes know them, too.
enum class TakenBefore : uint8_t {
  kTask,              // by TaskConfig::FromCommandLine
  kTaskAndAlgorithm,  // by AlgorithmChoice::FromCommandLine as well
};

// For a program that has further flags: adds them to `app`, which keeps a reference to `flags`.
void AddExampleFlags(CLI::App& app, ExampleFlags& flags);
// --help ends the process with 0, a mistake with one line and 2.
void ParseOrExit(CLI::App& app, int argc, char** argv, TakenBefore taken = TakenBefore::kTaskAndAlgorithm);

// All that a program has: what is left of the command line, and `standard` where nothing is said. Ends the process as
// ParseOrExit does.
ExampleFlags ParseExampleFlags(int argc, char** argv, ExampleFlags standard,
                               TakenBefore taken = TakenBefore::kTaskAndAlgorithm);
