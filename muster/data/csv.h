// Reads comma-separated files of numbers. Every refusal names the file, the line (counted from 1) and, where there is
// one, the column, so that a user finds the spot in an editor. Thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"

namespace muster {

struct CsvOptions {
  enum class Header {
    kNone,     // the first line is data
    kPresent,  // the first line holds names
    kDetect,   // the first line holds names if none of its fields is a number
  };
  Header header = Header::kNone;
  char delimiter = ',';
};

struct CsvTable {
  size_t columns = 0;
  std::vector<double> values;      // [rows, columns], row after row
  std::vector<std::string> names;  // of the columns; empty without a header

  size_t rows() const { return columns == 0 ? 0 : values.size() / columns; }
  double at(size_t row, size_t column) const { return values[row * columns + column]; }
  // The line of the file that `row` came from, for the messages of who finds fault with a value.
  size_t line(size_t row) const { return row + (names.empty() ? 1 : 2); }
};

// NotFound if there is no such file; InvalidArgument if it is empty, ragged, or has a field that is missing or is not a
// finite number. Lines end with \n or \r\n, the last one needn't; blank lines at the end are ignored, elsewhere they
// are an error; blanks around a field, quotes around it and a byte order mark at the start are allowed. A quoted field
// may hold the delimiter and, written twice, the quote, but no line's end.
absl::StatusOr<CsvTable> ReadCsv(FileSystem& files, const std::string& path, const CsvOptions& options = {});

// The same on the content of a file called `name`.
absl::StatusOr<CsvTable> ParseCsv(std::string_view content, const std::string& name, const CsvOptions& options = {});

}  // namespace muster
