// A worker's end of tables of rows: rows of a variable of kind kRows are looked up on the ps that have them, and
// gradients of rows pushed there, without this process ever holding the table. Duplicates are summed here, in the order
// in which they come, so that a row travels once and moves once. Stands beside a StoreClient: its connections, numbers
// and errors are that one's, and so is its thread.
//
// Where the client applies its updates itself, so does this: rows are read and updated in the ps's memory, without a
// message (docs/store/direct_apply.md).
//
// A push that is retried is applied once. It counts no global step: the StoreClient's PushPull of the same step does.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/cluster/row_table.h"
#include "muster/store/direct_apply.h"
#include "muster/store/row_order.h"
#include "muster/store/rows.h"
#include "muster/store/store_client.h"

namespace muster {

// Errors of all operations, besides StoreClient's:
//   NotFound            the model has no such variable
//   InvalidArgument     it is no table of rows; an index is out of range (named, with the number of rows); values of
//                       another type or length. Nothing was sent then
class RowClient {
 public:
  // `client` must outlive it, and be bound, joined and ready before a call.
  explicit RowClient(StoreClient& client) : client_(client) {}

  [[nodiscard]] absl::Status Gather(const std::string& variable, const RowsOut& rows);
  // Rows whose gradients aren't finite: as the optimizer's NonFinite says; dropped, the answer is false.
  absl::StatusOr<bool> Push(const std::string& variable, const RowsIn& gradients);

 private:
  // One slice of the table, and what goes there.
  struct Shard {
    int ps = 0;
    uint32_t slice = 0;               // its number there
    std::vector<int64_t> rows;        // pushed or gathered, as it numbers them
    std::vector<uint32_t> places;     // of gathered rows among those asked for; one shard: not needed
    std::vector<std::byte> received;  // likewise
    size_t first_gradient = 0;        // row in gradients_
  };
  struct Table {
    const VariableSpec* spec = nullptr;
    RowSplit split{RowPartition::kMod, 0, 1};
    size_t row_bytes = 0;       // of the variable's type
    size_t gradient_bytes = 0;  // a row, of the type of slots
  };

  // Finds the table and its shards; the checks that all operations share.
  absl::StatusOr<Table> Open(const std::string& variable, std::span<const int64_t> indices, DType dtype, size_t bytes);
  // Fills the shards' rows, and gradients_ in the same order.
  void SumGradients(const Table& table, const RowsIn& gradients);
  // Fills the shards' rows.
  void Address(const Table& table, const RowsOut& rows);
  // The same without messages, where this process applies its updates itself.
  [[nodiscard]] absl::Status GatherDirect(DirectApply& direct, const RowsOut& rows);
  [[nodiscard]] absl::Status PushDirect(DirectApply& direct, const Table& table, double scale);
  // Σ g² of the rows' gradients, once for both of the following; 0 where nobody asks.
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
  std::vector<std::byte> gradients_;  // of the type of slots: a sum may be finer, or larger, than a half can be
  size_t gradient_rows_ = 0;
};

}  // namespace muster
