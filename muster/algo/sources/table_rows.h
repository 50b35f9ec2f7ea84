// What an algorithm does for the tables of rows of its source: while a minibatch is computed, it looks rows up through
// the client; afterwards it pushes the gradients of those rows, before the update that counts the minibatch. Nothing
// waits and nothing is averaged: only for algorithms without a synchronous gate (the ps refuse the others). Used by the
// training thread.
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

  // Makes the source look rows up through `client`, which must outlive this.
  void Begin(StoreClient& client);

  // Pushes the row gradients of the last minibatch, one push per table. Errors: those of RowClient.
  [[nodiscard]] absl::Status Push();

 private:
  GradientSource& source_;
  std::optional<RowClient> rows_;
};

}  // namespace muster
