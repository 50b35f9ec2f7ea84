// What one rank of a group on one host holds of it: the shared memory, and a pipe for each rank that ends when that
// rank's process does. Made for all ranks by one of them, which sends the others theirs over unix sockets
// (docs/collectives.md, "Shared memory"). Owns its descriptors and its mapping. Nothing of it lies in a file system,
// and nothing remains when the last rank has gone. Not thread-safe.
#pragma once

#include <poll.h>

#include <cstddef>
#include <memory>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/collective/shm/shm_layout.h"

namespace muster {

class ShmMember {
 public:
  // Of a new group, all of its members. ResourceExhausted: the system gives no memory or no descriptors.
  static absl::StatusOr<std::vector<std::unique_ptr<ShmMember>>> CreateAll(int size);

  // To another process, which becomes that rank. Unavailable: it has gone. This end is to be destroyed then.
  [[nodiscard]] absl::Status SendThrough(int socket) const;
  // Waits for as long as the socket's SO_RCVTIMEO says. Unavailable: the other side has gone, or sends something else.
  static absl::StatusOr<std::unique_ptr<ShmMember>> ReceiveFrom(int socket, int rank, int size);

  ~ShmMember();  // the others see it, as they would see this process's death
  ShmMember(const ShmMember&) = delete;
  ShmMember& operator=(const ShmMember&) = delete;

  int rank() const { return rank_; }
  const ShmLayout& layout() const { return layout_; }
  std::byte* data() const { return data_; }
  ShmLane& lane(int rank) const { return *reinterpret_cast<ShmLane*>(data_ + layout_.lane_offset(rank)); }
  std::byte* slot(int rank, uint64_t chunk) const { return data_ + layout_.slot_offset(rank, chunk); }

  // The ranks whose processes have ended (or let go of their members). One system call, which doesn't block; allocates
  // only if there are any, as who waits asks again and again.
  std::vector<int> Ended() const;

 private:
  ShmMember(int rank, int size) : rank_(rank), layout_(size), life_(size, -1), watched_(size) {}
  [[nodiscard]] absl::Status Map();

  const int rank_;
  const ShmLayout layout_;
  int memory_fd_ = -1;
  std::byte* data_ = nullptr;
  std::vector<int> life_;  // by rank: the end to read from of that rank's pipe; of its own the end to write to
  mutable std::vector<pollfd> watched_;  // of Ended, by rank
};

}  // namespace muster
