#include "apps/muster/commands/job/receive_place.h"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "absl/strings/escaping.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/terminal/own_environment.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/project/sha256.h"

namespace muster {
namespace {

constexpr size_t kMarkDigits = 12;

// Returns digits that two hosts don't share, even if they have one name and one home: those of this boot, and of the
// /tmp in which the agents have their folders.
std::string MarkOfThisHost() {
  Sha256 sha;
  sha.AddWithLength(PosixFileSystem().ReadFile("/proc/sys/kernel/random/boot_id").value_or(""));
  struct stat shared {};
  if (stat("/tmp", &shared) == 0) sha.AddWithLength(absl::StrCat(shared.st_dev, ":", shared.st_ino));
  return absl::BytesToHexString(sha.Finish()).substr(0, kMarkDigits);
}

}  // namespace

absl::StatusOr<ReceivePlace> ReceivePlaceHere() {
  char host_name[256] = "";
  if (gethostname(host_name, sizeof host_name - 1) != 0) return absl::ErrnoToStatus(errno, "no name of this host");
  return PlaceToReceive(OwnVariable("HOME"), OwnVariable("XDG_CACHE_HOME"),
                        absl::StrCat(host_name, "-", MarkOfThisHost()));
}

}  // namespace muster
