// FNV-1a, 64 bits: a hash on which all processes of a job, and later versions, agree. Not safe against an adversary. A
// pure function, thread-safe.
#pragma once

#include <cstdint>
#include <string_view>

namespace muster {

inline uint64_t Fnv1a(std::string_view text) {
  uint64_t hash = 0xcbf29ce484222325;
  for (const unsigned char byte : text) hash = (hash ^ byte) * 0x100000001b3;
  return hash;
}

}  // namespace muster
