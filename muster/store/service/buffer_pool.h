// Reusable uninitialised memory for messages in flight, so that a step allocates nothing large. Lives on one event
// loop; a buffer may outlive the pool.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "muster/base/bytes.h"

namespace muster {

class BufferPool {
 public:
  class Buffer {
   public:
    explicit Buffer(size_t capacity)
        : memory_(std::make_unique_for_overwrite<std::byte[]>(capacity)), capacity_(capacity) {}
    MutableByteSpan first(size_t size) { return {memory_.get(), size}; }
    size_t capacity() const { return capacity_; }

   private:
    std::unique_ptr<std::byte[]> memory_;
    size_t capacity_;
  };
  using Handle = std::shared_ptr<Buffer>;

  // Returns a buffer of at least `size` bytes, which is the pool's again when no other handle is left.
  Handle Take(size_t size) {
    DropIdle();
    size_t best = buffers_.size();
    for (size_t i = 0; i < buffers_.size(); ++i)
      if (idle(i) && buffers_[i]->capacity() >= size &&
          (best == buffers_.size() || buffers_[i]->capacity() < buffers_[best]->capacity()))
        best = i;
    if (best < buffers_.size()) return buffers_[best];
    return buffers_.emplace_back(std::make_shared<Buffer>(size));
  }

 private:
  // Enough idle buffers for two requests from each of a few clients; more are given back to the system.
  static constexpr size_t kMaxIdle = 16;

  bool idle(size_t i) const { return buffers_[i].use_count() == 1; }
  void DropIdle() {
    size_t idle_ones = 0;
    std::erase_if(buffers_, [&](const Handle& buffer) { return buffer.use_count() == 1 && ++idle_ones > kMaxIdle; });
  }

  std::vector<Handle> buffers_;  // in use and idle
};

}  // namespace muster
