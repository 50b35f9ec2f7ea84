#include "muster/launch/registry/files/record_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/crc32c.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/system/random_hex.h"

namespace muster {
namespace {

// "LLLLLLLL CCCCCCCC " before a record, and a line break behind it.
constexpr size_t kHexDigits = 8;
constexpr size_t kHead = 2 * (kHexDigits + 1);

class RecordDescriptor {
 public:
  explicit RecordDescriptor(int fd) : fd_(fd) {}
  ~RecordDescriptor() {
    if (fd_ >= 0) close(fd_);
  }
  RecordDescriptor(const RecordDescriptor&) = delete;
  RecordDescriptor& operator=(const RecordDescriptor&) = delete;
  int fd() const { return fd_; }
  // Returns 0 or an error number: a network file system may say only now that there is no room.
  int Close() { return close(std::exchange(fd_, -1)) == 0 || errno == EINTR ? 0 : errno; }

 private:
  int fd_;
};

absl::Status RecordFileError(int error, const std::string& what, const std::string& path) {
  if (error == ENOSPC || error == EDQUOT || error == EFBIG)
    return absl::ResourceExhaustedError(
        absl::StrCat("no room for ", path, " (", strerror(error), "): it is as it was; make room on its disk"));
  return absl::ErrnoToStatus(error == EROFS ? EACCES : error, absl::StrCat("cannot ", what, " ", path));
}

uint32_t ChecksumOf(std::string_view record) { return Crc32c(AsBytes(record.data(), record.size())); }

bool ParseHexDigits(std::string_view text, uint32_t& number) {
  number = 0;
  for (const char c : text) {
    const int digit = c >= '0' && c <= '9' ? c - '0' : c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
    if (digit < 0) return false;
    number = number << 4 | static_cast<uint32_t>(digit);
  }
  return true;
}

// Returns the first record of `text` and how many bytes its line has; 0: the line isn't whole.
size_t FirstRecord(std::string_view text, std::string_view& record) {
  uint32_t length = 0, checksum = 0;
  if (text.size() < kHead || !ParseHexDigits(text.substr(0, kHexDigits), length) || text[kHexDigits] != ' ' ||
      !ParseHexDigits(text.substr(kHexDigits + 1, kHexDigits), checksum) || text[kHead - 1] != ' ')
    return 0;
  if (text.size() - kHead <= length || text[kHead + length] != '\n') return 0;
  record = text.substr(kHead, length);
  return ChecksumOf(record) == checksum ? kHead + length + 1 : 0;
}

// Writes all of it at `offset`. Returns 0 or an error number.
int WriteAllAt(int fd, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t written =
        Uninterrupted([&] { return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (written < 0) return errno;
    if (written == 0) return ENOSPC;
    bytes.remove_prefix(static_cast<size_t>(written));
    offset += static_cast<uint64_t>(written);
  }
  return 0;
}

}  // namespace

absl::StatusOr<ReadRecords> ReadRecordsFrom(const std::string& path, uint64_t offset) {
  ReadRecords read{.records = {}, .end = offset};
  const RecordDescriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (file.fd() < 0) {
    if (errno == ENOENT || errno == ENOTDIR) return read;
    return RecordFileError(errno, "read", path);
  }
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return RecordFileError(errno, "read", path);
  if (static_cast<uint64_t>(info.st_size) <= offset) return read;
  std::string text(static_cast<size_t>(info.st_size) - offset, '\0');
  size_t got = 0;
  while (got < text.size()) {
    const ssize_t bytes = Uninterrupted(
        [&] { return pread(file.fd(), text.data() + got, text.size() - got, static_cast<off_t>(offset + got)); });
    if (bytes < 0) return RecordFileError(errno, "read", path);
    if (bytes == 0) break;
    got += static_cast<size_t>(bytes);
  }
  std::string_view rest = std::string_view(text).substr(0, got);
  std::string_view record;
  while (const size_t line = FirstRecord(rest, record)) {
    read.records.emplace_back(record);
    read.end += line;
    rest.remove_prefix(line);
  }
  return read;
}

absl::StatusOr<uint64_t> AppendRecord(const std::string& path, uint64_t end, std::string_view record,
                                      Durability durability) {
  RecordDescriptor file(open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (file.fd() < 0) return RecordFileError(errno, "write", path);
  struct stat info;
  if (fstat(file.fd(), &info) != 0) return RecordFileError(errno, "write", path);
  if (static_cast<uint64_t>(info.st_size) < end)
    return absl::DataLossError(absl::StrCat(path, " has lost records: ", info.st_size, " bytes of ", end));
  if (static_cast<uint64_t>(info.st_size) > end && ftruncate(file.fd(), static_cast<off_t>(end)) != 0)
    return RecordFileError(errno, "write", path);
  const std::string line = absl::StrCat(absl::StrFormat("%08x %08x ", record.size(), ChecksumOf(record)),
                                        absl::string_view(record.data(), record.size()), "\n");
  int error = WriteAllAt(file.fd(), line, end);
  if (error == 0 && durability == Durability::kDisk && fdatasync(file.fd()) != 0) error = errno;
  if (error != 0) {
    // Nothing else can be done if this fails: a reader stops before the torn line.
    if (ftruncate(file.fd(), static_cast<off_t>(end)) != 0) error = errno == EIO ? EIO : error;
    return RecordFileError(error, "write", path);
  }
  if (error = file.Close(); error != 0) {
    TakeRecordBack(path, end);
    return RecordFileError(error, "write", path);
  }
  return end + line.size();
}

void TakeRecordBack(const std::string& path, uint64_t end) {
  if (truncate(path.c_str(), static_cast<off_t>(end)) != 0)
    std::fprintf(stderr, "muster: %s can't be cut back: %s\n", path.c_str(), strerror(errno));
}

absl::Status ReplaceFile(const std::string& path, std::string_view text, Durability durability) {
  const std::string beside = absl::StrCat(path, ".tmp", RandomHex(8));
  int error = 0;
  {
    RecordDescriptor file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
    if (file.fd() < 0) return RecordFileError(errno, "write", beside);
    error = WriteAllAt(file.fd(), text, 0);
    if (error == 0 && durability == Durability::kDisk && fsync(file.fd()) != 0) error = errno;
    if (const int closed = file.Close(); error == 0) error = closed;
  }
  if (error == 0 && rename(beside.c_str(), path.c_str()) != 0) error = errno;
  if (error == 0 && durability == Durability::kDisk)
    return PosixFileSystem().SyncDirectory(std::filesystem::path(path).parent_path());
  if (error == 0) return absl::OkStatus();
  unlink(beside.c_str());
  return RecordFileError(error, "write", path);
}

std::string SignatureOf(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0)
    return errno == ENOENT || errno == ENOTDIR ? "" : absl::StrCat("unreadable: ", strerror(errno));
  return absl::StrCat(info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

std::optional<absl::Duration> AgeOfFile(const std::string& path) {
  struct stat written, present;
  const std::string beside = absl::StrCat(path, ".now", RandomHex(8));
  const RecordDescriptor file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (file.fd() < 0) return std::nullopt;
  const bool known = stat(path.c_str(), &written) == 0 && fstat(file.fd(), &present) == 0;
  unlink(beside.c_str());
  if (!known) return std::nullopt;
  return absl::TimeFromTimespec(present.st_mtim) - absl::TimeFromTimespec(written.st_mtim);
}

}  // namespace muster
