#include "muster/launch/agent/rendezvous.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>

#include "absl/strings/ascii.h"
#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/bytes.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/system/random_hex.h"
#include "muster/transport/hmac.h"
#include "muster/transport/io/socket.h"

namespace muster {
namespace {

constexpr char kFirstLine[] = "muster rendezvous 1";
constexpr char kAddressWord[] = "address ";
constexpr char kSecretWord[] = "secret ";
constexpr char kAgentGreeting[] = "muster agent of ";
constexpr size_t kMostRendezvousBytes = 64 << 10;
constexpr size_t kMostHostNameBytes = 256;
constexpr size_t kProofDigits = 64;

absl::Status NoRendezvous(const std::string& path, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat(path, " tells of no supervisor: ", why));
}

std::string ProofOf(const std::string& host, const std::string& key) {
  return absl::BytesToHexString(HmacSha256(key, absl::StrCat("muster agent greeting 1", std::string(1, '\0'), host)));
}

// Returns "" unless all are hexadecimal digits.
std::string BytesOf(const std::string& digits) {
  return std::all_of(digits.begin(), digits.end(), absl::ascii_isxdigit) ? absl::HexStringToBytes(digits) : "";
}

absl::StatusOr<std::string> ReadOwnFile(const std::string& path) {
  const Socket file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK));
  struct stat info {};
  if (!file.valid() || fstat(file.fd(), &info) != 0)
    return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  if (!S_ISREG(info.st_mode) || (info.st_mode & 077) != 0 || (info.st_uid != geteuid() && info.st_uid != 0))
    return absl::PermissionDeniedError(
        absl::StrCat(path, " must be a file of this user that nobody else can read (mode 0600)"));
  std::string text(kMostRendezvousBytes, '\0');
  const ssize_t got = Uninterrupted([&] { return pread(file.fd(), text.data(), text.size(), 0); });
  if (got < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot read ", path));
  text.resize(static_cast<size_t>(got));
  return text;
}

}  // namespace

Rendezvous NewRendezvous(std::vector<std::string> addresses) {
  return {.addresses = std::move(addresses), .secret = absl::HexStringToBytes(RandomHex(kRendezvousSecretBytes))};
}

std::string RendezvousText(const Rendezvous& rendezvous) {
  std::string text = absl::StrCat(kFirstLine, "\n");
  for (const std::string& address : rendezvous.addresses) absl::StrAppend(&text, kAddressWord, address, "\n");
  absl::StrAppend(&text, kSecretWord, absl::BytesToHexString(rendezvous.secret), "\n");
  return text;
}

absl::Status WriteRendezvous(const std::string& path, const Rendezvous& rendezvous) {
  const std::string text = RendezvousText(rendezvous);
  const std::string beside = absl::StrCat(path, ".tmp", RandomHex(8));
  const auto failed = [&beside](int error) {
    unlink(beside.c_str());
    return absl::ErrnoToStatus(error, absl::StrCat("cannot write ", beside));
  };
  const Socket file(open(beside.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600));
  if (!file.valid()) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", beside));
  // A folder's default ACL may give rights to others, whatever the mode asked for. A full disk is noticed by what is
  // written, at the latest by fsync.
  if (fchmod(file.fd(), 0600) != 0) return failed(errno);
  const ssize_t put = Uninterrupted([&] { return write(file.fd(), text.data(), text.size()); });
  if (put != static_cast<ssize_t>(text.size())) return failed(put < 0 ? errno : ENOSPC);
  if (fsync(file.fd()) != 0 || rename(beside.c_str(), path.c_str()) != 0) return failed(errno);
  return absl::OkStatus();
}

absl::StatusOr<Rendezvous> ReadRendezvous(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadOwnFile(path));
  const std::vector<std::string> lines = absl::StrSplit(text, '\n');
  if (lines[0] != kFirstLine) return NoRendezvous(path, absl::StrCat("its first line isn't '", kFirstLine, "'"));
  Rendezvous rendezvous;
  for (const std::string& line : lines) {
    if (absl::StartsWith(line, kAddressWord)) rendezvous.addresses.push_back(line.substr(sizeof kAddressWord - 1));
    if (absl::StartsWith(line, kSecretWord)) rendezvous.secret = BytesOf(line.substr(sizeof kSecretWord - 1));
  }
  if (rendezvous.addresses.empty()) return NoRendezvous(path, "it has no address");
  if (rendezvous.secret.size() != kRendezvousSecretBytes) return NoRendezvous(path, "it has no secret of 64 digits");
  return rendezvous;
}

std::string KeyOfHost(const std::string& secret, const std::string& host) {
  return HmacSha256(secret, absl::StrCat("muster agent host 1", std::string(1, '\0'), host));
}

std::string GreetingOf(const std::string& host, const std::string& key) {
  return absl::StrCat(kAgentGreeting, host, " ", ProofOf(host, key), "\n");
}

bool IsProven(const Greeting& greeting, const std::string& key) {
  return EqualInConstantTime(greeting.proof, ProofOf(greeting.host, key));
}

absl::StatusOr<Greeting> ParseGreeting(const std::string& received) {
  const std::string expected = kAgentGreeting;
  const size_t known = std::min(received.size(), expected.size());
  if (received.compare(0, known, expected, 0, known) != 0) return absl::InvalidArgumentError("it isn't an agent");
  const size_t end = received.find('\n');
  if (end == std::string::npos) {
    if (received.size() > expected.size() + kMostHostNameBytes + 1 + kProofDigits)
      return absl::InvalidArgumentError("a host's name is too long");
    return Greeting{};
  }
  const std::string words = received.substr(expected.size(), end - expected.size());
  const size_t space = words.find(' ');
  if (space == std::string::npos || words.size() - space - 1 != kProofDigits)
    return absl::InvalidArgumentError("it proves nothing");
  if (space > kMostHostNameBytes) return absl::InvalidArgumentError("a host's name is too long");
  Greeting greeting{.host = words.substr(0, space), .proof = words.substr(space + 1), .bytes = end + 1};
  return greeting;
}

}  // namespace muster
