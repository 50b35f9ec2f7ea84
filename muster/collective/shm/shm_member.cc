#include "muster/collective/shm/shm_member.h"

#include <fcntl.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <new>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/net/descriptor_passing.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

absl::Status NoMore(const char* what) {
  return absl::ResourceExhaustedError(
      absl::StrCat("no ", what, " for the ranks of this host (", std::strerror(errno), ")"));
}

absl::Status OtherSideGone(int rank) {
  return absl::UnavailableError(absl::StrCat("rank 0 did not pass the group's shared memory to rank ", rank));
}

}  // namespace

absl::StatusOr<std::vector<std::unique_ptr<ShmMember>>> ShmMember::CreateAll(int size) {
  std::vector<std::unique_ptr<ShmMember>> members;
  for (int rank = 0; rank < size; ++rank) members.push_back(std::unique_ptr<ShmMember>(new ShmMember(rank, size)));
  const int memory = memfd_create("muster-collective", MFD_CLOEXEC | MFD_ALLOW_SEALING);
  if (memory < 0) return NoMore("memory");
  members[0]->memory_fd_ = memory;
  // Allocates the pages now and seals the size: no mapping can later lack memory.
  if (fallocate(memory, 0, 0, static_cast<off_t>(members[0]->layout_.total_bytes())) != 0 ||
      fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return NoMore("memory");
  for (int rank = 1; rank < size; ++rank)
    if ((members[rank]->memory_fd_ = fcntl(memory, F_DUPFD_CLOEXEC, 3)) < 0) return NoMore("descriptors");
  for (int rank = 0; rank < size; ++rank) {
    int ends[2];
    if (pipe2(ends, O_CLOEXEC | O_NONBLOCK) != 0) return NoMore("pipes");
    members[rank]->life_[rank] = ends[1];
    bool first = true;
    for (int other = 0; other < size; ++other) {
      if (other == rank) continue;
      members[other]->life_[rank] = std::exchange(first, false) ? ends[0] : fcntl(ends[0], F_DUPFD_CLOEXEC, 3);
      if (members[other]->life_[rank] < 0) return NoMore("descriptors");
    }
    if (first) close(ends[0]);
  }
  for (const auto& member : members) RETURN_IF_ERROR(member->Map());
  for (int rank = 0; rank < size; ++rank) new (&members[0]->lane(rank)) ShmLane();
  return members;
}

absl::Status ShmMember::Map() {
  struct stat file {};
  if (fstat(memory_fd_, &file) != 0 || file.st_size != static_cast<off_t>(layout_.total_bytes()))
    return absl::FailedPreconditionError(absl::StrCat("the shared memory of the group has ", file.st_size,
                                                      " bytes instead of ", layout_.total_bytes(),
                                                      ": use the same build of muster everywhere"));
  void* mapped = mmap(nullptr, layout_.total_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, memory_fd_, 0);
  if (mapped == MAP_FAILED) return NoMore("memory");
  data_ = static_cast<std::byte*>(mapped);
  return absl::OkStatus();
}

absl::Status ShmMember::SendThrough(int socket) const {
  bool sent = SendDescriptor(socket, memory_fd_);
  for (size_t i = 0; i < life_.size() && sent; ++i) sent = SendDescriptor(socket, life_[i]);
  return sent ? absl::OkStatus() : OtherSideGone(rank_);
}

absl::StatusOr<std::unique_ptr<ShmMember>> ShmMember::ReceiveFrom(int socket, int rank, int size) {
  auto member = std::unique_ptr<ShmMember>(new ShmMember(rank, size));
  member->memory_fd_ = ReceiveDescriptor(socket);
  if (member->memory_fd_ < 0) return OtherSideGone(rank);
  for (int& life : member->life_)
    if ((life = ReceiveDescriptor(socket)) < 0) return OtherSideGone(rank);
  RETURN_IF_ERROR(member->Map());
  return member;
}

ShmMember::~ShmMember() {
  if (data_ != nullptr) munmap(data_, layout_.total_bytes());
  if (memory_fd_ >= 0) close(memory_fd_);
  for (const int life : life_)
    if (life >= 0) close(life);
}

std::vector<int> ShmMember::Ended() const {
  // Nobody writes to these pipes, so the only event is their end. poll skips a negative descriptor.
  for (size_t i = 0; i < life_.size(); ++i) watched_[i] = {static_cast<int>(i) == rank_ ? -1 : life_[i], 0, 0};
  std::vector<int> ended;
  if (poll(watched_.data(), watched_.size(), 0) <= 0) return ended;
  for (size_t i = 0; i < watched_.size(); ++i)
    if (watched_[i].revents != 0) ended.push_back(static_cast<int>(i));
  return ended;
}

}  // namespace muster
