// The options of a Dataset's stages, and the functions that a program gives them. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/example.h"
#include "muster/data/example_stream.h"

namespace muster {

// Changes an example in place, or replaces it. Must give the same result for the same example: it may be called by
// several threads at once, and again after a restart. An error ends the stream.
using MapFunction = std::function<absl::Status(Example&)>;

struct MapOptions {
  // If more than one, this many threads make examples beside the thread that draws them, which gets them in order.
  int threads = 1;
};

struct ShuffleOptions {
  uint64_t seed = 0;
  // Number of examples from which the next is drawn at random. 0: all. A source in memory is shuffled as a whole by the
  // order of its rows, without copying any; of a source read from files this many examples are held in memory.
  size_t buffer_size = 0;
  // True: a new order in each epoch (with Repeat after it); false: always the same.
  bool reshuffle_each_iteration = true;
};

struct InterleaveOptions {
  size_t cycle_length = 4;  // number of sources read at the same time
  size_t block_length = 1;  // number of examples taken from each in turn
};

// Opens a stream of examples at its beginning.
using OpenStreamFunction = std::function<absl::StatusOr<std::unique_ptr<ExampleStream>>()>;

}  // namespace muster
