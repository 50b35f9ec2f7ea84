// Finds where to cut text that is too long without tearing a character. A function without state, thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

// Returns how many bytes to take of `text`, which has more than `most` (>= 1): `most`, or up to three fewer if that
// would tear a UTF-8 character. Never 0. Returns `most` if the text isn't UTF-8 there.
inline size_t CharacterCut(std::string_view text, size_t most) {
  constexpr size_t kLongestCharacter = 4;
  for (size_t cut = most; cut > 0 && cut + kLongestCharacter > most; --cut)
    if ((static_cast<unsigned char>(text[cut]) & 0xC0) != 0x80) return cut;
  return most;
}

}  // namespace muster
