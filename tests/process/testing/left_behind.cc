#include "tests/process/testing/left_behind.h"

#include <gmock/gmock.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tests/process/testing/process.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kSharedMemory[] = "/dev/shm";
constexpr char kVariable[] = "TMPDIR";

bool IsMine(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && status.st_uid == geteuid();
}

// Returns whether `is` is true for an entry. Processes may end meanwhile, after which their folder of descriptors can't
// be read any further; those of other users can't be read at all.
bool AnyOf(const fs::path& folder, absl::FunctionRef<bool(const fs::path&)> is) {
  std::error_code gone;
  for (fs::directory_iterator it(folder, gone); !gone && it != fs::directory_iterator(); it.increment(gone))
    if (is(it->path())) return true;
  return false;
}

// Returns whether the process has the path open or mapped.
bool Holds(const fs::path& process, const std::string& path) {
  const auto is_it = [&path](const fs::path& descriptor) {
    std::error_code closed;
    return fs::read_symlink(descriptor, closed) == path;
  };
  if (AnyOf(process / "fd", is_it)) return true;
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);)
    if (absl::EndsWith(line, " " + path)) return true;
  return false;
}

bool IsHeldByAnother(const std::string& path) {
  return AnyOf("/proc", [&path](const fs::path& process) {
    pid_t pid = 0;
    return absl::SimpleAtoi(process.filename().string(), &pid) && pid != getpid() && Holds(process, path);
  });
}

}  // namespace

LeftBehind::LeftBehind() : before_(EntriesOf(kSharedMemory)) {
  if (const char* value = getenv(kVariable)) tmpdir_ = value;
  setenv(kVariable, temporary_.path().c_str(), 1);
}

LeftBehind::~LeftBehind() {
  EXPECT_THAT(Entries(), testing::IsEmpty());
  tmpdir_ ? setenv(kVariable, tmpdir_->c_str(), 1) : unsetenv(kVariable);
}

std::vector<std::string> LeftBehind::Entries() const {
  std::vector<std::string> left;
  for (const std::string& name : EntriesOf(kSharedMemory)) {
    const std::string path = std::string(kSharedMemory) + "/" + name;
    const bool is_new = !std::binary_search(before_.begin(), before_.end(), name);
    // Another process may have closed and removed it during the search.
    if (is_new && IsMine(path) && !IsHeldByAnother(path) && IsMine(path)) left.push_back(path);
  }
  for (const std::string& name : EntriesOf(temporary_.path())) left.push_back(temporary_ / name);
  return left;
}

}  // namespace muster
