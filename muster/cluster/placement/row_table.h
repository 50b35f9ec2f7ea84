// A variable that is a table of rows (an embedding, the weights of sparse features): workers look up rows and push
// gradients of rows, and only the parameter servers together hold all of it. This header says what such a variable has
// beside its VariableSpec, and which ps has which row. Plain values and pure functions, thread-safe.
#pragma once

#include <cstdint>

namespace muster {

// tf.nn.embedding_lookup's partition_strategy. The numbers are part of the wire format: never renumber.
enum class RowPartition : uint8_t {
  kMod = 0,  // row r is on shard r mod n, there number r / n
  kDiv = 1,  // each shard has consecutive rows; the first (rows mod n) shards have one more
};

// The contents of a table before any push. Each ps computes its rows itself; a row depends on the seed and on its
// number in the whole table, not on the partitioning. The numbers are part of the wire format.
struct RowInitializer {
  enum class Kind : uint8_t { kZeros = 0, kUniform = 1, kNormal = 2 };
  Kind kind = Kind::kZeros;
  double center = 0;
  double spread = 0;  // kUniform: half the width of the interval; kNormal: the standard deviation
  uint64_t seed = 0;

  static RowInitializer Uniform(double low, double high, uint64_t seed) {
    return {Kind::kUniform, (low + high) / 2, (high - low) / 2, seed};
  }
  static RowInitializer Normal(double mean, double stddev, uint64_t seed) {
    return {Kind::kNormal, mean, stddev, seed};
  }
  bool operator==(const RowInitializer&) const = default;
};

struct RowTable {
  RowPartition partition = RowPartition::kMod;
  RowInitializer initial;

  bool operator==(const RowTable&) const = default;
};

// Divides the rows of a table among `shards` shards. Rows are numbered from 0 to `rows` - 1.
class RowSplit {
 public:
  RowSplit(RowPartition partition, int64_t rows, int64_t shards)
      : partition_(partition), shards_(shards), least_(rows / shards), longer_(rows % shards) {}

  int64_t shards() const { return shards_; }
  int64_t RowsOf(int64_t shard) const { return least_ + (shard < longer_ ? 1 : 0); }
  // The shard's rows are FirstRowOf, FirstRowOf + Step, …
  int64_t FirstRowOf(int64_t shard) const {
    return partition_ == RowPartition::kMod ? shard : shard * least_ + (shard < longer_ ? shard : longer_);
  }
  int64_t Step() const { return partition_ == RowPartition::kMod ? shards_ : 1; }

  struct Place {
    int64_t shard = 0;
    int64_t row = 0;  // its number within the shard
  };
  Place PlaceOf(int64_t row) const {
    if (shards_ == 1) return {0, row};
    if (partition_ == RowPartition::kMod) return {row % shards_, row / shards_};
    const int64_t in_longer = longer_ * (least_ + 1);
    if (row < in_longer) return {row / (least_ + 1), row % (least_ + 1)};
    return {longer_ + (row - in_longer) / least_, (row - in_longer) % least_};
  }

 private:
  RowPartition partition_;
  int64_t shards_;
  int64_t least_;   // rows of the shorter shards
  int64_t longer_;  // this many shards have one more
};

}  // namespace muster
