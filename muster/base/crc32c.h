// CRC-32C (Castagnoli), as TensorBoard's event files and our checkpoints use it. Debian has no library of it.
// Thread-safe.
#pragma once

#include <cstdint>

#include "muster/base/bytes.h"

namespace muster {

// The checksum of `bytes` appended to data whose checksum is `crc` (0: nothing yet). Uses SSE 4.2 where there is it.
uint32_t Crc32c(ByteSpan bytes, uint32_t crc = 0);

// The same without special instructions: the reference the fast one is tested against.
uint32_t Crc32cPortable(ByteSpan bytes, uint32_t crc = 0);

// TensorFlow's masking of a checksum that is stored beside the data it covers (core/lib/hash/crc32c.h).
uint32_t MaskedCrc32c(ByteSpan bytes);

}  // namespace muster
