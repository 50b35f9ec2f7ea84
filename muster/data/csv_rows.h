// Splits the lines of a comma-separated file, one after the other. Reading a file as a whole (csv.h) and line by line
// (sources/csv_source.h) both use it, so they agree on headers, quotes, blank lines and numbers, and report errors in
// the same words, with file, line (counted from 1) and column. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/data/csv.h"

namespace muster {

class CsvRows {
 public:
  // `file` is the name used in messages.
  CsvRows(std::string file, const CsvOptions& options) : file_(std::move(file)), options_(options) {}

  // Takes the next line of the file, without the "\n" at its end. True: it is a row, whose fields are below. False: it
  // holds the names of the columns, or is blank, as lines at the end may be. InvalidArgument: a blank line above
  // (reported when another line follows), a quote that isn't closed, a number of columns that differs from the lines
  // above.
  absl::StatusOr<bool> Take(std::string_view line);
  // Called after the last line. InvalidArgument: there was no row.
  [[nodiscard]] absl::Status Finish() const;

  // Returns the fields of the row taken last, one per column, without blanks and quotes around them. Valid as long as
  // the line given to Take.
  const std::vector<std::string_view>& fields() const { return fields_; }
  // Reads the number in a field (counted from 0) of that row. InvalidArgument: it isn't a number, or isn't finite.
  [[nodiscard]] absl::Status Number(size_t column, double& value) const;
  // Returns "train.csv, line 3, column 2 (width)", for error messages about a value of that row.
  std::string PlaceOf(size_t column) const;

  // Returns the columns' names; empty without a header, or before it was read.
  const std::vector<std::string>& names() const { return names_; }
  // 0 before the first line that isn't blank.
  size_t columns() const { return columns_; }

 private:
  [[nodiscard]] absl::Status Split(std::string_view line);
  bool HoldsNames() const;
  void TakeNames();

  const std::string file_;
  const CsvOptions options_;
  size_t line_ = 0;   // taken last
  size_t blank_ = 0;  // the first blank line; 0: none yet
  size_t rows_ = 0;
  size_t columns_ = 0;
  std::vector<std::string> names_;
  std::vector<std::string_view> fields_;
};

// Returns a field as shown in a message: without control characters, and cut if it is long (a binary file taken for a
// CSV may have no comma at all).
std::string ShownCsvField(std::string_view field);

}  // namespace muster
