// Where the bulk of the frame being received goes: piece by piece into given memory, or nowhere. It knows nothing of
// sockets: it says which memory is next and is told how much of that was filled. Not thread-safe. Internal to tcp/.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <cstdint>
#include <vector>

#include "muster/base/bytes.h"

namespace muster {

class IncomingBulk {
 public:
  // `bytes` bytes will come. `into` is at least as long, and borrowed until all have come; null: they are discarded.
  void Begin(const MutableSegments* into, uint64_t bytes);
  // Discards the rest; the memory is free.
  void Discard() { into_ = nullptr; }
  // Ends the bulk. The state is that of Begin with no bytes.
  void End();

  bool wanted() const { return into_ != nullptr; }
  uint64_t left() const { return left_; }

  // Fills at most `most` vectors with the memory for the next bytes; `bytes` receives their total. Returns how many it
  // filled.
  size_t Gather(iovec* vectors, size_t most, size_t* bytes);
  // `bytes` more bytes have come, into that memory if they are wanted.
  void Advance(size_t bytes);
  // Copies `bytes`, no more than are left, as if they had come.
  void Take(ByteSpan bytes);

 private:
  const MutableSegments* into_ = nullptr;
  size_t segment_ = 0;  // where the next byte goes
  size_t offset_ = 0;
  uint64_t left_ = 0;
  std::vector<std::byte> scratch_;  // holds discarded bytes; empty otherwise
};

}  // namespace muster
