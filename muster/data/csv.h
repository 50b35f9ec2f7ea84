// Reads comma-separated files of numbers. Every error names the file, the line (counted from 1) and, if there is one,
// the column, so that a user finds the place in an editor. Thread-safe.
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
  // Returns the line of the file that `row` came from, for error messages about a value.
  size_t line(size_t row) const { return row + (names.empty() ? 1 : 2); }
};

// NotFound if there is no such file; InvalidArgument if it is empty, ragged, or has a field that is missing or isn't a
// finite number. Lines end with \n or \r\n; the last one may end without. Blank lines are ignored at the end and an
// error elsewhere. Blanks and quotes around a field and a byte order mark at the start are allowed. A quoted field may
// hold the delimiter and, written twice, the quote, but no end of line.
absl::StatusOr<CsvTable> ReadCsv(FileSystem& files, const std::string& path, const CsvOptions& options = {});

// Does the same with the content of a file called `name`.
absl::StatusOr<CsvTable> ParseCsv(std::string_view content, const std::string& name, const CsvOptions& options = {});

}  // namespace muster
