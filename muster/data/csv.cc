#include "muster/data/csv.h"

#include "muster/base/status_macros.h"
#include "muster/data/csv_rows.h"

namespace muster {
namespace {

// Takes one line (without its end) off the front of `rest`.
std::string_view TakeCsvLine(std::string_view& rest) {
  const size_t end = rest.find('\n');
  const std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  return line;
}

}  // namespace

absl::StatusOr<CsvTable> ParseCsv(std::string_view content, const std::string& name, const CsvOptions& options) {
  CsvTable table;
  CsvRows rows(name, options);
  while (!content.empty()) {
    ASSIGN_OR_RETURN(const bool is_row, rows.Take(TakeCsvLine(content)));
    if (!is_row) continue;
    for (size_t column = 0; column < rows.columns(); ++column) {
      double value;
      RETURN_IF_ERROR(rows.Number(column, value));
      table.values.push_back(value);
    }
  }
  RETURN_IF_ERROR(rows.Finish());
  table.columns = rows.columns();
  table.names = rows.names();
  return table;
}

absl::StatusOr<CsvTable> ReadCsv(FileSystem& files, const std::string& path, const CsvOptions& options) {
  ASSIGN_OR_RETURN(const std::string content, files.ReadFile(path));
  return ParseCsv(content, path, options);
}

}  // namespace muster
