// Draws minibatches from a data set in memory: shuffled anew each epoch, this worker's share of them, repeated as often
// as asked. The order is a function of the data set's size, the options and the epoch alone, so all workers agree on it
// without talking and a restarted one goes on where its checkpoint says. Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/batch.h"
#include "muster/data/labelled_rows.h"

namespace muster {

struct BatcherOptions {
  size_t batch_size = 32;
  bool shuffle = true;
  uint64_t seed = 0;
  // Of the epoch's (shuffled) order this reader takes the places shard, shard + shards, ...: each row goes to exactly
  // one worker per epoch, to another one in the next. All workers need the same seed.
  size_t shard = 0;
  size_t shards = 1;
  // Leaves out an epoch's last batch if it isn't full. Batches never reach over the end of an epoch.
  bool drop_remainder = false;
  // How many epochs; 0 goes on for ever.
  int64_t epochs = 0;
};

class Batcher final : public BatchSource {
 public:
  // Borrows `data`, which must outlive the batcher. InvalidArgument if no batch could ever be made: a batch size of 0,
  // a shard that isn't below the number of shards or is left without rows, or drop_remainder with fewer rows than a
  // batch.
  static absl::StatusOr<Batcher> Create(const LabelledRows& data, const BatcherOptions& options);

  absl::StatusOr<bool> Next(Batch& into) override;

  // After the last batch handed out. (A Prefetcher runs ahead of its consumer: there Batch::next is the one to save.)
  DataPosition position() const { return position_; }
  // InvalidArgument for a position that this shard can't have.
  [[nodiscard]] absl::Status Seek(const DataPosition& position);

  // Rows and batches of this shard in one epoch.
  size_t rows_per_epoch() const;
  size_t batches_per_epoch() const;

 private:
  Batcher(const LabelledRows& data, const BatcherOptions& options) : data_(&data), options_(options) {}
  void MoveOn(size_t rows);

  // Constant after construction. A pointer so that a batcher can be moved.
  const LabelledRows* data_;
  BatcherOptions options_;

  DataPosition position_;
  std::vector<size_t> order_;  // of order_epoch_, whole data set
  int64_t order_epoch_ = -1;
};

}  // namespace muster
