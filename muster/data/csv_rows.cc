#include "muster/data/csv_rows.h"

#include <charconv>
#include <cmath>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_replace.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr size_t kShownBytes = 40;

std::string_view TrimCsvField(std::string_view text) {
  const size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

// Returns the position of the quote that closes the one at `open`; two in a row stand for one that belongs to the
// field.
size_t CsvClosingQuote(std::string_view text, size_t open) {
  size_t close = text.find('"', open + 1);
  while (close != std::string_view::npos && close + 1 < text.size() && text[close + 1] == '"')
    close = text.find('"', close + 2);
  return close;
}

// Takes one field off the front of `rest`; sets `more` to false after the last one. False: it begins with a quote that
// isn't closed or that something follows.
bool TakeCsvField(std::string_view& rest, char delimiter, std::string_view& field, bool& more) {
  size_t end = rest.find(delimiter);
  field = TrimCsvField(rest.substr(0, end));
  if (!field.empty() && field.front() == '"') {
    const size_t open = field.data() - rest.data();
    const size_t close = CsvClosingQuote(rest, open);
    if (close == std::string_view::npos) return false;
    end = rest.find(delimiter, close);
    if (!TrimCsvField(rest.substr(close + 1, end == std::string_view::npos ? end : end - close - 1)).empty())
      return false;
    field = rest.substr(open + 1, close - open - 1);
  }
  more = end != std::string_view::npos;
  rest.remove_prefix(more ? end + 1 : rest.size());
  return true;
}

enum class CsvFieldKind { kNumber, kMissing, kNotNumber, kNotFinite };

CsvFieldKind ParseCsvField(std::string_view field, double& value) {
  if (field.empty()) return CsvFieldKind::kMissing;
  if (field.front() == '+' && field.size() > 1 && field[1] != '-') field.remove_prefix(1);
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (end != field.data() + field.size()) return CsvFieldKind::kNotNumber;
  if (error == std::errc::result_out_of_range) return CsvFieldKind::kNotFinite;
  if (error != std::errc()) return CsvFieldKind::kNotNumber;
  return std::isfinite(value) ? CsvFieldKind::kNumber : CsvFieldKind::kNotFinite;
}

}  // namespace

std::string ShownCsvField(std::string_view field) {
  std::string shown;
  for (const char c : field.substr(0, kShownBytes)) shown += c >= ' ' && c != 0x7f ? c : '?';
  return field.size() > kShownBytes ? shown + "..." : shown;
}

absl::StatusOr<bool> CsvRows::Take(std::string_view line) {
  ++line_;
  if (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  if (line_ == 1 && line.substr(0, kByteOrderMark.size()) == kByteOrderMark) line.remove_prefix(kByteOrderMark.size());
  if (TrimCsvField(line).empty()) {
    if (blank_ == 0) blank_ = line_;
    return false;
  }
  if (blank_ != 0) return absl::InvalidArgumentError(absl::StrCat(file_, ", line ", blank_, ": the line is blank"));
  RETURN_IF_ERROR(Split(line));
  if (line_ == 1 && HoldsNames()) {
    TakeNames();
    return false;
  }
  if (columns_ == 0) columns_ = fields_.size();
  if (fields_.size() != columns_) {
    return absl::InvalidArgumentError(
        absl::StrCat(file_, ", line ", line_, ": ", fields_.size(), " columns where the lines above have ", columns_));
  }
  ++rows_;
  return true;
}

absl::Status CsvRows::Finish() const {
  if (rows_ > 0) return absl::OkStatus();
  if (columns_ == 0) return absl::InvalidArgumentError(absl::StrCat(file_, ": the file is empty"));
  return absl::InvalidArgumentError(absl::StrCat(file_, ": there are no rows below the header"));
}

absl::Status CsvRows::Number(size_t column, double& value) const {
  const std::string_view field = fields_[column];
  switch (ParseCsvField(field, value)) {
    case CsvFieldKind::kNumber:
      return absl::OkStatus();
    case CsvFieldKind::kMissing:
      return absl::InvalidArgumentError(absl::StrCat(PlaceOf(column), ": the value is missing; a number is needed"));
    case CsvFieldKind::kNotFinite:
      return absl::InvalidArgumentError(
          absl::StrCat(PlaceOf(column), ": \"", ShownCsvField(field), "\" is not a finite number"));
    case CsvFieldKind::kNotNumber:
      break;
  }
  return absl::InvalidArgumentError(absl::StrCat(PlaceOf(column), ": \"", ShownCsvField(field), "\" is not a number"));
}

std::string CsvRows::PlaceOf(size_t column) const {
  const std::string place = absl::StrCat(file_, ", line ", line_, ", column ", column + 1);
  return names_.empty() ? place : absl::StrCat(place, " (", ShownCsvField(names_[column]), ")");
}

absl::Status CsvRows::Split(std::string_view line) {
  fields_.clear();
  for (bool more = true; more;) {
    std::string_view field;
    if (!TakeCsvField(line, options_.delimiter, field, more)) {
      return absl::InvalidArgumentError(absl::StrCat(file_, ", line ", line_, ", column ", fields_.size() + 1,
                                                     ": the quote isn't closed on this line, or something follows it"));
    }
    fields_.push_back(field);
  }
  return absl::OkStatus();
}

bool CsvRows::HoldsNames() const {
  if (options_.header != CsvOptions::Header::kDetect) return options_.header == CsvOptions::Header::kPresent;
  for (const std::string_view field : fields_) {
    double value;
    const CsvFieldKind kind = ParseCsvField(field, value);
    if (kind == CsvFieldKind::kNumber || kind == CsvFieldKind::kNotFinite) return false;
  }
  return true;
}

void CsvRows::TakeNames() {
  for (const std::string_view field : fields_) names_.push_back(absl::StrReplaceAll(AbslView(field), {{"\"\"", "\""}}));
  columns_ = names_.size();
}

}  // namespace muster
