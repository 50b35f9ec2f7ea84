// The position of an ExampleStream as text for a checkpoint: docs/input.md ("Positions") describes it byte by byte. A
// plain value.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"

namespace muster {

struct StreamPosition {
  int64_t elements = 0;          // number of elements handed out
  int64_t epoch = 0;             // the epoch of the last of them
  std::vector<int64_t> numbers;  // the stages' numbers: Place::numbers
  std::string of;                // what elements and order depend on: DatasetStage::Describe(true)

  bool operator==(const StreamPosition&) const = default;
};

std::string FormatPosition(const StreamPosition& position);

// InvalidArgument: not such a text. The text of a Batcher ("epoch=3 offset=150 of rows=1500 shard=0/2 seed=1"), found
// in checkpoints older than stages, is parsed as a position in another pipeline.
absl::StatusOr<StreamPosition> ParsePosition(absl::string_view text);

}  // namespace muster
