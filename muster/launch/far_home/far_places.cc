#include "muster/launch/far_home/far_places.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_message.h"

namespace muster {
namespace {

constexpr uint64_t kMiB = uint64_t{1} << 20;
constexpr uint64_t kMostLogFile = 20 * kMiB;
constexpr uint64_t kMostRecords = 64 * kMiB;
constexpr uint64_t kMostSmall = 256 << 10;
constexpr uint64_t kMostState = 768 << 10;
constexpr size_t kMostPath = 1024;
constexpr size_t kMostTaskName = 100;
constexpr size_t kLogDigits = 6;
constexpr size_t kRequestDigits = 16;
constexpr uint64_t kTailBytes = 4 << 10;
constexpr char kLogEnd[] = ".log";
constexpr char kDoneEnd[] = ".done";

bool IsDigits(std::string_view text, bool hexadecimal) {
  return std::all_of(text.begin(), text.end(), [hexadecimal](char c) {
    return absl::ascii_isdigit(static_cast<unsigned char>(c)) || (hexadecimal && c >= 'a' && c <= 'f');
  });
}

bool IsLogFile(std::string_view name) {
  return name.size() >= kLogDigits + 4 && name.size() <= 2 * kLogDigits + 4 &&
         absl::EndsWith(AbslView(name), kLogEnd) && IsDigits(name.substr(0, name.size() - 4), false);
}

std::optional<FarPlace> PlaceInFolder(std::string_view folder, std::string_view name) {
  if (folder == "requests") {
    const bool done = name.size() == kRequestDigits + 5 && absl::EndsWith(AbslView(name), kDoneEnd) &&
                      IsDigits(name.substr(0, kRequestDigits), true);
    return done ? std::optional<FarPlace>({PlaceKind::kWhole, kMostSmall, 5}) : std::nullopt;
  }
  if (!absl::StartsWith(AbslView(folder), "logs/") || !IsTaskFolder(folder.substr(5))) return std::nullopt;
  if (name == "live") return FarPlace{PlaceKind::kWhole, kMostSmall, 1};
  return IsLogFile(name) ? std::optional<FarPlace>({PlaceKind::kAppended, kMostLogFile, 0}) : std::nullopt;
}

class FarDescriptor {
 public:
  explicit FarDescriptor(int fd) : fd_(fd) {}
  ~FarDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  FarDescriptor(FarDescriptor&& other) noexcept : fd_(std::exchange(other.fd_, -1)) {}
  FarDescriptor& operator=(FarDescriptor&& other) noexcept {
    std::swap(fd_, other.fd_);
    return *this;
  }
  int get() const { return fd_; }
  int Release() { return std::exchange(fd_, -1); }

 private:
  int fd_;
};

absl::Status CannotOpen(int error, const std::string& folder, const std::string& path) {
  const std::string whole = JoinPath(folder, path);
  if (error == ELOOP || error == ENOTDIR || error == ENXIO || error == EISDIR)
    return absl::FailedPreconditionError(absl::StrCat(whole, ": a link, or no plain file, is there"));
  if (error == ENOENT) return absl::NotFoundError(absl::StrCat(whole, ": there is no such file"));
  return absl::ErrnoToStatus(error, absl::StrCat("cannot open ", whole));
}

}  // namespace

std::string FarFile(const Home& home, const ExperimentId& id, const char* name) {
  return JoinPath(home.folder(id), name);
}

bool IsTaskFolder(std::string_view name) {
  if (name.empty() || name.size() > kMostTaskName || name.front() == '.') return false;
  return std::all_of(name.begin(), name.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '.' || c == '_' || c == '-';
  });
}

bool IsPathBelow(std::string_view path) {
  if (path.empty() || path.size() > kMostPath || path.find('\0') != std::string_view::npos) return false;
  const std::vector<std::string> parts = absl::StrSplit(AbslView(path), '/');
  return std::none_of(parts.begin(), parts.end(), [](const std::string& part) {
    return part.empty() || part == "." || part == ".." || part.size() > 255;
  });
}

std::optional<FarPlace> FarPlaceOf(std::string_view name) {
  if (name == "records") return FarPlace{PlaceKind::kRecords, kMostRecords, 3};
  if (name == "state.json") return FarPlace{PlaceKind::kWhole, kMostState, 6};
  if (name == "supervisor.log" || name == "job.out") return FarPlace{PlaceKind::kAppended, kMiB, 2};
  for (const char* whole : {"refused", "job_waits", "usage.json"})
    if (name == whole) return FarPlace{PlaceKind::kWhole, kMostSmall, 4};
  const size_t slash = name.rfind('/');
  if (slash == std::string_view::npos) return std::nullopt;
  return PlaceInFolder(name.substr(0, slash), name.substr(slash + 1));
}

absl::StatusOr<int> OpenBelow(const std::string& folder, const std::string& path, int flags) {
  constexpr int kFolder = O_RDONLY | O_DIRECTORY | O_CLOEXEC;
  if (!IsPathBelow(path)) return absl::InvalidArgumentError(absl::StrCat("'", path, "': no path below a folder"));
  FarDescriptor at(open(folder.c_str(), kFolder));
  if (at.get() < 0) return CannotOpen(errno, folder, path);
  std::vector<std::string> parts = absl::StrSplit(path, '/');
  const std::string name = parts.back();
  parts.pop_back();
  for (const std::string& part : parts) {
    if ((flags & O_CREAT) != 0 && mkdirat(at.get(), part.c_str(), 0700) != 0 && errno != EEXIST)
      return CannotOpen(errno, folder, path);
    FarDescriptor next(openat(at.get(), part.c_str(), kFolder | O_NOFOLLOW));
    if (next.get() < 0) return CannotOpen(errno, folder, path);
    at = std::move(next);
  }
  // O_NONBLOCK: a pipe there is no file to wait for.
  FarDescriptor file(openat(at.get(), name.c_str(), flags | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, 0600));
  struct stat info;
  if (file.get() < 0 || fstat(file.get(), &info) != 0) return CannotOpen(errno, folder, path);
  if (!S_ISREG(info.st_mode)) return CannotOpen(ENXIO, folder, path);
  return file.Release();
}

absl::StatusOr<std::string> ReadBelow(const std::string& folder, const std::string& path, uint64_t offset,
                                      size_t most) {
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder, path, O_RDONLY));
  const FarDescriptor file(fd);
  std::string bytes(most, '\0');
  size_t got = 0;
  while (got < most) {
    const ssize_t more =
        Uninterrupted([&] { return pread(fd, bytes.data() + got, most - got, static_cast<off_t>(offset + got)); });
    if (more < 0) return CannotOpen(errno, folder, path);
    if (more == 0) break;
    got += static_cast<size_t>(more);
  }
  bytes.resize(got);
  return bytes;
}

absl::StatusOr<uint64_t> SizeBelow(const std::string& folder, const std::string& path) {
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder, path, O_RDONLY));
  const FarDescriptor file(fd);
  struct stat info;
  if (fstat(fd, &info) != 0) return CannotOpen(errno, folder, path);
  return static_cast<uint64_t>(info.st_size);
}

absl::StatusOr<std::string> TailBelow(const std::string& folder, const std::string& path, uint64_t offset) {
  const uint64_t bytes = std::min(offset, kTailBytes);
  if (bytes == 0) return HexSha256("");
  ASSIGN_OR_RETURN(const std::string tail, ReadBelow(folder, path, offset - bytes, bytes));
  if (tail.size() != bytes) return absl::DataLossError(absl::StrCat(JoinPath(folder, path), " has become shorter"));
  return HexSha256(tail);
}

}  // namespace muster
