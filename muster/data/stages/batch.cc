#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/stages/row_feed.h"
#include "muster/data/stages/stack_rows.h"
#include "muster/data/stages/stage_after.h"
#include "muster/data/stages/stages.h"

namespace muster {
namespace {

struct BatchShape {
  size_t size = 0;
  bool drop_remainder = false;
};

// Reads the rows of a batch straight into its arrays.
class RowBatchStream final : public StageStream {
 public:
  RowBatchStream(std::unique_ptr<RowFeed> feed, std::shared_ptr<const RowReader> reader, BatchShape shape)
      : shape_(shape), feed_(std::move(feed)), reader_(std::move(reader)) {}

  absl::Status Begin(int64_t epoch) override { return feed_->Begin(epoch); }
  absl::StatusOr<bool> Next(Example& into) override {
    ASSIGN_OR_RETURN(const std::span<const size_t> rows, feed_->NextRows(shape_.size));
    if (rows.empty() || (shape_.drop_remainder && rows.size() < shape_.size)) return false;
    RETURN_IF_ERROR(reader_->ReadBatch(rows, into, row_));
    return true;
  }
  void Tell(Place& place) const override { feed_->Tell(place); }
  absl::Status Seek(PlaceReader& place) override { return feed_->Seek(place); }
  void Stop() override { feed_->Stop(); }

 private:
  const BatchShape shape_;
  const std::unique_ptr<RowFeed> feed_;
  const std::shared_ptr<const RowReader> reader_;
  Example row_;
};

// Stacks examples. A batch never crosses the end of a unit of work: asking for the next unit may mean waiting for other
// workers, which may themselves wait until this one's unit is done.
class ExampleBatchStream final : public StreamAfter {
 public:
  ExampleBatchStream(std::unique_ptr<StageStream> before, BatchShape shape, bool shared)
      : StreamAfter(std::move(before)), shape_(shape), shared_(shared) {}

  absl::Status Begin(int64_t epoch) override {
    ended_ = false;
    return before().Begin(epoch);
  }
  absl::StatusOr<bool> Next(Example& into) override {
    size_t rows = 0;
    for (bool unit_ends = false; !ended_ && !unit_ends && rows < shape_.size;) {
      ASSIGN_OR_RETURN(const bool got, before().Next(row_));
      ended_ = !got;
      if (!got) break;
      if (rows == 0) PrepareStack(row_, shape_.size, batch_);
      RETURN_IF_ERROR(StackRow(row_, rows++, batch_));
      unit_ends = shared_ && UnitEnds();
    }
    if (rows == 0 || (shape_.drop_remainder && rows < shape_.size)) return false;
    if (rows < shape_.size) CutStack(rows, batch_);
    std::swap(into, batch_);
    return true;
  }

 private:
  bool UnitEnds() {
    place_.Clear();
    before().Tell(place_);
    return std::exchange(units_, place_.units) != place_.units;
  }

  const BatchShape shape_;
  const bool shared_;
  bool ended_ = false;
  Example row_;
  Example batch_;  // being made: `into` is unchanged until the batch is complete
  Place place_;
  int64_t units_ = 0;
};

class BatchStage final : public StageAfter {
 public:
  BatchStage(StagePtr before, BatchShape shape) : StageAfter(std::move(before)), shape_(shape) {}

  std::string Name() const override {
    return absl::StrCat("batch(", shape_.size, shape_.drop_remainder ? " drop_remainder)" : ")");
  }
  absl::Status Check() const override {
    if (shape_.size == 0) return WrongOptionError("a size of 0; accepted: 1 or more");
    if (!shape_.drop_remainder) return absl::OkStatus();
    if (work() != nullptr)
      return WrongOptionError("dropped rows after share_by would count as done without being used");
    const auto rows = before()->size();
    if (!rows || *rows == 0 || static_cast<size_t>(*rows) >= shape_.size) return absl::OkStatus();
    return WrongOptionError(absl::StrCat("no full batch of ", shape_.size, " can be made of ", *rows,
                                         " rows, and the remainder is to be dropped"));
  }
  std::optional<int64_t> size() const override {
    const auto rows = before()->size();
    if (!rows) return std::nullopt;
    const auto batch = static_cast<int64_t>(shape_.size);
    return shape_.drop_remainder ? *rows / batch : (*rows + batch - 1) / batch;
  }
  absl::StatusOr<std::unique_ptr<StageStream>> MakeStream() const override {
    if (before()->indexed()) {
      ASSIGN_OR_RETURN(std::shared_ptr<const RowReader> reader, before()->OpenReader());
      if (reader->threads() == 1) {
        auto feed = MakeRowFeed(*before(), reader->rows());
        return std::make_unique<RowBatchStream>(std::move(feed), std::move(reader), shape_);
      }
    }
    ASSIGN_OR_RETURN(std::unique_ptr<StageStream> elements, before()->MakeStream());
    return std::make_unique<ExampleBatchStream>(std::move(elements), shape_, work() != nullptr);
  }

 private:
  const BatchShape shape_;
};

}  // namespace

StagePtr MakeBatchStage(StagePtr before, size_t size, bool drop_remainder) {
  return std::make_shared<BatchStage>(std::move(before), BatchShape{size, drop_remainder});
}

}  // namespace muster
