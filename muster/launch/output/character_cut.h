// Where to cut text that is too long, so that no character is torn. A function without state, thread-safe.
#pragma once

#include <cstddef>
#include <string_view>

namespace muster {

// How many bytes of `text`, which has more than `most` (>= 1), to take: `most`, or up to three less if a character of
// UTF-8 would be torn there. Never 0; `most` where it isn't UTF-8.
inline size_t CharacterCut(std::string_view text, size_t most) {
  constexpr size_t kLongestCharacter = 4;
  for (size_t cut = most; cut > 0 && cut + kLongestCharacter > most; --cut)
    if ((static_cast<unsigned char>(text[cut]) & 0xC0) != 0x80) return cut;
  return most;
}

}  // namespace muster
