// Which rank adds up which elements: each has a share of an operation. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>

namespace muster {

struct Share {
  size_t begin = 0;  // element
  size_t elements = 0;
};

// The shares cover all elements in order of the rank. The first ones have ceil(elements / size); the last may be empty.
inline Share ShareOf(size_t elements, int rank, int size) {
  const size_t each = (elements + size - 1) / size;
  const size_t begin = std::min(elements, rank * each);
  return {begin, std::min(each, elements - begin)};
}

}  // namespace muster
