#include "muster/data/labelled_rows.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"

namespace muster {

absl::StatusOr<LabelledRows> LabelledRows::Create(size_t width, std::vector<float> features,
                                                  std::vector<int64_t> labels) {
  const bool agree =
      width == 0 ? features.empty() : features.size() % width == 0 && features.size() / width == labels.size();
  if (!agree) {
    return absl::InvalidArgumentError(absl::StrCat(features.size(), " features don't make ", labels.size(), " rows of ",
                                                   width, " columns, one for each label"));
  }
  LabelledRows made;
  made.width_ = width;
  made.features_ = std::move(features);
  made.labels_ = std::move(labels);
  return made;
}

Split SplitRows(const LabelledRows& all, absl::FunctionRef<bool(size_t row)> held_out) {
  std::vector<float> features[2];
  std::vector<int64_t> labels[2];
  for (size_t i = 0; i < all.size(); ++i) {
    const int part = held_out(i) ? 1 : 0;
    const std::span<const float> row = all.row(i);
    features[part].insert(features[part].end(), row.begin(), row.end());
    labels[part].push_back(all.labels()[i]);
  }
  auto train = LabelledRows::Create(all.width(), std::move(features[0]), std::move(labels[0]));
  auto test = LabelledRows::Create(all.width(), std::move(features[1]), std::move(labels[1]));
  MUSTER_CHECK(train.ok() && test.ok());  // rows of one data set have one width
  return {*std::move(train), *std::move(test)};
}

}  // namespace muster
