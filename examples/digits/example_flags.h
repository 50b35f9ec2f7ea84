// The flags that all programs which learn the digits share, parsed in one place; each program has its own defaults.
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
  // The first lines of --help: what the program does, and by which algorithm.
  std::string description = "Trains a small convolutional network on handwritten digits.";
};

// Which parsers have already taken their flags out of the command line: --help and messages about mistyped flags
// include them.
enum class TakenBefore : uint8_t {
  kNothing,           // a program that knows no cluster
  kTask,              // by TaskConfig::FromCommandLine
  kTaskAndAlgorithm,  // by AlgorithmChoice::FromCommandLine as well
};

// For a program with further flags: adds the shared ones to `app`, which keeps a reference to `flags`.
void AddExampleFlags(CLI::App& app, ExampleFlags& flags, TakenBefore taken = TakenBefore::kTaskAndAlgorithm);
// A check for CLI11's options.
std::string NumberFromZero(const std::string& text);
// --help ends the process with 0; a mistake ends it with one line and 2.
void ParseOrExit(CLI::App& app, int argc, char** argv, TakenBefore taken = TakenBefore::kTaskAndAlgorithm);

// Returns a description of a program that trains by this algorithm, with what `muster algorithms` says of it.
std::string ByAlgorithm(const std::string& name);

// For a program without further flags: parses the rest of the command line; flags that aren't given are as in
// `standard`. Ends the process as ParseOrExit does.
ExampleFlags ParseExampleFlags(int argc, char** argv, ExampleFlags standard,
                               TakenBefore taken = TakenBefore::kTaskAndAlgorithm);
