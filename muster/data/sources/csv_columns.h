// Which of a file's columns make which feature: CsvColumns (names and numbers as a user writes them) against the
// columns that a file has. Pure; thread-safe.
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
  std::vector<std::vector<size_t>> groups;  // for each of CsvColumns::groups its columns, from 0
  std::optional<size_t> label;
};

// InvalidArgument (a wrong configuration), without a file's name: what is wrong whatever the file holds.
[[nodiscard]] absl::Status CheckCsvColumns(const CsvColumns& wanted);

// In a file that has `columns` columns and, unless it has no header, as many `names`. InvalidArgument (a wrong
// configuration) naming the file, the column that isn't there or is there twice, and the nearest that is.
absl::StatusOr<CsvSelection> SelectCsvColumns(const CsvColumns& wanted, const std::string& file,
                                              const std::vector<std::string>& names, size_t columns);

}  // namespace muster
