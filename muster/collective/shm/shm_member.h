// One rank's handle on a group on one host: the shared memory, and a pipe for each rank that ends when that rank's
// process does. One rank creates the members of all and sends the others theirs over unix sockets (docs/collectives.md,
// "Shared memory"). Owns its descriptors and its mapping. Nothing of it lies in a file system, and nothing remains when
// the last rank has gone. Not thread-safe.
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
  // Creates all members of a new group. ResourceExhausted: the system provides no memory or no descriptors.
  static absl::StatusOr<std::vector<std::unique_ptr<ShmMember>>> CreateAll(int size);

  // Sends this member to another process, which becomes that rank; destroy this end then. Unavailable: the process has
  // gone.
  [[nodiscard]] absl::Status SendThrough(int socket) const;
  // Waits as long as the socket's SO_RCVTIMEO allows. Unavailable: the other side has gone, or sends something else.
  static absl::StatusOr<std::unique_ptr<ShmMember>> ReceiveFrom(int socket, int rank, int size);

  ~ShmMember();  // the others notice, as if this process had died
  ShmMember(const ShmMember&) = delete;
  ShmMember& operator=(const ShmMember&) = delete;

  int rank() const { return rank_; }
  const ShmLayout& layout() const { return layout_; }
  std::byte* data() const { return data_; }
  ShmLane& lane(int rank) const { return *reinterpret_cast<ShmLane*>(data_ + layout_.lane_offset(rank)); }
  std::byte* slot(int rank, uint64_t chunk) const { return data_ + layout_.slot_offset(rank, chunk); }

  // The ranks whose processes have ended (or destroyed their members). Makes one system call, which doesn't block.
  // Allocates only if there are any, because waiting ranks call this again and again.
  std::vector<int> Ended() const;

 private:
  ShmMember(int rank, int size) : rank_(rank), layout_(size), life_(size, -1), watched_(size) {}
  [[nodiscard]] absl::Status Map();

  const int rank_;
  const ShmLayout layout_;
  int memory_fd_ = -1;
  std::byte* data_ = nullptr;
  std::vector<int> life_;                // by rank: the read end of that rank's pipe; this rank's own write end
  mutable std::vector<pollfd> watched_;  // used by Ended, by rank
};

}  // namespace muster
