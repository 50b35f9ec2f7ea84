#include "muster/algo/sources/table_rows.h"

#include "muster/base/status_macros.h"

namespace muster {

TableRows::~TableRows() {
  if (rows_) source_.LookUpThrough({});
}

void TableRows::Begin(StoreClient& client) {
  rows_.emplace(client);
  source_.LookUpThrough(
      [this](size_t variable, const RowsOut& rows) { return rows_->Gather(source_.variables()[variable].name, rows); });
}

absl::Status TableRows::Push() {
  for (const TableGradient& table : source_.row_gradients())
    RETURN_IF_ERROR(rows_->Push(source_.variables()[table.variable].name, table.rows).status());
  return absl::OkStatus();
}

}  // namespace muster
