#include "muster/estimator/canned/feature_column.h"

#include <algorithm>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/estimator/model/batch_rows.h"

namespace muster {

FeatureColumn NumericColumn(std::string name, int64_t dimension,
                            std::function<torch::Tensor(const torch::Tensor&)> normalizer) {
  return {std::move(name), dimension, std::move(normalizer)};
}

FeatureColumn RealValuedColumn(std::string name, int64_t dimension) { return {std::move(name), dimension, {}}; }

absl::Status CheckColumns(const std::vector<FeatureColumn>& columns) {
  if (columns.empty()) return absl::InvalidArgumentError("feature_columns has none; accepted: at least one column");
  std::set<std::string> names;
  for (const FeatureColumn& column : columns) {
    if (column.name.empty()) return absl::InvalidArgumentError("a column of feature_columns has no name");
    if (!names.insert(column.name).second)
      return absl::InvalidArgumentError(absl::StrCat("feature_columns has the column '", column.name, "' twice"));
    if (column.dimension < 1)
      return absl::InvalidArgumentError(
          absl::StrCat("column '", column.name, "': dimension is ", column.dimension, "; accepted: at least 1"));
  }
  return absl::OkStatus();
}

std::vector<FeatureColumn> ColumnsByName(std::vector<FeatureColumn> columns) {
  std::ranges::sort(columns, {}, &FeatureColumn::name);
  return columns;
}

torch::Tensor ColumnOf(const Minibatch& minibatch, const FeatureColumn& column) {
  const torch::Tensor& feature = FeatureOf(minibatch, column.name);
  const std::string what = absl::StrCat("feature '", column.name, "'", column.normalizer ? ", normalized," : "");
  const torch::Tensor numbers = AsColumns(column.normalizer ? column.normalizer(feature) : feature, what);
  if (numbers.size(1) != column.dimension)
    RefuseBatch(absl::StrCat(what, " has ", numbers.size(1), " numbers a row (its shape is ", ShapeText(feature),
                             "); its column's dimension is ", column.dimension));
  return numbers.to(torch::kFloat32);
}

torch::Tensor InputLayer(const Minibatch& minibatch, const std::vector<FeatureColumn>& columns) {
  std::vector<const FeatureColumn*> ordered;
  for (const FeatureColumn& column : columns) ordered.push_back(&column);
  std::ranges::sort(ordered, {}, [](const FeatureColumn* column) -> const std::string& { return column->name; });
  std::vector<torch::Tensor> parts;
  for (const FeatureColumn* column : ordered) parts.push_back(ColumnOf(minibatch, *column));
  return parts.size() == 1 ? parts[0] : torch::cat(parts, 1);
}

}  // namespace muster
