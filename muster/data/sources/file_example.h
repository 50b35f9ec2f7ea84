// What the sources that read files have in common: room in an Example, without allocating where it fits already, and
// what a file is called in a stage's name. Internal to muster/data. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/data/example.h"

namespace muster {

// Feature `index` of `into`, which has that many; its elements are undefined.
inline Array& FitFeature(Example& into, size_t index, const std::string& name, DType dtype,
                         const std::vector<int64_t>& shape) {
  Feature& feature = into.features[index];
  if (feature.name != name) feature.name = name;
  feature.value.Reset(dtype, shape);
  return feature.value;
}

// One label, shape [], whose value is undefined.
inline Array& FitLabel(Example& into, DType dtype) {
  into.has_labels = true;
  into.labels.Reset(dtype, {});
  return into.labels;
}

// Without its folders: a restarted job may find its data in another place, and positions are of this name.
inline std::string FileNameOf(const std::filesystem::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();  // "photos/" is "photos"
}

}  // namespace muster
