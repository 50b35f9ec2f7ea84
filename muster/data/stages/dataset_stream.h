// The stream that Dataset::Open returns: the stream of the last stage, plus what concerns the pipeline as a whole:
// positions as text, an end that stays an end, and the units of work that were used. As thread-safe as ExampleStream.
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
  // Opens a stream at the beginning of `stage`, the last one. Errors: those of CheckAll and of the sources.
  static absl::StatusOr<std::unique_ptr<ExampleStream>> Open(std::shared_ptr<const DatasetStage> stage);
  ~DatasetStream() override { Stop(); }

  absl::StatusOr<bool> Next(Example& into) override;
  std::string SavePosition() const override;
  absl::Status RestorePosition(const std::string& saved) override;
  absl::Status StepOver() override;
  void Stop() override;

 private:
  DatasetStream(std::shared_ptr<const DatasetStage> stage, std::unique_ptr<StageStream> stream);
  // Draws the next element; with shared work, one whose unit isn't lost.
  absl::StatusOr<bool> Draw(Example& into);
  // Begins the unit of work that ends with the element just drawn, if one does. False: another reader has it now.
  bool BeginUnits();
  // Goes to the element after the saved one or, if there is none, to the beginning of its epoch.
  absl::Status Seek(const StreamPosition& position);

  const std::shared_ptr<const DatasetStage> stage_;  // outlives stream_, so it is declared first
  const std::unique_ptr<StageStream> stream_;
  std::atomic<bool> stopped_ = false;

  // Used only by the thread that calls Next.
  int64_t elements_ = 0;
  bool begun_ = false;                // elements were drawn
  bool moved_ = false;                // a position was restored, or an attempt was made
  absl::StatusOr<bool> last_ = true;  // the last result of Next
  // With shared work: units whose last element was drawn, and units that were begun without telling the source yet that
  // their step is over.
  int64_t units_drawn_ = 0;
  int64_t units_open_ = 0;
  Place place_;  // member only to reuse its memory
};

}  // namespace muster
