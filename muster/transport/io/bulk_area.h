// Large bulk parts beside the rings (docs/shared_memory.md, section 2). The writer takes extents of its area, fills
// them and gets them back when the reader is done; the reader reads them in place. Values written by the other side are
// checked, and read only once. Each object is used by one thread; BorrowedBytes and extents may outlive the connection.
// Internal to the transport.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/transport/borrowed_bytes.h"
#include "muster/transport/io/shared_memory.h"

namespace muster {

class OutgoingArea;

// A place in an area for one bulk part. The destructor frees it, unless it was handed over. Movable.
class Extent {
 public:
  Extent() = default;
  Extent(Extent&& other) noexcept { *this = std::move(other); }
  Extent& operator=(Extent&& other) noexcept {
    if (this == &other) return *this;
    Free();
    area_ = std::move(other.area_);
    handed_over_ = other.handed_over_;
    offset_ = other.offset_;
    memory_ = std::exchange(other.memory_, {});
    return *this;
  }
  ~Extent() { Free(); }

  explicit operator bool() const { return area_ != nullptr; }
  uint64_t offset() const { return offset_; }
  MutableByteSpan memory() const { return memory_; }
  // Lets the reader read the first `bytes` bytes.
  void Publish(uint64_t bytes);
  // The reader knows of the extent, and will say when it is done with it.
  void HandOver();

 private:
  friend class OutgoingArea;
  Extent(std::shared_ptr<OutgoingArea> area, uint64_t offset, MutableByteSpan memory)
      : area_(std::move(area)), offset_(offset), memory_(memory) {}
  void Free();

  std::shared_ptr<OutgoingArea> area_;  // null: empty
  bool handed_over_ = false;
  uint64_t offset_ = 0;
  MutableByteSpan memory_;
};

class OutgoingArea : public std::enable_shared_from_this<OutgoingArea> {
 public:
  OutgoingArea(std::shared_ptr<const SharedMemory> memory, MutableByteSpan area)
      : memory_(std::move(memory)), area_(area) {}

  // Returns an empty extent if the area has no room or the system no memory.
  Extent Reserve(size_t bytes);
  size_t committed() const { return committed_; }  // upper bound of the bytes that take memory

 private:
  friend class Extent;
  struct Busy {
    uint64_t begin = 0;
    uint64_t end = 0;
    bool handed_over = false;
  };

  void TakeBack();
  bool Commit(uint64_t end);
  void CheckUse(uint64_t end);

  const std::shared_ptr<const SharedMemory> memory_;
  const MutableByteSpan area_;
  std::vector<Busy> busy_;  // in order of position
  size_t committed_ = 0;
  // Since CheckUse last checked: how many extents were taken, and how far they reached.
  int taken_ = 0;
  uint64_t highest_ = 0;
};

class IncomingArea {
 public:
  IncomingArea(std::shared_ptr<const SharedMemory> memory, MutableByteSpan area)
      : memory_(std::move(memory)), area_(area) {}

  // The next bulk part lies there. False: that position is invalid.
  [[nodiscard]] bool Begin(uint64_t offset, uint64_t bytes);
  bool active() const { return done_ != nullptr; }
  // Returns the next available bytes of it, at most `most`; perhaps none yet.
  ByteSpan Take(size_t most);
  bool HasBytes() const;
  // Returns the bytes for use beyond End. Call once.
  BorrowedBytes Borrow();
  // Call when all of it was taken, or it isn't wanted.
  void End();

 private:
  uint64_t Ready() const;

  const std::shared_ptr<const SharedMemory> memory_;
  const MutableByteSpan area_;
  ByteSpan bytes_;
  std::atomic<uint64_t>* ready_ = nullptr;
  std::atomic<uint32_t>* done_ = nullptr;  // null: no bulk part is coming in
  bool borrowed_ = false;
  uint64_t taken_ = 0;
};

}  // namespace muster
