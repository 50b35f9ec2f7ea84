#include "muster/transport/tcp/port_secret.h"

#include <dirent.h>
#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <string_view>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "muster/base/absl_view.h"
#include "muster/base/check.h"
#include "muster/base/os/private_folder.h"
#include "muster/base/status_macros.h"
#include "muster/transport/handshake.h"
#include "openssl/rand.h"

namespace muster {
namespace {

constexpr size_t kSecretBytes = 32;                 // of random numbers
constexpr size_t kSecretDigits = 2 * kSecretBytes;  // in the file

constexpr char kWayOut[] =
    "; or set MUSTER_JOB_TOKEN to the same secret in all processes of the job (openssl rand -hex 32 makes one)";

std::string RandomDigits() {
  std::array<unsigned char, kSecretBytes> bytes;
  MUSTER_CHECK(RAND_bytes(bytes.data(), static_cast<int>(bytes.size())) == 1);
  return absl::BytesToHexString({reinterpret_cast<const char*>(bytes.data()), bytes.size()});
}

// Files with this name are locked as long as their writer lives; older ones, "net-…", never were.
constexpr std::string_view kLocked = "port-";

// A port belongs to a network namespace, and those of one host may share the folder.
std::string FileNameOf(const Endpoint& endpoint) {
  struct stat network {};
  const bool known = stat("/proc/self/ns/net", &network) == 0;
  return absl::StrCat(AbslView(kLocked), known ? network.st_ino : 0, "-", endpoint.ToString());
}

absl::Status NotOwn(const std::string& path, std::string_view why) {
  return absl::FailedPreconditionError(
      absl::StrCat("the secret of a port must lie where only this user can write, and ", path, " ", std::string(why),
                   ": remove it", kWayOut));
}

absl::Status Failed(std::string_view what, const std::string& path, int error) {
  const absl::Status status = absl::ErrnoToStatus(error, absl::StrCat("cannot ", std::string(what), " ", path));
  return absl::Status(status.code(), absl::StrCat(status.message(), kWayOut));
}

// Says what to do about a folder that can't be used. NotFound: it isn't there.
absl::Status WithWayOut(const absl::Status& status) {
  if (absl::IsNotFound(status)) return status;
  if (!absl::IsFailedPrecondition(status)) return absl::Status(status.code(), absl::StrCat(status.message(), kWayOut));
  return absl::FailedPreconditionError(absl::StrCat(
      "the secret of a port must lie where only this user can write, and ", status.message(), ": remove it", kWayOut));
}

absl::StatusOr<PrivateFolder> OpenPorts(const PrivateFolder& place, const std::string& name, bool make) {
  const absl::StatusOr<PrivateFolder> own = place.OpenIn(name, make);
  if (!own.ok()) return WithWayOut(own.status());
  absl::StatusOr<PrivateFolder> ports = own->OpenIn("ports", make);
  if (!ports.ok()) return WithWayOut(ports.status());
  return ports;
}

absl::StatusOr<PrivateFolder> OpenPortsInShared(const PortSecretPlaces& places, bool make) {
  const absl::StatusOr<PrivateFolder> shared = PrivateFolder::OpenShared(places.shared);
  if (!shared.ok()) return WithWayOut(shared.status());
  return OpenPorts(*shared, absl::StrCat("muster-", geteuid()), make);
}

// NotFound: no such file.
absl::StatusOr<std::string> ReadIn(const PrivateFolder& folder, const std::string& name) {
  const std::string path = absl::StrCat(folder.path(), "/", name);
  const Socket file(openat(folder.fd(), name.c_str(), O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
  if (!file.valid() && errno == ENOENT) return absl::NotFoundError(path);
  struct stat info {};
  if (!file.valid() || fstat(file.fd(), &info) != 0 || !S_ISREG(info.st_mode) || !IsOfThisUserAlone(info))
    return NotOwn(path, "is not a file of this user alone");
  std::string digits(kSecretDigits, '\0');
  if (read(file.fd(), digits.data(), digits.size()) != static_cast<ssize_t>(digits.size()))
    return NotOwn(path, "is not whole");
  return digits;
}

// Returns the open file, whose lock shows that its writer lives.
absl::StatusOr<Socket> WriteIn(const PrivateFolder& folder, const std::string& name, const std::string& digits) {
  const std::string path = absl::StrCat(folder.path(), "/", name);
  const std::string temporary = absl::StrCat(".", RandomDigits());
  Socket file(openat(folder.fd(), temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600));
  if (!file.valid()) return Failed("write", path, errno);
  // Before the file gets its name: RemoveLeft may take one with a name but without a lock.
  const bool written = flock(file.fd(), LOCK_EX | LOCK_NB) == 0 &&
                       write(file.fd(), digits.data(), digits.size()) == static_cast<ssize_t>(digits.size()) &&
                       renameat(folder.fd(), temporary.c_str(), folder.fd(), name.c_str()) == 0;
  if (written) return file;
  const int error = errno;
  unlinkat(folder.fd(), temporary.c_str(), 0);
  return Failed("write", path, error);
}

// Removes a dead process's file. Should a new one have taken its name since, that one goes back to it.
void RemoveDead(const PrivateFolder& folder, const char* name, const struct stat& dead) {
  const std::string aside = absl::StrCat(".", RandomDigits());
  if (renameat(folder.fd(), name, folder.fd(), aside.c_str()) != 0) return;
  struct stat moved {};
  const bool is_dead =
      fstatat(folder.fd(), aside.c_str(), &moved, AT_SYMLINK_NOFOLLOW) == 0 && moved.st_ino == dead.st_ino;
  if (!is_dead) linkat(folder.fd(), aside.c_str(), folder.fd(), name, 0);
  unlinkat(folder.fd(), aside.c_str(), 0);
}

// Removes the files of processes that were killed. A living one holds the lock of its file, in whatever container it
// is.
void RemoveLeft(const PrivateFolder& folder) {
  const std::unique_ptr<DIR, int (*)(DIR*)> entries(
      fdopendir(openat(folder.fd(), ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC)), closedir);
  if (entries == nullptr) return;
  while (const dirent* entry = readdir(entries.get())) {
    if (!std::string_view(entry->d_name).starts_with(kLocked)) continue;
    const Socket file(openat(folder.fd(), entry->d_name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC));
    struct stat opened {};
    if (!file.valid() || fstat(file.fd(), &opened) != 0 || !S_ISREG(opened.st_mode) || !IsOfThisUserAlone(opened))
      continue;
    if (flock(file.fd(), LOCK_EX | LOCK_NB) == 0) RemoveDead(folder, entry->d_name, opened);
  }
}

absl::StatusOr<PrivateFolder> FolderToWrite(const PortSecretPlaces& places) {
  if (const auto place = PrivateFolder::Open(places.own); place.ok()) return OpenPorts(*place, "muster", /*make=*/true);
  return OpenPortsInShared(places, /*make=*/true);
}

// The folders that are there, in the order in which a file is looked for.
absl::StatusOr<std::vector<PrivateFolder>> FoldersToRead(const PortSecretPlaces& places) {
  std::vector<absl::StatusOr<PrivateFolder>> opened;
  if (const auto place = PrivateFolder::Open(places.own); place.ok())
    opened.push_back(OpenPorts(*place, "muster", /*make=*/false));
  opened.push_back(OpenPortsInShared(places, /*make=*/false));
  std::vector<PrivateFolder> folders;
  for (absl::StatusOr<PrivateFolder>& folder : opened) {
    if (folder.ok()) {
      folders.push_back(*std::move(folder));
    } else if (folders.empty() && !absl::IsNotFound(folder.status())) {
      return folder.status();  // a bad folder in the shared place says nothing against a good one before it
    }
  }
  return folders;
}

}  // namespace

PortSecretPlaces PortSecretPlaces::OfThisUser() { return {absl::StrCat("/run/user/", geteuid()), "/tmp"}; }

PortSecret::PortSecret(std::string name, PortSecretPlaces places)
    : name_(std::move(name)), places_(std::move(places)), secret_(RandomDigits()) {}

absl::StatusOr<std::unique_ptr<PortSecret>> PortSecret::Publish(const Endpoint& endpoint,
                                                                const PortSecretPlaces& places) {
  auto secret = std::unique_ptr<PortSecret>(new PortSecret(FileNameOf(endpoint), places));
  ASSIGN_OR_RETURN(const PrivateFolder folder, FolderToWrite(places));
  RemoveLeft(folder);
  ASSIGN_OR_RETURN(secret->file_, WriteIn(folder, secret->name_, secret->secret_));
  return secret;
}

absl::Status PortSecret::Keep() {
  ASSIGN_OR_RETURN(const PrivateFolder folder, FolderToWrite(places_));
  const auto found = ReadIn(folder, name_);
  if (found.ok() && *found == secret_) return absl::OkStatus();
  ASSIGN_OR_RETURN(file_, WriteIn(folder, name_, secret_));
  return absl::OkStatus();
}

PortSecret::~PortSecret() {
  const auto folders = FoldersToRead(places_);
  if (!folders.ok()) return;
  for (const PrivateFolder& folder : *folders) {
    const auto found = ReadIn(folder, name_);
    if (found.ok() && *found == secret_) unlinkat(folder.fd(), name_.c_str(), 0);
  }
}

absl::StatusOr<JobToken> FindPortSecret(const Endpoint& endpoint, const PortSecretPlaces& places) {
  if (!endpoint.is_loopback()) return absl::NotFoundError("it is not a loopback address");
  ASSIGN_OR_RETURN(const std::vector<PrivateFolder> folders, FoldersToRead(places));
  const std::string name = FileNameOf(endpoint);
  for (const PrivateFolder& folder : folders) {
    absl::StatusOr<std::string> found = ReadIn(folder, name);
    if (found.ok()) return JobToken{*std::move(found)};
    if (!absl::IsNotFound(found.status())) return found.status();
  }
  return absl::NotFoundError(absl::StrCat("no secret for ", endpoint.ToString()));
}

}  // namespace muster
