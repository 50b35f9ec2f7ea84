// A labelled data set held in memory: n rows of float features and one integer label each. Every reader (CSV, IDX)
// produces this one form, from which Dataset::FromRows makes an input pipeline. Immutable once made, hence thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace muster {

class LabelledRows {
 public:
  // Has no rows.
  LabelledRows() = default;

  // `features` is [labels.size(), width], row after row. InvalidArgument if the sizes don't agree.
  static absl::StatusOr<LabelledRows> Create(size_t width, std::vector<float> features, std::vector<int64_t> labels);

  size_t size() const { return labels_.size(); }
  // Number of features in a row.
  size_t width() const { return width_; }

  // These are valid as long as the data set.
  std::span<const float> features() const { return features_; }  // [size, width]
  std::span<const int64_t> labels() const { return labels_; }    // [size]
  std::span<const float> row(size_t index) const { return features().subspan(index * width_, width_); }  // [width]

 private:
  size_t width_ = 0;
  std::vector<float> features_;
  std::vector<int64_t> labels_;
};

// A fixed division into rows to train on and rows to measure with.
struct Split {
  LabelledRows train;
  LabelledRows test;
};

// Rows for which `held_out(row)` is true go to `test`, the others to `train`, both in their old order.
Split SplitRows(const LabelledRows& all, absl::FunctionRef<bool(size_t row)> held_out);

// An image data set as its loader returns it: a row of features is one picture, row after row of pixels in [0, 1].
struct ImageData {
  Split split;
  size_t height = 0;
  size_t width = 0;
  size_t classes = 0;  // labels are 0 ... classes - 1
};

}  // namespace muster
