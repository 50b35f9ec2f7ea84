#include "muster/launch/registry/files/exclusive_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/time/clock.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/system/random_hex.h"

namespace muster {
namespace {

constexpr absl::Duration kPause = absl::Milliseconds(20);

// Whether the file has been there for so long that its holder must have died.
bool IsStale(const std::string& path) { return AgeOfFile(path).value_or(absl::ZeroDuration()) > ExclusiveFile::kStale; }

// Returns whether it took an old file away. Somebody else may do so and make a new one just now: what turns out to be
// new is put back.
bool TakeAwayIfStale(const std::string& path) {
  const std::string aside = absl::StrCat(path, ".old", RandomHex(8));
  if (!IsStale(path) || rename(path.c_str(), aside.c_str()) != 0) return false;
  const bool stale = IsStale(aside);
  if (!stale) (void)!link(aside.c_str(), path.c_str());
  unlink(aside.c_str());
  return stale;
}

}  // namespace

absl::StatusOr<ExclusiveFile> ExclusiveFile::Take(const std::string& path, absl::Duration patience) {
  const absl::Time begin = absl::Now();
  for (;;) {
    const int fd = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd >= 0) return ExclusiveFile(path, fd);
    if (errno == ENOSPC || errno == EDQUOT)
      return absl::ResourceExhaustedError(absl::StrCat("no room for ", path, ": make room on its disk"));
    if (errno != EEXIST)
      return absl::ErrnoToStatus(errno == EROFS ? EACCES : errno, absl::StrCat("cannot make ", path));
    if (TakeAwayIfStale(path)) continue;
    if (absl::Now() - begin >= patience) {
      return absl::UnavailableError(absl::StrCat("another command is at work there (it holds ", path,
                                                 "); try again, in half a minute at the latest"));
    }
    absl::SleepFor(kPause);
  }
}

ExclusiveFile::ExclusiveFile(ExclusiveFile&& other) noexcept
    : path_(std::move(other.path_)), fd_(std::exchange(other.fd_, -1)) {}

ExclusiveFile::~ExclusiveFile() {
  if (fd_ < 0) return;
  struct stat own, present;
  if (fstat(fd_, &own) == 0 && stat(path_.c_str(), &present) == 0 && own.st_ino == present.st_ino)
    unlink(path_.c_str());
  close(fd_);
}

}  // namespace muster
