// Finds the columns that CsvColumns names (by name or number, as a user writes them) among those of a file. Pure;
// thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/sources/file_sources.h"

namespace muster {

struct CsvSelection {
  std::vector<std::vector<size_t>> groups;  // for each of CsvColumns::groups, its columns from 0
  std::optional<size_t> label;
};

// Reports mistakes that don't depend on the file: InvalidArgument (a wrong configuration), without a file's name.
[[nodiscard]] absl::Status CheckCsvColumns(const CsvColumns& wanted);

// Selects from a file that has `columns` columns and, unless it has no header, as many `names`. InvalidArgument (a
// wrong configuration), naming the file, the column that is missing or exists twice, and the nearest existing one.
absl::StatusOr<CsvSelection> SelectCsvColumns(const CsvColumns& wanted, const std::string& file,
                                              const std::vector<std::string>& names, size_t columns);

}  // namespace muster
