// The memory that an arena lies in: a memfd. Whoever keeps a descriptor of it (a launcher, say) keeps what it holds,
// also when the process that writes it is killed. Owns its descriptor and its mapping. Not thread-safe, but for data().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace muster {

class ArenaMemory {
 public:
  // Of no bytes, kept by nobody else. ResourceExhausted if the system gives none.
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Create();
  // What the descriptor `fd` stands for, which stays the caller's. InvalidArgument if it isn't a memfd or alike.
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Adopt(int fd);
  ~ArenaMemory();
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  int fd() const { return fd_; }
  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

  // Drops what it held and takes `bytes` of zeros, mapped at data(). Pages are given when they are touched. The file
  // never gets shorter: for another process that has it mapped, its end would be a SIGBUS.
  // ResourceExhausted says how much was asked for and how much there is; `unlikely` of the bytes may never be touched
  // and are promised to nobody.
  [[nodiscard]] absl::Status Reset(uint64_t bytes, uint64_t unlikely = 0);
  // Gives the pages of a range back, which then reads as zeros. Both are multiples of 4096.
  void Discard(uint64_t offset, uint64_t bytes);
  // From now on those bytes of the mapping, as they are, are this process's own: nobody else sees what changes there,
  // nor the other way round. Both are multiples of 4096.
  void MakePrivate(uint64_t offset, uint64_t bytes);

 private:
  explicit ArenaMemory(int fd) : fd_(fd) {}
  [[nodiscard]] absl::Status Map(uint64_t bytes);
  void Unmap();

  const int fd_;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace muster
