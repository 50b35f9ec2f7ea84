#include "muster/data/stages/stack_rows.h"

#include <algorithm>
#include <cstring>
#include <span>
#include <string>

#include "absl/container/inlined_vector.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/string_view.h"
#include "muster/base/dtype.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

std::string DescribeValue(DType dtype, std::span<const int64_t> shape) {
  return absl::StrCat(DTypeName(dtype), " [", absl::StrJoin(shape, ", "), "]");
}

absl::Status StackArray(const Array& row, size_t at, absl::string_view what, Array& into) {
  const auto row_shape = std::span<const int64_t>(into.shape()).subspan(1);
  if (row.dtype() != into.dtype() ||
      !std::equal(row_shape.begin(), row_shape.end(), row.shape().begin(), row.shape().end())) {
    return absl::InvalidArgumentError(absl::StrCat(what, " of row ", at, " of a batch is ",
                                                   DescribeValue(row.dtype(), row.shape()), ", that of its first row ",
                                                   DescribeValue(into.dtype(), row_shape)));
  }
  const size_t bytes = row.bytes();
  if (bytes > 0) std::memcpy(into.data().data() + at * bytes, row.data().data(), bytes);
  return absl::OkStatus();
}

std::string StackedNames(const Example& example) {
  return absl::StrCat(
      "[",
      absl::StrJoin(example.features, ", ",
                    [](std::string* out, const Feature& feature) { absl::StrAppend(out, feature.name); }),
      example.has_labels ? "] and a label" : "]");
}

}  // namespace

void ResetRows(Array& into, DType dtype, std::span<const int64_t> row_shape, size_t rows) {
  absl::InlinedVector<int64_t, 8> shape = {static_cast<int64_t>(rows)};
  shape.insert(shape.end(), row_shape.begin(), row_shape.end());
  into.Reset(dtype, std::span<const int64_t>(shape.data(), shape.size()));
}

void PrepareStack(const Example& row, size_t rows, Example& into) {
  into.features.resize(row.features.size());
  for (size_t i = 0; i < row.features.size(); ++i) {
    const Feature& from = row.features[i];
    into.features[i].name = from.name;
    ResetRows(into.features[i].value, from.value.dtype(), from.value.shape(), rows);
  }
  into.has_labels = row.has_labels;
  if (row.has_labels) ResetRows(into.labels, row.labels.dtype(), row.labels.shape(), rows);
}

absl::Status StackRow(const Example& row, size_t at, Example& into) {
  const bool same_names =
      std::equal(row.features.begin(), row.features.end(), into.features.begin(), into.features.end(),
                 [](const Feature& a, const Feature& b) { return a.name == b.name; });
  if (!same_names || row.has_labels != into.has_labels) {
    return absl::InvalidArgumentError(absl::StrCat("row ", at, " of a batch has the features ", StackedNames(row),
                                                   ", its first row ", StackedNames(into)));
  }
  for (size_t i = 0; i < row.features.size(); ++i) {
    RETURN_IF_ERROR(StackArray(row.features[i].value, at, row.features[i].name, into.features[i].value));
  }
  return row.has_labels ? StackArray(row.labels, at, "the label", into.labels) : absl::OkStatus();
}

void CutStack(size_t rows, Example& into) {
  for (Feature& feature : into.features) feature.value.KeepRows(static_cast<int64_t>(rows));
  if (into.has_labels) into.labels.KeepRows(static_cast<int64_t>(rows));
}

}  // namespace muster
