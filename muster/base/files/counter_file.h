// A small file by which one process shows another that it is alive, or that something goes on: the writer counts in it,
// and the reader sees whether the number still changes. It depends on no clock that both would have to share. Blocking
// for as long as a local file takes.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "absl/status/statusor.h"

namespace muster {

// The writer's end. Not thread-safe.
class CounterFile {
 public:
  // Makes the file, of this user alone, if it isn't there; goes on from the number in it.
  static absl::StatusOr<CounterFile> Open(const std::string& path);
  ~CounterFile();
  CounterFile(CounterFile&& other) noexcept;
  CounterFile& operator=(CounterFile&&) = delete;

  // Writes the next number.
  void Count();

 private:
  CounterFile(int fd, uint64_t number) : fd_(fd), number_(number) {}

  int fd_;
  uint64_t number_;
};

// Returns the number in the file; nullopt: there is none, or it can't be read.
std::optional<uint64_t> ReadCounter(const std::string& path);

}  // namespace muster
