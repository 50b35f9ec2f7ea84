// What an algorithm does for the tables of rows of its source: while a minibatch is computed, rows are looked up
// through the client; afterwards the gradients of those rows are pushed, before the update that counts the minibatch.
// Nobody waits and nothing is averaged: for algorithms without a synchronous gate (the ps refuse the others). Used by
// the training thread.
#pragma once

#include <optional>

#include "absl/status/status.h"
#include "muster/algo/sources/gradient_source.h"
#include "muster/store/client/row_client.h"

namespace muster {

class TableRows {
 public:
  // `source` must outlive it.
  explicit TableRows(GradientSource& source) : source_(source) {}
  ~TableRows();
  TableRows(const TableRows&) = delete;
  TableRows& operator=(const TableRows&) = delete;

  // From now on the source looks rows up through `client`, which must outlive this.
  void Begin(StoreClient& client);

  // The row gradients of the last minibatch, one push a table. Errors: those of RowClient.
  [[nodiscard]] absl::Status Push();

 private:
  GradientSource& source_;
  std::optional<RowClient> rows_;
};

}  // namespace muster
