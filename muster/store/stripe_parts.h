// The memory of one stripe: its piece of the value and of each slot, and how they are divided into the blocks that an
// update saves and changes one after the other. A view; no thread safety needed.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>

#include "muster/base/bytes.h"
#include "muster/store/arena_layout.h"

namespace muster {

struct StripeParts {
  static constexpr size_t kMaxParts = 5;

  std::array<MutableByteSpan, kMaxParts> parts;  // the value, then the slots
  size_t count = 0;
  size_t elements = 0;
  const ArenaLayout::Slice* slice = nullptr;

  size_t num_blocks() const { return (elements + kUndoBlockElements - 1) / kUndoBlockElements; }
  MutableByteSpan block(size_t part, size_t block) const {
    const size_t element_size = part == 0 ? slice->element_size : slice->slot_element_size;
    const size_t from = block * kUndoBlockElements;
    return parts[part].subspan(from * element_size,
                               std::min<size_t>(kUndoBlockElements, elements - from) * element_size);
  }
  // How many bytes of all parts come before `block` in an undo slot.
  size_t undo_offset(size_t block) const { return block * kUndoBlockElements * slice->bytes_per_element(); }
};

}  // namespace muster
