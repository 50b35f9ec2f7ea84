// Draws all elements of a data set, for the tests of the sources.
#pragma once

#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/status_macros.h"
#include "muster/data/dataset/dataset.h"

namespace muster {

// Draws at most `most` examples, for endless data sets.
inline absl::StatusOr<std::vector<Example>> DrawnExamples(const Dataset& data, size_t most = 1000) {
  ASSIGN_OR_RETURN(const auto stream, data.Open());
  std::vector<Example> drawn;
  Example example;
  while (drawn.size() < most) {
    ASSIGN_OR_RETURN(const bool got, stream->Next(example));
    if (!got) break;
    drawn.push_back(example);
  }
  return drawn;
}

// Returns the error with which drawing all elements fails; OK if it doesn't.
inline absl::Status DrawingError(const Dataset& data) { return DrawnExamples(data).status(); }

template <typename T>
std::vector<T> ValuesOf(const Array& array) {
  const auto values = array.As<T>();
  return {values.begin(), values.end()};
}

}  // namespace muster
