// The memory of one stripe: the requested pieces of the value, of each slot and of the accumulator, and their division
// into the blocks that an update saves and changes one after the other. A view; no thread safety needed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "muster/base/bytes.h"
#include "muster/store/arena/arena_layout.h"

namespace muster {

struct StripeParts {
  static constexpr size_t kMaxParts = 6;

  std::array<MutableByteSpan, kMaxParts> parts;  // the value, the slots, the accumulator
  std::array<size_t, kMaxParts> element_sizes{};
  size_t count = 0;
  size_t elements = 0;
  size_t bytes_per_element = 0;  // of all parts together

  // Adds the elements of `whole` from `from` on.
  void Add(MutableByteSpan whole, size_t from, size_t element_size) {
    parts[count] = whole.subspan(from * element_size, elements * element_size);
    element_sizes[count++] = element_size;
    bytes_per_element += element_size;
  }

  size_t num_blocks() const { return (elements + kUndoBlockElements - 1) / kUndoBlockElements; }
  MutableByteSpan block(size_t part, size_t block) const {
    const size_t element_size = element_sizes[part];
    const size_t from = block * kUndoBlockElements;
    return parts[part].subspan(from * element_size,
                               std::min<size_t>(kUndoBlockElements, elements - from) * element_size);
  }
  // Bytes of all parts that come before `block` in an undo slot.
  size_t undo_offset(size_t block) const { return block * kUndoBlockElements * bytes_per_element; }
};

}  // namespace muster
