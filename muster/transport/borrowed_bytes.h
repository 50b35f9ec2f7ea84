// Bytes in memory shared with the peer, borrowed for the lifetime of this object; then the peer may reuse the place.
// The peer may also write there earlier, by mistake or malice, so nothing may depend on reading the same bits twice.
// May outlive the connection and the listener. Movable; not thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <utility>

#include "muster/base/bytes.h"

namespace muster {

class BorrowedBytes {
 public:
  BorrowedBytes() = default;
  // `done` lies in `memory`; the destructor sets it to 1.
  BorrowedBytes(ByteSpan bytes, std::shared_ptr<const void> memory, std::atomic<uint32_t>* done)
      : bytes_(bytes), memory_(std::move(memory)), done_(done) {}
  BorrowedBytes(BorrowedBytes&& other) noexcept { *this = std::move(other); }
  BorrowedBytes& operator=(BorrowedBytes&& other) noexcept {
    if (this == &other) return *this;
    GiveBack();
    bytes_ = std::exchange(other.bytes_, {});
    memory_ = std::move(other.memory_);
    done_ = std::exchange(other.done_, nullptr);
    return *this;
  }
  ~BorrowedBytes() { GiveBack(); }

  ByteSpan bytes() const { return bytes_; }

 private:
  void GiveBack() {
    if (done_ != nullptr) done_->store(1, std::memory_order_release);
    done_ = nullptr;
  }

  ByteSpan bytes_;
  std::shared_ptr<const void> memory_;
  std::atomic<uint32_t>* done_ = nullptr;
};

}  // namespace muster
