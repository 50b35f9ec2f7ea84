// A worker's access to tables of rows: looks up rows of a variable of kind kRows on the ps that have them, and pushes
// gradients of rows there, without this process ever holding the table. Sums duplicates here, in the order in which
// they come, so that a row is sent once and moves once. Uses the connections, numbers, errors and thread of a
// StoreClient.
//
// If the client applies its own updates, so does this: it reads and updates rows in the ps's memory, without a message
// (docs/store/direct_apply.md).
//
// A retried push is applied once. It counts no global step: the StoreClient's PushPull of the same step does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/cluster/placement/row_table.h"
#include "muster/store/client/store_client.h"
#include "muster/store/direct/direct_apply.h"
#include "muster/store/model/row_order.h"
#include "muster/store/model/rows.h"

namespace muster {

// Errors of all operations, besides StoreClient's:
//   NotFound            the model has no such variable
//   InvalidArgument     it is no table of rows; an index is out of range (named, with the number of rows); values of
//                       another type or length. In that case nothing was sent
class RowClient {
 public:
  // `client` must outlive it, and must be bound, joined and ready before a call.
  explicit RowClient(StoreClient& client) : client_(client) {}

  [[nodiscard]] absl::Status Gather(const std::string& variable, const RowsOut& rows);
  // The optimizer's NonFinite says what to do with gradients that aren't finite; false: they were dropped.
  absl::StatusOr<bool> Push(const std::string& variable, const RowsIn& gradients);

 private:
  // One slice of the table, and its rows.
  struct Shard {
    int ps = 0;
    uint32_t slice = 0;               // the slice's number on that ps
    std::vector<int64_t> rows;        // pushed or gathered, by their numbers in the slice
    std::vector<uint32_t> places;     // of gathered rows among the requested ones; not needed for one shard
    std::vector<std::byte> received;  // likewise
    size_t first_gradient = 0;        // row in gradients_
  };
  struct Table {
    const VariableSpec* spec = nullptr;
    RowSplit split{RowPartition::kMod, 0, 1};
    size_t row_bytes = 0;       // of the variable's type
    size_t gradient_bytes = 0;  // of a row, in the slots' type
  };

  // Finds the table and its shards, and makes the checks common to all operations.
  absl::StatusOr<Table> Open(const std::string& variable, std::span<const int64_t> indices, DType dtype, size_t bytes);
  // Fills the shards' rows, and gradients_ in the same order.
  void SumGradients(const Table& table, const RowsIn& gradients);
  // Fills the shards' rows.
  void Address(const Table& table, const RowsOut& rows);
  // The same without messages, if this process applies its own updates.
  [[nodiscard]] absl::Status GatherDirect(DirectApply& direct, const RowsOut& rows);
  [[nodiscard]] absl::Status PushDirect(DirectApply& direct, const Table& table, double scale);
  // Returns Σ g² of the rows' gradients, once for both functions below; 0 if neither needs it.
  double Squares(const Table& table) const;
  absl::StatusOr<bool> IsFinite(const Table& table, double squares) const;
  // Rows [first, end) of a shard.
  StoreCall MakeCall(StoreMethod method, const StoreNumbers& numbers, const Shard& shard, size_t first, size_t end,
                     RowsRequest request) const;

  ByteSpan gradients(const Table& table) const {
    return ByteSpan(gradients_).first(gradient_rows_ * table.gradient_bytes);
  }

  StoreClient& client_;
  std::vector<Shard> shards_;
  RowOrder order_;
  std::vector<std::byte> gradients_;  // in the slots' type: a sum may be finer, or larger, than a half can be
  size_t gradient_rows_ = 0;
};

}  // namespace muster
