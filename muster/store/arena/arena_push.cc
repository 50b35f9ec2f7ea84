#include "muster/store/arena/arena_push.h"

namespace muster {

ByteSpan ArenaPush::Changed(DType dtype, size_t offset, ByteSpan value, ByteSpan gradient, MutableByteSpan room) const {
  change->Change({.dtype = dtype,
                  .offset = offset,
                  .value = value,
                  .pulled = computed_from.empty() ? ByteSpan() : computed_from.subspan(offset, value.size()),
                  .gradient = gradient,
                  .scale = gradient_scale},
                 room.first(value.size()));
  return room.first(value.size());
}

}  // namespace muster
