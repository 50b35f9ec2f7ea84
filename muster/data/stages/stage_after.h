// Base classes of most stages, which change the elements of one stage before them. They implement whatever such a stage
// leaves unchanged. As thread-safe as dataset_stage.h says.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "muster/data/stages/dataset_stage.h"

namespace muster {

class StageAfter : public DatasetStage {
 public:
  explicit StageAfter(std::shared_ptr<const DatasetStage> before) : before_(std::move(before)) {}

  const DatasetStage* before() const final { return before_.get(); }
  std::optional<int64_t> size() const override { return before_->size(); }

 protected:
  // Returns the mistake of a stage that isn't allowed after ShareBy, or OK if there is no ShareBy before it.
  absl::Status CheckNotShared() const;

 private:
  const std::shared_ptr<const DatasetStage> before_;
};

// A stage whose rows can be read by number if those of the stage before it can.
class IndexedStageAfter : public StageAfter {
 public:
  using StageAfter::StageAfter;

  bool indexed() const override { return before()->indexed(); }
  absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const override { return before()->OpenReader(); }
  void FillOrder(int64_t epoch, size_t rows, std::vector<size_t>& order) const override {
    before()->FillOrder(epoch, rows, order);
  }
  absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const final;

 protected:
  // Called if the rows of the stage before can't be read by number.
  virtual std::unique_ptr<StageStream> MakeStreamOver(std::unique_ptr<StageStream> elements) const = 0;
};

class StreamAfter : public StageStream {
 public:
  explicit StreamAfter(std::unique_ptr<StageStream> before) : before_(std::move(before)) {}

  absl::Status Begin(int64_t epoch) override { return before_->Begin(epoch); }
  void Tell(Place& place) const override { before_->Tell(place); }
  absl::Status Seek(PlaceReader& place) override { return before_->Seek(place); }
  absl::Status SeekEpoch(int64_t epoch) override { return before_->SeekEpoch(epoch); }
  void Stop() override { before_->Stop(); }

 protected:
  StageStream& before() { return *before_; }
  const StageStream& before() const { return *before_; }

 private:
  const std::unique_ptr<StageStream> before_;
};

}  // namespace muster
