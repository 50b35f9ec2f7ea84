// What Dataset::Open returns: the stream of the last stage, with what belongs to the whole of it: positions as text, an
// end that stays one, and the units of work that were used. As thread-safe as ExampleStream.
#pragma once

#include <atomic>
#include <cstddef>
#include <deque>
#include <memory>
#include <string>

#include "muster/data/dataset_stage.h"
#include "muster/data/example_stream.h"
#include "muster/data/stream_position.h"

namespace muster {

class DatasetStream final : public ExampleStream {
 public:
  // At the beginning of `stage`, the last one. Errors: those of CheckAll and of the sources.
  static absl::StatusOr<std::unique_ptr<ExampleStream>> Open(std::shared_ptr<const DatasetStage> stage);
  ~DatasetStream() override { Stop(); }

  absl::StatusOr<bool> Next(Example& into) override;
  std::string SavePosition() const override;
  absl::Status RestorePosition(const std::string& saved) override;
  absl::Status Committed(size_t behind = 0) override;
  void Stop() override;

 private:
  DatasetStream(std::shared_ptr<const DatasetStage> stage, std::unique_ptr<StageStream> stream);
  // Behind the saved element, or, if there is none such, at the beginning of its epoch.
  absl::Status Seek(const StreamPosition& position);

  const std::shared_ptr<const DatasetStage> stage_;  // before stream_, which it outlives
  const std::unique_ptr<StageStream> stream_;
  std::atomic<bool> stopped_ = false;

  // Used by the thread that calls Next alone.
  int64_t elements_ = 0;
  bool begun_ = false;                // elements were drawn
  bool moved_ = false;                // a position was restored, or tried to be
  absl::StatusOr<bool> last_ = true;  // what Next said
  // Where work is shared: units used up with each of the elements that weren't said to be committed, with those that
  // were, and how many of these the work source has been told of.
  std::deque<int64_t> units_;
  int64_t units_committed_ = 0;
  int64_t units_done_ = 0;
  Place place_;  // kept for its memory
};

}  // namespace muster
