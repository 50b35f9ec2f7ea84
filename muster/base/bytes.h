// Borrowed memory: every layer below torch passes tensors and messages as these spans. They own nothing; the code that
// makes a span says how long it stays valid.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

namespace muster {

using ByteSpan = std::span<const std::byte>;
using MutableByteSpan = std::span<std::byte>;

// Several pieces of memory read or written in order as if they were one (gather / scatter).
using Segments = std::vector<ByteSpan>;
using MutableSegments = std::vector<MutableByteSpan>;

template <typename Spans>
size_t TotalBytes(const Spans& spans) {
  size_t total = 0;
  for (const auto& span : spans) total += span.size();
  return total;
}

template <typename T>
ByteSpan AsBytes(const T* data, size_t count) {
  return {reinterpret_cast<const std::byte*>(data), count * sizeof(T)};
}

template <typename T>
MutableByteSpan AsMutableBytes(T* data, size_t count) {
  return {reinterpret_cast<std::byte*>(data), count * sizeof(T)};
}

}  // namespace muster
