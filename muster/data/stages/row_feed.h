// Says which rows come next: their numbers for a RowReader, in the order of an epoch (all of it, or the units of it
// that a WorkSource gives). Also makes the stream that reads them one by one; Batch reads as many as it needs at a
// time.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/stages/dataset_stage.h"

namespace muster {

// Used by one thread, except for Stop.
class RowFeed {
 public:
  virtual ~RowFeed() = default;

  // As in StageStream.
  [[nodiscard]] virtual absl::Status Begin(int64_t epoch) = 0;
  virtual void Tell(Place& place) const = 0;
  [[nodiscard]] virtual absl::Status Seek(PlaceReader& place) = 0;
  virtual void Stop() {}

  // Returns the next rows, up to `most`, never beyond the end of a unit of work; empty at the end. Valid until the next
  // call. Errors: those of WorkSource::Take; InvalidArgument: a unit that isn't in the order.
  virtual absl::StatusOr<std::span<const size_t>> NextRows(size_t most) = 0;
};

// `stage` must be indexed() and its reader must have `rows` rows.
std::unique_ptr<RowFeed> MakeRowFeed(const DatasetStage& stage, size_t rows);

// Makes a stream that reads each row as an example.
std::unique_ptr<StageStream> MakeRowStream(const DatasetStage& stage, std::shared_ptr<const RowReader> reader);

}  // namespace muster
