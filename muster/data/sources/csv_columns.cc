#include "muster/data/sources/csv_columns.h"

#include <algorithm>
#include <cstdint>
#include <set>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/base/wrong_configuration.h"
#include "muster/data/csv_rows.h"

namespace muster {
namespace {

struct CsvHeading {
  const std::string& file;
  const std::vector<std::string>& names;
  const size_t columns;
};

// Lists all names, or the first of many.
std::string ShownCsvNames(const std::vector<std::string>& names) {
  constexpr size_t kShown = 12;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kShown); ++i) shown.push_back(ShownCsvField(names[i]));
  const std::string joined = absl::StrJoin(shown, ", ");
  return names.size() > kShown ? absl::StrCat(joined, ", ... (", names.size(), " columns)") : joined;
}

absl::StatusOr<size_t> CsvColumnByNumber(const CsvHeading& heading, const std::string& wanted, int64_t number) {
  const auto columns = static_cast<int64_t>(heading.columns);
  if (number >= -columns && number < columns) return static_cast<size_t>(number < 0 ? number + columns : number);
  return WrongOptionError(absl::StrCat(heading.file, ": there is no column ", wanted, " among ", columns,
                                       "; accepted: 0 to ", columns - 1,
                                       ", and -1 for the last, -2 for the one before"));
}

// A name that looks like a number is tried as a name first.
absl::StatusOr<size_t> FindCsvColumn(const CsvHeading& heading, const std::string& wanted) {
  const auto found = std::find(heading.names.begin(), heading.names.end(), wanted);
  if (found != heading.names.end()) {
    if (std::find(found + 1, heading.names.end(), wanted) == heading.names.end())
      return static_cast<size_t>(found - heading.names.begin());
    return WrongOptionError(absl::StrCat(heading.file, ": more than one column is called \"", wanted,
                                         "\"; say which by its number, counted from 0"));
  }
  int64_t number;
  if (absl::SimpleAtoi(wanted, &number)) return CsvColumnByNumber(heading, wanted, number);
  if (heading.names.empty()) {
    return WrongOptionError(absl::StrCat(heading.file, ": there is no column \"", wanted, "\", as the columns have no ",
                                         "names; say which by its number, 0 to ", heading.columns - 1));
  }
  return WrongOptionError(absl::StrCat(heading.file, ": there is no column \"", wanted, "\"",
                                       NearestHint(wanted, heading.names), "; there are ",
                                       ShownCsvNames(heading.names)));
}

// Returns a group's columns: those it names, or all except the label's.
absl::StatusOr<std::vector<size_t>> FindCsvGroup(const CsvHeading& heading, const CsvColumns::Group& group,
                                                 std::optional<size_t> label) {
  std::vector<size_t> columns;
  for (const std::string& wanted : group.columns) {
    ASSIGN_OR_RETURN(const size_t column, FindCsvColumn(heading, wanted));
    if (column == label) {
      return WrongOptionError(absl::StrCat(heading.file, ": column \"", wanted, "\" is the label and also part of the ",
                                           "feature \"", group.feature, "\"; name another label, or \"\" for none"));
    }
    columns.push_back(column);
  }
  for (size_t column = 0; group.columns.empty() && column < heading.columns; ++column)
    if (column != label) columns.push_back(column);
  if (!columns.empty()) return columns;
  return WrongOptionError(absl::StrCat(heading.file, ": the only column is the label, so that none is left for the ",
                                       "feature \"", group.feature, "\""));
}

}  // namespace

absl::Status CheckCsvColumns(const CsvColumns& wanted) {
  if (wanted.groups.empty()) return WrongOptionError("there are no groups of columns, so no feature; one is needed");
  std::set<std::string> features;
  for (const CsvColumns::Group& group : wanted.groups) {
    if (group.feature.empty()) return WrongOptionError("a group of columns has no name for its feature");
    if (!features.insert(group.feature).second)
      return WrongOptionError(absl::StrCat("two groups of columns make a feature \"", group.feature, "\""));
  }
  if (wanted.label_dtype != DType::kInt64 && wanted.label_dtype != DType::kFloat32) {
    return WrongOptionError(
        absl::StrCat("labels of type ", DTypeName(wanted.label_dtype), "; accepted: int64, float32"));
  }
  if (absl::string_view("\"\r\n").find(wanted.delimiter) != absl::string_view::npos)
    return WrongOptionError("the delimiter is a quote or the end of a line");
  return absl::OkStatus();
}

absl::StatusOr<CsvSelection> SelectCsvColumns(const CsvColumns& wanted, const std::string& file,
                                              const std::vector<std::string>& names, size_t columns) {
  const CsvHeading heading = {file, names, columns};
  CsvSelection selection;
  if (!wanted.label.empty()) {
    ASSIGN_OR_RETURN(selection.label, FindCsvColumn(heading, wanted.label));
  }
  for (const CsvColumns::Group& group : wanted.groups) {
    ASSIGN_OR_RETURN(selection.groups.emplace_back(), FindCsvGroup(heading, group, selection.label));
  }
  return selection;
}

}  // namespace muster
