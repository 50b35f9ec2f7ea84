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

// Changes an example in place, or makes another of it. The same result for the same example: it may be called by
// several threads at once, and again after a restart. An error ends the stream with it.
using MapFunction = std::function<absl::Status(Example&)>;

struct MapOptions {
  // More than one: examples are made by so many threads beside the one that draws them, and handed on in order.
  int threads = 1;
};

struct ShuffleOptions {
  uint64_t seed = 0;
  // Examples from which the next is drawn at random. 0: all of them. A source in memory is shuffled as a whole by the
  // order of its rows, without copying any; of a source that is read from files so many examples are held in memory.
  size_t buffer_size = 0;
  // A new order each epoch (Repeat behind it), or the same one.
  bool reshuffle_each_iteration = true;
};

struct InterleaveOptions {
  size_t cycle_length = 4;  // so many are read beside each other ...
  size_t block_length = 1;  // ... so many examples of each in turn
};

// Opens a stream of examples at its beginning.
using OpenStreamFunction = std::function<absl::StatusOr<std::unique_ptr<ExampleStream>>()>;

}  // namespace muster
