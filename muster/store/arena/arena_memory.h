// The memory that an arena lies in: a memfd. Any process that keeps a descriptor of it (a launcher, say) keeps its
// content, even when the process that writes it is killed. Owns its descriptor and its mapping. Not thread-safe, except
// for data().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "absl/status/statusor.h"

namespace muster {

class ArenaMemory {
 public:
  // Creates a memfd of size 0 that nobody else has. ResourceExhausted if the system gives none.
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Create();
  // Adopts the memory behind the descriptor `fd`, which stays the caller's. InvalidArgument if it isn't a memfd or
  // alike.
  static absl::StatusOr<std::unique_ptr<ArenaMemory>> Adopt(int fd);
  ~ArenaMemory();
  ArenaMemory(const ArenaMemory&) = delete;
  ArenaMemory& operator=(const ArenaMemory&) = delete;

  // Whether another process has the descriptor too, and keeps the content: the memory was adopted.
  bool is_kept() const { return is_kept_; }
  int fd() const { return fd_; }
  std::byte* data() const { return data_; }
  uint64_t size() const { return size_; }

  // Drops the content and maps `bytes` of zeros at data(). Pages are allocated when they are touched. The file never
  // shrinks: another process that has it mapped would get a SIGBUS beyond its end.
  // ResourceExhausted says how much was requested and how much is available; `unlikely` of the bytes may never be
  // touched and don't count as requested.
  [[nodiscard]] absl::Status Reset(uint64_t bytes, uint64_t unlikely = 0);
  // Gives the pages of a range back to the system; they then read as zeros. Both are multiples of 4096.
  void Discard(uint64_t offset, uint64_t bytes);
  // Makes those bytes of the mapping private to this process, with their current values: changes on either side aren't
  // seen on the other any more. Both are multiples of 4096.
  void MakePrivate(uint64_t offset, uint64_t bytes);

 private:
  ArenaMemory(int fd, bool is_kept) : fd_(fd), is_kept_(is_kept) {}
  [[nodiscard]] absl::Status Map(uint64_t bytes);
  void Unmap();

  const int fd_;
  const bool is_kept_;
  std::byte* data_ = nullptr;
  uint64_t size_ = 0;
};

}  // namespace muster
