#include "muster/data/batcher.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"
#include "muster/data/shuffle.h"

namespace muster {

absl::StatusOr<Batcher> Batcher::Create(const LabelledRows& data, const BatcherOptions& options) {
  if (options.batch_size == 0) return absl::InvalidArgumentError("a batch size of 0; accepted: 1 or more");
  if (options.epochs < 0) {
    return absl::InvalidArgumentError(absl::StrCat(options.epochs, " epochs; accepted: 1 or more, 0 for no end"));
  }
  if (options.shard >= options.shards) {
    return absl::InvalidArgumentError(absl::StrCat("shard ", options.shard, " of ", options.shards,
                                                   "; accepted: 0 up to the number of shards less one"));
  }
  Batcher made(data, options);
  const size_t rows = made.rows_per_epoch();
  if (rows == 0) {
    return absl::InvalidArgumentError(
        absl::StrCat("shard ", options.shard, " of ", options.shards, " has no rows: the data set has ", data.size()));
  }
  if (made.batches_per_epoch() == 0) {
    return absl::InvalidArgumentError(absl::StrCat("no full batch of ", options.batch_size, " can be made of the ",
                                                   rows, " rows of shard ", options.shard, " of ", options.shards,
                                                   ", and the remainder is to be dropped"));
  }
  return made;
}

size_t Batcher::rows_per_epoch() const {
  if (data_->size() <= options_.shard) return 0;
  return (data_->size() - options_.shard - 1) / options_.shards + 1;
}

size_t Batcher::batches_per_epoch() const {
  const size_t rows = rows_per_epoch();
  return options_.drop_remainder ? rows / options_.batch_size : (rows - 1) / options_.batch_size + 1;
}

absl::StatusOr<bool> Batcher::Next(Batch& into) {
  if (options_.epochs > 0 && position_.epoch >= options_.epochs) return false;
  if (order_epoch_ != position_.epoch) {
    if (options_.shuffle) {
      order_ = ShuffledOrder(data_->size(), options_.seed, position_.epoch);
    } else if (order_.empty()) {
      order_.resize(data_->size());
      std::iota(order_.begin(), order_.end(), size_t{0});
    }
    order_epoch_ = position_.epoch;
  }
  const size_t rows = std::min(options_.batch_size, rows_per_epoch() - position_.offset);
  const size_t width = data_->width();
  into.features.resize(rows * width);
  into.labels.resize(rows);
  into.width = width;
  for (size_t i = 0; i < rows; ++i) {
    const size_t from = order_[(position_.offset + i) * options_.shards + options_.shard];
    const auto row = data_->row(from);
    std::copy(row.begin(), row.end(), into.features.begin() + i * width);
    into.labels[i] = data_->labels()[from];
  }
  MoveOn(rows);
  into.next = position_;
  return true;
}

void Batcher::MoveOn(size_t rows) {
  position_.offset += rows;
  const size_t left = rows_per_epoch() - position_.offset;
  if (left == 0 || (options_.drop_remainder && left < options_.batch_size)) position_ = {position_.epoch + 1, 0};
}

absl::Status Batcher::Seek(const DataPosition& position) {
  const int64_t rows = rows_per_epoch();
  if (position.epoch < 0 || position.offset < 0 || position.offset >= rows) {
    return absl::InvalidArgumentError(absl::StrCat("input position: epoch ", position.epoch, ", offset ",
                                                   position.offset, ", but this shard has ", rows,
                                                   " rows: the checkpoint is of other data or of other shards"));
  }
  position_ = {position.epoch, 0};
  MoveOn(position.offset);
  return absl::OkStatus();
}

}  // namespace muster
