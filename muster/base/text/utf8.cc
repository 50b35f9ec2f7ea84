#include "muster/base/text/utf8.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

namespace muster {
namespace {

// Returns how many bytes follow a character's first one; -1: none begins so.
int FollowingBytes(unsigned char first) {
  if (first < 0x80) return 0;
  if (first < 0xc2 || first > 0xf4) return -1;
  return first < 0xe0 ? 1 : first < 0xf0 ? 2 : 3;
}

// Returns whether the second byte can follow the first one: others would make a longer form, a surrogate, or more than
// U+10FFFF.
bool MayFollow(unsigned char first, unsigned char second) {
  if (first == 0xe0) return second >= 0xa0;
  if (first == 0xed) return second < 0xa0;
  if (first == 0xf0) return second >= 0x90;
  return first != 0xf4 || second < 0x90;
}

}  // namespace

bool IsUtf8(std::string_view text) {
  for (size_t at = 0; at < text.size();) {
    const unsigned char first = static_cast<unsigned char>(text[at]);
    const int following = FollowingBytes(first);
    if (following < 0 || text.size() - at <= static_cast<size_t>(following)) return false;
    const std::string_view rest = text.substr(at + 1, static_cast<size_t>(following));
    if (!std::all_of(rest.begin(), rest.end(), [](char c) { return (static_cast<uint8_t>(c) & 0xc0) == 0x80; }))
      return false;
    if (following > 0 && !MayFollow(first, static_cast<unsigned char>(rest[0]))) return false;
    at += 1 + rest.size();
  }
  return true;
}

}  // namespace muster
