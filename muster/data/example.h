// The elements of an input pipeline: named features and a label or, after Dataset::Batch, as many of each as the batch
// has rows (then every array's first dimension is the number of rows). A plain value.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "muster/data/array.h"

namespace muster {

struct Feature {
  std::string name;
  Array value;
};

struct Example {
  std::vector<Feature> features;  // distinct names, the same in the same order in every example of a data set
  Array labels;
  bool has_labels = false;  // false: nothing to learn from (Predict)

  // Returns null if there is no feature of that name.
  const Array* Find(std::string_view name) const;
  Array* Find(std::string_view name);
};

}  // namespace muster
