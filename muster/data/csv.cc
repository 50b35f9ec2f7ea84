#include "muster/data/csv.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/string_view.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
// A longer field is cut in messages: a binary file taken for a CSV may have no comma at all.
constexpr size_t kShownBytes = 40;

std::string_view Trim(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Takes one line (without its end) off the front of `rest`.
std::string_view TakeLine(std::string_view& rest) {
  const size_t end = rest.find('\n');
  std::string_view line = rest.substr(0, end);
  rest.remove_prefix(end == std::string_view::npos ? rest.size() : end + 1);
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  return line;
}

// Takes one field off the front of `rest`; `more` becomes false with the last one.
std::string_view TakeField(std::string_view& rest, char delimiter, bool& more) {
  const size_t end = rest.find(delimiter);
  const std::string_view field = Trim(rest.substr(0, end));
  more = end != std::string_view::npos;
  rest.remove_prefix(more ? end + 1 : rest.size());
  return field;
}

enum class Field { kNumber, kMissing, kNotNumber, kNotFinite };

Field ParseField(std::string_view field, double& value) {
  if (field.empty()) return Field::kMissing;
  if (field.front() == '+' && field.size() > 1 && field[1] != '-') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (end != field.data() + field.size()) return Field::kNotNumber;
  if (error == std::errc::result_out_of_range) return Field::kNotFinite;
  if (error != std::errc()) return Field::kNotNumber;
  return std::isfinite(value) ? Field::kNumber : Field::kNotFinite;
}

std::string Shown(std::string_view field) {
  std::string shown;
  for (const char c : field.substr(0, kShownBytes)) shown += c >= ' ' && c != 0x7f ? c : '?';
  return field.size() > kShownBytes ? shown + "..." : shown;
}

absl::Status Refusal(const std::string& name, size_t line, size_t column, std::string_view field, Field kind) {
  const std::string where = absl::StrCat(name, ", line ", line, ", column ", column, ": ");
  switch (kind) {
    case Field::kMissing:
      return absl::InvalidArgumentError(absl::StrCat(where, "the value is missing; a number is needed"));
    case Field::kNotFinite:
      return absl::InvalidArgumentError(absl::StrCat(where, "\"", Shown(field), "\" is not a finite number"));
    default:
      return absl::InvalidArgumentError(absl::StrCat(where, "\"", Shown(field), "\" is not a number"));
  }
}

bool HoldsNoNumber(std::string_view line, char delimiter) {
  for (bool more = true; more;) {
    double value;
    const Field kind = ParseField(TakeField(line, delimiter, more), value);
    if (kind == Field::kNumber || kind == Field::kNotFinite) return false;
  }
  return true;
}

void TakeNames(std::string_view line, char delimiter, CsvTable& table) {
  for (bool more = true; more;) {
    std::string_view name = TakeField(line, delimiter, more);
    if (name.size() >= 2 && name.front() == '"' && name.back() == '"') name = name.substr(1, name.size() - 2);
    table.names.emplace_back(name);
  }
  table.columns = table.names.size();
}

absl::Status TakeRow(std::string_view line, size_t line_number, const std::string& name, char delimiter,
                     CsvTable& table) {
  size_t column = 0;
  for (bool more = true; more;) {
    const std::string_view field = TakeField(line, delimiter, more);
    double value;
    const Field kind = ParseField(field, value);
    if (kind != Field::kNumber) return Refusal(name, line_number, column + 1, field, kind);
    table.values.push_back(value);
    ++column;
  }
  if (table.columns == 0) table.columns = column;
  if (column != table.columns) {
    return absl::InvalidArgumentError(absl::StrCat(name, ", line ", line_number, ": ", column, " columns where the ",
                                                   "lines above have ", table.columns));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<CsvTable> ParseCsv(std::string_view content, const std::string& name, const CsvOptions& options) {
  if (content.substr(0, kByteOrderMark.size()) == kByteOrderMark) content.remove_prefix(kByteOrderMark.size());
  while (!content.empty() && absl::string_view(" \t\r\n").find(content.back()) != absl::string_view::npos) {
    content.remove_suffix(1);
  }
  if (content.empty()) return absl::InvalidArgumentError(absl::StrCat(name, ": the file is empty"));

  CsvTable table;
  for (size_t line_number = 1; !content.empty(); ++line_number) {
    const std::string_view line = TakeLine(content);
    if (line_number == 1 &&
        (options.header == CsvOptions::Header::kPresent ||
         (options.header == CsvOptions::Header::kDetect && HoldsNoNumber(line, options.delimiter)))) {
      TakeNames(line, options.delimiter, table);
      continue;
    }
    if (Trim(line).empty()) {
      return absl::InvalidArgumentError(absl::StrCat(name, ", line ", line_number, ": the line is blank"));
    }
    RETURN_IF_ERROR(TakeRow(line, line_number, name, options.delimiter, table));
  }
  if (table.values.empty())
    return absl::InvalidArgumentError(absl::StrCat(name, ": there are no rows below the header"));
  return table;
}

absl::StatusOr<CsvTable> ReadCsv(FileSystem& files, const std::string& path, const CsvOptions& options) {
  ASSIGN_OR_RETURN(const std::string content, files.ReadFile(path));
  return ParseCsv(content, path, options);
}

}  // namespace muster
