// The layout of the memory that the ranks of one host share (docs/collectives.md, "Shared memory"): a header, a lane
// per rank, which only that rank writes, and each rank's slots. No pointers. Plain values.
#pragma once

#include <cstddef>
#include <cstdint>

#include "muster/collective/collective_call.h"

namespace muster {

// A rank's progress: chunks since the group began, modulo 2^32. Other ranks sleep on the word (futex).
struct alignas(64) ShmCounter {
  uint32_t chunks = 0;
  uint32_t sleeping = 0;  // another rank sleeps, or is about to: a rank that counts must wake it
};

enum class ShmPresence : uint32_t {
  kHere = 0,
  kLeft = 1,     // in order
  kGivenUp = 2,  // one of its operations has failed, because of `missing`
};

struct alignas(256) ShmLane {
  ShmCounter filled;   // its contribution to this many chunks lies in its slots
  ShmCounter reduced;  // its share of this many chunks' sums lies there, too
  alignas(64) uint32_t presence = 0;
  uint32_t missing = 0;     // a rank
  CollectiveCall calls[2];  // the even and the odd calls, by number: before a rank makes its next call but one,
                            // all ranks have made the next, so none of them reads the older one any more
};

// Three, because a rank may fill one chunk while others add up the previous one and yet others take the one before
// that.
constexpr int kShmBuffers = 3;

class ShmLayout {
 public:
  explicit ShmLayout(int size) : size_(size), piece_bytes_(PieceBytes(size)) {}

  int size() const { return size_; }
  // The bytes that a chunk of an operation has of each rank's share.
  size_t piece_bytes() const { return piece_bytes_; }
  size_t slot_bytes() const { return piece_bytes_ * size_; }
  size_t lane_offset(int rank) const { return kPage + rank * sizeof(ShmLane); }
  // A slot has one piece per rank, in order: the slot owner's contributions to the others' shares, and the sum of its
  // own share.
  size_t slot_offset(int rank, uint64_t chunk) const {
    return slots_offset() + (rank * kShmBuffers + chunk % kShmBuffers) * slot_bytes();
  }
  size_t total_bytes() const { return slots_offset() + size_ * kShmBuffers * slot_bytes(); }

 private:
  static constexpr size_t kPage = 4096;

  // Smaller chunks cost more waits; larger ones don't fit a core's own cache.
  static size_t PieceBytes(int size) {
    constexpr size_t kChunk = size_t{256} << 10;
    const size_t piece = kChunk / size / kPage * kPage;
    return piece < kPage ? kPage : piece;
  }
  size_t slots_offset() const { return (lane_offset(size_) + kPage - 1) / kPage * kPage; }

  int size_;
  size_t piece_bytes_;
};

}  // namespace muster
