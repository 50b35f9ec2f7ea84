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

  // At least `size` bytes; goes back to the pool when the last handle is gone.
  Handle Take(size_t size) {
    auto& free = *free_;
    size_t best = free.size();
    for (size_t i = 0; i < free.size(); ++i)
      if (free[i]->capacity() >= size && (best == free.size() || free[i]->capacity() < free[best]->capacity()))
        best = i;
    std::unique_ptr<Buffer> buffer;
    if (best < free.size()) {
      buffer = std::move(free[best]);
      free.erase(free.begin() + static_cast<std::ptrdiff_t>(best));
    } else {
      buffer = std::make_unique<Buffer>(size);
    }
    return {buffer.release(),
            [pool = std::weak_ptr(free_)](Buffer* raw) { Return(pool, std::unique_ptr<Buffer>(raw)); }};
  }

 private:
  using FreeList = std::vector<std::unique_ptr<Buffer>>;
  // As many idle buffers as two requests of each of a few clients need; more than that is given back to the system.
  static constexpr size_t kMaxIdle = 16;

  static void Return(const std::weak_ptr<FreeList>& pool, std::unique_ptr<Buffer> buffer) {
    if (const auto free = pool.lock(); free && free->size() < kMaxIdle) free->push_back(std::move(buffer));
  }

  std::shared_ptr<FreeList> free_ = std::make_shared<FreeList>();
};

}  // namespace muster
