// CRC-32C (Castagnoli), which TensorBoard's event files and our checkpoints use. Debian packages no library for it.
// Thread-safe.
#pragma once

#include <cstdint>

#include "muster/base/bytes.h"

namespace muster {

// Returns the checksum of `bytes` appended to data whose checksum is `crc` (0 if there is none yet). Uses SSE 4.2 if
// the processor has it.
uint32_t Crc32c(ByteSpan bytes, uint32_t crc = 0);

// The same without special instructions: the reference that the fast one is tested against.
uint32_t Crc32cPortable(ByteSpan bytes, uint32_t crc = 0);

// Returns the checksum as TensorFlow masks it when it is stored beside the data that it covers
// (core/lib/hash/crc32c.h).
uint32_t MaskedCrc32c(ByteSpan bytes);

}  // namespace muster
