// The memory between the two ends of one connection: a memfd that the server creates and both map
// (docs/shared_memory.md, section 2). Defines only where everything lies; its users define the contents, and the other
// side may write anything anywhere. Internal to the transport. Thread-safe: constant after construction.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/transport/handshake.h"
#include "muster/transport/io/shared_memory_options.h"
#include "muster/transport/io/socket.h"

namespace muster {

// The sizes of shared memory and of its parts are multiples of this, in bytes.
constexpr uint64_t kShmPage = 4096;

class SharedMemory {
 public:
  enum class Side { kClient, kServer };

  // The bytes of one direction.
  struct Ring {
    std::atomic<uint64_t>* written = nullptr;
    std::atomic<uint64_t>* read = nullptr;
    MutableByteSpan bytes;
  };

  struct Made {
    std::shared_ptr<SharedMemory> memory;
    Socket fd;  // for the other side
  };
  // Unavailable: the system provides no memory, descriptor or address space.
  static absl::StatusOr<Made> Make(const HandshakeNonce& nonce, const SharedMemoryOptions& options);
  // Maps the memory that a server has passed. FailedPrecondition: it isn't such memory, or doesn't hold the nonce.
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Open(int fd, const HandshakeNonce& nonce);
  ~SharedMemory();
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;

  std::atomic<uint32_t>& sleep(Side side) const;
  Ring ring_to(Side side) const;
  MutableByteSpan area_to(Side side) const;

 private:
  struct Header;
  struct Sizes {
    uint64_t ring_bytes = 0;
    uint64_t area_bytes = 0;
    uint64_t total() const;
  };

  SharedMemory(std::byte* base, Sizes sizes) : base_(base), sizes_(sizes) {}
  static absl::StatusOr<std::shared_ptr<SharedMemory>> Map(int fd, Sizes sizes);
  Header& header() const;

  std::byte* const base_;
  const Sizes sizes_;
};

}  // namespace muster
