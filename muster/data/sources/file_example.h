// Helpers shared by the sources that read files: make room in an Example without allocating if it fits already, and
// name a file in a stage's name. Internal to muster/data. Pure.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>
#include <vector>

#include "muster/base/dtype.h"
#include "muster/data/example.h"

namespace muster {

// Returns feature `index` of `into`, which must have that many features; its elements are undefined.
inline Array& FitFeature(Example& into, size_t index, const std::string& name, DType dtype,
                         const std::vector<int64_t>& shape) {
  Feature& feature = into.features[index];
  if (feature.name != name) feature.name = name;
  feature.value.Reset(dtype, shape);
  return feature.value;
}

// Returns one label, shape [], whose value is undefined.
inline Array& FitLabel(Example& into, DType dtype) {
  into.has_labels = true;
  into.labels.Reset(dtype, {});
  return into.labels;
}

// Returns the name without folders, as positions contain it and a restarted job may find its data in another place.
inline std::string FileNameOf(const std::filesystem::path& path) {
  return (path.has_filename() ? path : path.parent_path()).filename().string();  // "photos/" is "photos"
}

}  // namespace muster
