// Which rows come next: the numbers by which a reader reads them, in the order of an epoch (all of it, or the units of
// it that a WorkSource gives). And the stream that reads them one by one; Batch reads as many as it needs at a time.
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

  // As those of StageStream.
  [[nodiscard]] virtual absl::Status Begin(int64_t epoch) = 0;
  virtual void Tell(Place& place) const = 0;
  [[nodiscard]] virtual absl::Status Seek(PlaceReader& place) = 0;
  virtual void Stop() {}

  // The next rows, `most` of them if there are so many, never beyond the end of a unit of work; none: the end. Valid
  // until the next call. Errors: those of WorkSource::Take; InvalidArgument: a unit that isn't in the order.
  virtual absl::StatusOr<std::span<const size_t>> NextRows(size_t most) = 0;
};

// Of a stage that is indexed(), whose reader has `rows`.
std::unique_ptr<RowFeed> MakeRowFeed(const DatasetStage& stage, size_t rows);

// Each row as an example.
std::unique_ptr<StageStream> MakeRowStream(const DatasetStage& stage, std::shared_ptr<const RowReader> reader);

}  // namespace muster
