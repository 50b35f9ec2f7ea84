// Reads and writes numbers in the byte order of the wire and of files: little-endian, at any alignment.
#pragma once

#include <cstddef>
#include <cstdint>

namespace muster {

template <typename T>
void StoreLittleEndian(T value, std::byte* to) {
  for (size_t i = 0; i < sizeof(T); ++i) to[i] = static_cast<std::byte>(static_cast<uint64_t>(value) >> (8 * i));
}

template <typename T>
T LoadLittleEndian(const std::byte* from) {
  uint64_t value = 0;
  for (size_t i = 0; i < sizeof(T); ++i) value |= static_cast<uint64_t>(from[i]) << (8 * i);
  return static_cast<T>(value);
}

}  // namespace muster
