// What Dataset::Open returns: the stream of the last stage, with what belongs to the whole of it: positions as text, an
// end that stays one, and the units of work that were used. As thread-safe as ExampleStream.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "muster/data/example_stream.h"
#include "muster/data/stages/dataset_stage.h"
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
  absl::Status StepOver() override;
  void Stop() override;

 private:
  DatasetStream(std::shared_ptr<const DatasetStage> stage, std::unique_ptr<StageStream> stream);
  // The next element; where work is shared, of a unit that isn't lost.
  absl::StatusOr<bool> Draw(Example& into);
  // Begins the unit of work that ends with the element just drawn, if one does. False: it is another reader's by now.
  bool BeginUnits();
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
  // Where work is shared: units whose last element was drawn, and of those that were begun how many the source has not
  // been told of that their step is over.
  int64_t units_drawn_ = 0;
  int64_t units_open_ = 0;
  Place place_;  // kept for its memory
};

}  // namespace muster
