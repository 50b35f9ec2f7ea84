#include "muster/base/crc32c.h"

#include <array>
#include <cstring>

#if defined(__x86_64__)
#include <nmmintrin.h>
#endif

namespace muster {
namespace {

constexpr uint32_t kPolynomial = 0x82f63b78;  // reflected

constexpr std::array<uint32_t, 256> MakeTable() {
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = (crc >> 1) ^ ((crc & 1) != 0 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

constexpr std::array<uint32_t, 256> kTable = MakeTable();

#if defined(__x86_64__)
// About 8 GB/s on one core: one 8-byte instruction in flight every 3 cycles.
__attribute__((target("sse4.2"))) uint32_t Crc32cSse42(ByteSpan bytes, uint32_t crc) {
  uint64_t state = ~crc;
  const std::byte* data = bytes.data();
  size_t left = bytes.size();
  for (; left >= 8; left -= 8, data += 8) {
    uint64_t word;
    std::memcpy(&word, data, 8);
    state = _mm_crc32_u64(state, word);
  }
  for (; left > 0; --left, ++data) state = _mm_crc32_u8(static_cast<uint32_t>(state), static_cast<uint8_t>(*data));
  return ~static_cast<uint32_t>(state);
}
#endif

}  // namespace

uint32_t Crc32cPortable(ByteSpan bytes, uint32_t crc) {
  crc = ~crc;
  for (std::byte byte : bytes) crc = (crc >> 8) ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xff];
  return ~crc;
}

uint32_t Crc32c(ByteSpan bytes, uint32_t crc) {
#if defined(__x86_64__)
  static const bool has_sse42 = __builtin_cpu_supports("sse4.2");
  if (has_sse42) return Crc32cSse42(bytes, crc);
#endif
  return Crc32cPortable(bytes, crc);
}

uint32_t MaskedCrc32c(ByteSpan bytes) {
  const uint32_t crc = Crc32c(bytes);
  return ((crc >> 15) | (crc << 17)) + 0xa282ead8u;
}

}  // namespace muster
