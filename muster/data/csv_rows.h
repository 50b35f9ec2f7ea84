// Takes the lines of a comma-separated file apart, one after the other. The problem it solves: a file read as a whole
// (csv.h) and one read line by line (sources/csv_source.h) agree on headers, quotes, blank lines and numbers, and
// refuse what is wrong in the same words, with file, line (counted from 1) and column. Not thread-safe.
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
  // `file`: what messages call it.
  CsvRows(std::string file, const CsvOptions& options) : file_(std::move(file)), options_(options) {}

  // The next line of the file, without the "\n" at its end. True: it is a row, whose fields are below. False: it holds
  // the names of the columns, or is blank, as lines at the end may be. InvalidArgument: a blank line above (told when
  // another line follows), a quote that isn't closed, another number of columns than the lines above have.
  absl::StatusOr<bool> Take(std::string_view line);
  // After the last line. InvalidArgument: there was no row.
  [[nodiscard]] absl::Status Finish() const;

  // Of the row taken last, as many as there are columns; without blanks around them, and without quotes. Valid as long
  // as the line that was handed in.
  const std::vector<std::string_view>& fields() const { return fields_; }
  // The number that is in a field (counted from 0) of that row. InvalidArgument: none is, or it isn't finite.
  [[nodiscard]] absl::Status Number(size_t column, double& value) const;
  // "train.csv, line 3, column 2 (width)", for the messages of who finds fault with a value of that row.
  std::string PlaceOf(size_t column) const;

  // Of the columns; empty without a header, or before it was read.
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

// A field in a message: cut where it is long (a binary file taken for a CSV may have no comma at all), without control
// characters.
std::string ShownCsvField(std::string_view field);

}  // namespace muster
