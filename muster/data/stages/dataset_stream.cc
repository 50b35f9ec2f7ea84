#include "muster/data/stages/dataset_stream.h"

#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"

namespace muster {

DatasetStream::DatasetStream(std::shared_ptr<const DatasetStage> stage, std::unique_ptr<StageStream> stream)
    : stage_(std::move(stage)), stream_(std::move(stream)) {}

absl::StatusOr<std::unique_ptr<ExampleStream>> DatasetStream::Open(std::shared_ptr<const DatasetStage> stage) {
  RETURN_IF_ERROR(stage->CheckAll());
  ASSIGN_OR_RETURN(std::unique_ptr<StageStream> stream, stage->MakeStream());
  RETURN_IF_ERROR(stream->Begin(/*epoch=*/0));
  return std::unique_ptr<ExampleStream>(new DatasetStream(std::move(stage), std::move(stream)));
}

absl::StatusOr<bool> DatasetStream::Next(Example& into) {
  if (stopped_) return absl::CancelledError("the input has been stopped");
  if (absl::IsAborted(last_.status()) && stage_->work() != nullptr) {
    RETURN_IF_ERROR(stream_->Begin(/*epoch=*/0));
    last_ = true;
  }
  if (!last_.ok() || !*last_) return last_;
  begun_ = true;
  last_ = Draw(into);
  if (last_.ok() && *last_) ++elements_;
  return last_;
}

// A thread that reads ahead may see the end before a ps loses units whose examples it had prepared, and which are then
// given out again. So only an end seen when nothing is in hand counts.
absl::StatusOr<bool> DatasetStream::Draw(Example& into) {
  if (stage_->work() == nullptr) return stream_->Next(into);
  for (bool ahead = true;;) {
    ASSIGN_OR_RETURN(const bool got, stream_->Next(into));
    if (got && BeginUnits()) return true;
    if (got) {
      ahead = true;
    } else {
      if (!std::exchange(ahead, false)) return false;
      RETURN_IF_ERROR(stream_->Begin(/*epoch=*/0));
    }
  }
}

// Only the last element of a unit begins it: if the first of several began it, the update of that element alone would
// mark the whole unit as done.
bool DatasetStream::BeginUnits() {
  place_.Clear();
  stream_->Tell(place_);
  bool ours = true;
  for (; units_drawn_ < place_.units; ++units_drawn_) {
    const bool begun = stage_->work()->Begin();
    if (begun) ++units_open_;
    ours = ours && begun;
  }
  return ours;
}

absl::Status DatasetStream::StepOver() {
  for (; units_open_ > 0; --units_open_) RETURN_IF_ERROR(stage_->work()->Done());
  return absl::OkStatus();
}

void DatasetStream::Stop() {
  stopped_ = true;
  stream_->Stop();
}

std::string DatasetStream::SavePosition() const {
  Place place;
  stream_->Tell(place);
  return FormatPosition({.elements = elements_,
                         .epoch = place.epoch,
                         .numbers = std::move(place.numbers),
                         .of = stage_->Describe(/*elements_only=*/true)});
}

absl::Status DatasetStream::RestorePosition(const std::string& saved) {
  if (begun_) {
    return absl::FailedPreconditionError("a position in the input must be restored before the first batch is drawn");
  }
  ASSIGN_OR_RETURN(const StreamPosition position, ParsePosition(saved));
  elements_ = 0;
  if (std::exchange(moved_, true)) RETURN_IF_ERROR(stream_->Begin(0));
  const std::string ours = stage_->Describe(/*elements_only=*/true);
  if (position.of == ours) return Seek(position);
  LogWarning("the position in the input was saved by ", position.of, ", but this input is ", ours, ": epoch ",
             position.epoch, " begins again from its start");
  return stream_->SeekEpoch(position.epoch);
}

absl::Status DatasetStream::Seek(const StreamPosition& position) {
  PlaceReader place(position.numbers);
  absl::Status sought = stream_->Seek(place);
  if (sought.ok() && !place.done()) sought = absl::InvalidArgumentError("it has more numbers than the stages");
  if (sought.ok()) {
    elements_ = position.elements;
    return sought;
  }
  RETURN_IF_ERROR(stream_->Begin(0));
  if (absl::IsOutOfRange(sought)) {
    LogWarning("the data of ", position.of, " have changed since the position in the input was saved (",
               sought.message(), "): epoch ", position.epoch, " begins again from its start");
    return stream_->SeekEpoch(position.epoch);
  }
  if (!absl::IsInvalidArgument(sought)) return sought;
  return absl::InvalidArgumentError(
      absl::StrCat("'", FormatPosition(position), "' is not a position in this input: ", sought.message()));
}

}  // namespace muster
