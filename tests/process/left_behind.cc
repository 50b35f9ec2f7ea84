#include "tests/process/left_behind.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <system_error>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "tests/process/process.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kSharedMemory[] = "/dev/shm";
constexpr char kVariable[] = "TMPDIR";

bool IsMine(const std::string& path) {
  struct stat status {};
  return lstat(path.c_str(), &status) == 0 && status.st_uid == geteuid();
}

// As a descriptor or as memory.
bool Holds(const fs::path& process, const std::string& path) {
  std::error_code gone;  // processes end while they are looked at; others' can't be looked at
  for (const auto& entry : fs::directory_iterator(process / "fd", gone))
    if (fs::read_symlink(entry.path(), gone) == path) return true;
  std::ifstream maps(process / "maps");
  for (std::string line; std::getline(maps, line);)
    if (absl::EndsWith(line, " " + path)) return true;
  return false;
}

bool IsHeldByAnother(const std::string& path) {
  std::error_code gone;
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    pid_t pid = 0;
    if (absl::SimpleAtoi(entry.path().filename().string(), &pid) && pid != getpid() && Holds(entry.path(), path))
      return true;
  }
  return false;
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
    if (is_new && IsMine(path) && !IsHeldByAnother(path)) left.push_back(path);
  }
  for (const std::string& name : EntriesOf(temporary_.path())) left.push_back(temporary_.File(name));
  return left;
}

}  // namespace muster
