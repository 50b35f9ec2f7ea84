#include "muster/store/arena/arena_memory.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/os/available_memory.h"
#include "muster/base/os/memory_file.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

uint64_t MiB(uint64_t bytes) { return (bytes + (1 << 20) - 1) >> 20; }

absl::Status NoMemory(uint64_t bytes, const std::string& why) {
  return absl::ResourceExhaustedError(absl::StrCat("no memory for the model: ", MiB(bytes),
                                                   " MiB are needed for variables, slots and undo (", why,
                                                   "); use more ps or a smaller model"));
}

std::string WhatIsLeft(const AvailableMemory& available) {
  const std::string left = absl::StrCat(MiB(available.bytes), " MiB");
  if (available.of_limit > 0) return absl::StrCat("its limit of ", MiB(available.of_limit), " MiB leaves ", left);
  if (available.of_a_group) return absl::StrCat("the limit of this process's control group leaves ", left);
  return absl::StrCat("this machine has ", left, " available");
}

}  // namespace

absl::StatusOr<std::unique_ptr<ArenaMemory>> ArenaMemory::Create() {
  const int fd = CreateMemoryFile("muster-arena");
  if (fd < 0) return NoMemory(0, absl::StrCat("memfd_create: ", std::strerror(errno)));
  return std::unique_ptr<ArenaMemory>(new ArenaMemory(fd, /*is_kept=*/false));
}

absl::StatusOr<std::unique_ptr<ArenaMemory>> ArenaMemory::Adopt(int fd) {
  const int own = fcntl(fd, F_DUPFD_CLOEXEC, 3);
  struct stat info {};
  if (own < 0 || fstat(own, &info) != 0 || !S_ISREG(info.st_mode)) {
    if (own >= 0) close(own);
    return absl::InvalidArgumentError(absl::StrCat("descriptor ", fd, " is no memory file that an arena can lie in"));
  }
  auto memory = std::unique_ptr<ArenaMemory>(new ArenaMemory(own, /*is_kept=*/true));
  RETURN_IF_ERROR(memory->Map(static_cast<uint64_t>(info.st_size)));
  return memory;
}

ArenaMemory::~ArenaMemory() {
  Unmap();
  close(fd_);
}

void ArenaMemory::Unmap() {
  if (data_ != nullptr) munmap(data_, size_);
  data_ = nullptr;
  size_ = 0;
}

absl::Status ArenaMemory::Map(uint64_t bytes) {
  if (bytes == 0) return absl::OkStatus();
  void* data = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd_, 0);
  if (data == MAP_FAILED) return NoMemory(bytes, absl::StrCat("mmap: ", std::strerror(errno)));
  // Without this, a core dump would hold the stripes' locks until it is written.
  madvise(data, bytes, MADV_DONTDUMP);
  data_ = static_cast<std::byte*>(data);
  size_ = bytes;
  return absl::OkStatus();
}

absl::Status ArenaMemory::Reset(uint64_t bytes, uint64_t unlikely) {
  Unmap();
  struct stat info {};
  const uint64_t old = fstat(fd_, &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
  if (old > 0) Discard(0, old);
  // Pages are allocated when they are touched, and where there are no free ones the kernel kills then: better to refuse
  // now.
  if (const AvailableMemory available = MemoryToTake(); available.bytes != 0 && bytes - unlikely > available.bytes)
    return NoMemory(bytes - unlikely, WhatIsLeft(available));
  if (bytes > old && ftruncate(fd_, static_cast<off_t>(bytes)) != 0)
    return NoMemory(bytes, absl::StrCat("ftruncate: ", std::strerror(errno)));
  return Map(bytes);
}

void ArenaMemory::MakePrivate(uint64_t offset, uint64_t bytes) {
  void* copy = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (copy == MAP_FAILED) return;  // it stays shared, which does no harm to a process that only reads
  std::memcpy(copy, data_ + offset, bytes);
  mremap(copy, bytes, bytes, MREMAP_MAYMOVE | MREMAP_FIXED, data_ + offset);
}

void ArenaMemory::Discard(uint64_t offset, uint64_t bytes) {
  fallocate(fd_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, static_cast<off_t>(offset), static_cast<off_t>(bytes));
}

}  // namespace muster
