#include "muster/data/stages/row_feed.h"

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Returns all rows of an epoch's order.
class OrderFeed final : public RowFeed {
 public:
  OrderFeed(const DatasetStage& stage, size_t rows) : stage_(stage), rows_(rows) {}

  absl::Status Begin(int64_t epoch) override {
    stage_.FillOrder(epoch, rows_, order_);
    next_ = 0;
    return absl::OkStatus();
  }
  absl::StatusOr<std::span<const size_t>> NextRows(size_t most) override {
    const auto rows = std::span<const size_t>(order_).subspan(next_, std::min(most, order_.size() - next_));
    next_ += rows.size();
    return rows;
  }
  void Tell(Place& place) const override { place.numbers.push_back(static_cast<int64_t>(next_)); }
  absl::Status Seek(PlaceReader& place) override {
    ASSIGN_OR_RETURN(const int64_t next, place.Take());
    if (static_cast<size_t>(next) > order_.size()) {
      return absl::OutOfRangeError(
          absl::StrCat(next, " rows had been handed out, but now there are only ", order_.size()));
    }
    next_ = static_cast<size_t>(next);
    return absl::OkStatus();
  }

 private:
  const DatasetStage& stage_;
  const size_t rows_;
  std::vector<size_t> order_;
  size_t next_ = 0;  // index into order_
};

// Returns the rows of the units of work that this reader is given. The WorkSource knows what has been done, so no
// position is saved here.
class WorkFeed final : public RowFeed {
 public:
  WorkFeed(const DatasetStage& stage, size_t rows) : stage_(stage), rows_(rows) {}

  absl::Status Begin(int64_t) override { return absl::OkStatus(); }
  absl::StatusOr<std::span<const size_t>> NextRows(size_t most) override {
    while (unit_.begin == unit_.end) {
      ASSIGN_OR_RETURN(const bool taken, TakeUnit());
      if (!taken) return std::span<const size_t>();
    }
    const int64_t count = std::min(static_cast<int64_t>(most), unit_.end - unit_.begin);
    const auto rows = std::span<const size_t>(order_).subspan(unit_.begin, count);
    unit_.begin += count;
    if (unit_.begin == unit_.end) ++units_;
    return rows;
  }
  void Tell(Place& place) const override {
    place.epoch = unit_.epoch;
    place.units = units_;
  }
  absl::Status Seek(PlaceReader&) override { return absl::OkStatus(); }
  void Stop() override { stage_.work()->Stop(); }

 private:
  // Takes the next unit. False: there are no more.
  absl::StatusOr<bool> TakeUnit() {
    ASSIGN_OR_RETURN(const std::optional<WorkUnit> unit, stage_.work()->Take());
    if (!unit) return false;
    if (order_epoch_ != unit->epoch) stage_.FillOrder(unit->epoch, rows_, order_);
    order_epoch_ = unit->epoch;
    if (unit->begin < 0 || unit->begin > unit->end || unit->end > static_cast<int64_t>(order_.size())) {
      return absl::InvalidArgumentError(absl::StrCat("share_by: was given the rows ", unit->begin, " to ", unit->end,
                                                     " (exclusive) of ", order_.size(),
                                                     ": the others share other data"));
    }
    unit_ = *unit;
    if (unit_.begin == unit_.end) ++units_;
    return true;
  }

  const DatasetStage& stage_;
  const size_t rows_;
  std::vector<size_t> order_;
  int64_t order_epoch_ = -1;
  WorkUnit unit_;  // the part of it not yet handed out
  int64_t units_ = 0;
};

class RowStream final : public StageStream {
 public:
  RowStream(std::unique_ptr<RowFeed> feed, std::shared_ptr<const RowReader> reader)
      : feed_(std::move(feed)), reader_(std::move(reader)) {}

  absl::Status Begin(int64_t epoch) override { return feed_->Begin(epoch); }
  void Tell(Place& place) const override { feed_->Tell(place); }
  absl::Status Seek(PlaceReader& place) override { return feed_->Seek(place); }
  void Stop() override { feed_->Stop(); }

  absl::StatusOr<bool> Next(Example& into) override {
    size_t row = 0;
    ASSIGN_OR_RETURN(const bool got, Draw(into, row));
    if (got) RETURN_IF_ERROR(Make(into, row));
    return got;
  }
  absl::StatusOr<bool> Draw(Example&, size_t& row) override {
    ASSIGN_OR_RETURN(const std::span<const size_t> rows, feed_->NextRows(1));
    if (rows.empty()) return false;
    row = rows[0];
    return true;
  }
  absl::Status Make(Example& into, size_t row) override { return reader_->Read(row, into); }

 private:
  const std::unique_ptr<RowFeed> feed_;
  const std::shared_ptr<const RowReader> reader_;
};

}  // namespace

std::unique_ptr<RowFeed> MakeRowFeed(const DatasetStage& stage, size_t rows) {
  if (stage.work() != nullptr) return std::make_unique<WorkFeed>(stage, rows);
  return std::make_unique<OrderFeed>(stage, rows);
}

std::unique_ptr<StageStream> MakeRowStream(const DatasetStage& stage, std::shared_ptr<const RowReader> reader) {
  auto feed = MakeRowFeed(stage, reader->rows());
  return std::make_unique<RowStream>(std::move(feed), std::move(reader));
}

}  // namespace muster
