// One minibatch, and where minibatches come from.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// How far a reader of a data set has come: `offset` rows of its shard have been handed out in `epoch`. Goes into a
// checkpoint; a reader with the same data and options that is sought to it goes on with the very next batch.
struct DataPosition {
  int64_t epoch = 0;
  int64_t offset = 0;

  bool operator==(const DataPosition&) const = default;
};

// Owns its memory, so that it can be handed from thread to thread and be filled again without allocating. Not
// thread-safe.
struct Batch {
  std::vector<float> features;  // [size, width], row after row
  std::vector<int64_t> labels;  // [size]
  size_t width = 0;
  DataPosition next;  // where to go on after this batch

  size_t size() const { return labels.size(); }
  // Borrowed: valid until the batch is filled again, moved or destroyed.
  std::span<float> feature_span() { return features; }
  std::span<int64_t> label_span() { return labels; }
};

// Not thread-safe.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  // Fills `into`, reusing its memory. False: the data have ended, `into` is as it was.
  virtual absl::StatusOr<bool> Next(Batch& into) = 0;
};

}  // namespace muster
