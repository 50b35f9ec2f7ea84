#include "muster/base/files/counter_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/write_error.h"

namespace muster {
namespace {

std::optional<uint64_t> NumberIn(int fd) {
  uint64_t number = 0;
  if (pread(fd, &number, sizeof number, 0) != static_cast<ssize_t>(sizeof number)) return std::nullopt;
  return number;
}

}  // namespace

absl::StatusOr<CounterFile> CounterFile::Open(const std::string& path) {
  const int fd = open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, S_IRUSR | S_IWUSR);
  if (fd < 0) return WriteError(errno, absl::StrCat(path, " can't be made"));
  const uint64_t number = NumberIn(fd).value_or(0);
  CounterFile file(fd, number);
  if (pwrite(fd, &number, sizeof number, 0) != static_cast<ssize_t>(sizeof number))
    return WriteError(errno, absl::StrCat(path, " can't be written"));
  return file;
}

CounterFile::~CounterFile() {
  if (fd_ >= 0) close(fd_);
}

CounterFile::CounterFile(CounterFile&& other) noexcept : fd_(std::exchange(other.fd_, -1)), number_(other.number_) {}

void CounterFile::Count() {
  ++number_;
  // A full disk looks like silence, and the reader does what silence asks for.
  [[maybe_unused]] const ssize_t written = pwrite(fd_, &number_, sizeof number_, 0);
}

std::optional<uint64_t> ReadCounter(const std::string& path) {
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
  if (fd < 0) return std::nullopt;
  const std::optional<uint64_t> number = NumberIn(fd);
  close(fd);
  return number;
}

}  // namespace muster
