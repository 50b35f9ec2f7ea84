// The job's side of fetching output: which files are below OUTPUT_DIR, and pieces of them.
#include <dirent.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/far_home/parcel_receiver.h"
#include "muster/launch/far_home/parts_answer.h"

namespace muster {
namespace {

constexpr size_t kMostListedBytes = size_t{768} << 10;
constexpr int kMostDepth = 32;

struct ClosedFolder {
  void operator()(DIR* folder) const { closedir(folder); }
};

std::string VersionOf(const struct stat& info) {
  return absl::StrCat(info.st_ino, ":", info.st_size, ":", info.st_mtim.tv_sec, ".", info.st_mtim.tv_nsec);
}

// Lists plain files below a folder whose descriptor it takes, never through links.
class OutputList {
 public:
  void Walk(int fd, const std::string& below, int depth);
  nlohmann::json files = nlohmann::json::array();
  bool cut = false;

 private:
  size_t bytes_ = 0;
};

void OutputList::Walk(int fd, const std::string& below, int depth) {
  const std::unique_ptr<DIR, ClosedFolder> folder(fd < 0 ? nullptr : fdopendir(fd));
  if (folder == nullptr) {
    if (fd >= 0) close(fd);
    return;
  }
  while (const dirent* entry = readdir(folder.get())) {
    const std::string name = entry->d_name;
    struct stat info;
    if (name == "." || name == ".." || fstatat(fd, name.c_str(), &info, AT_SYMLINK_NOFOLLOW) != 0) continue;
    const std::string path = absl::StrCat(below, name);
    if (S_ISDIR(info.st_mode)) {
      if (depth < kMostDepth)
        Walk(openat(fd, name.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), path + "/", depth + 1);
      continue;
    }
    if (!S_ISREG(info.st_mode) || !IsPathBelow(path)) continue;
    nlohmann::json file = {{"path", path}, {"bytes", info.st_size}, {"version", VersionOf(info)}};
    bytes_ += file.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size() + 1;
    cut = cut || bytes_ > kMostListedBytes;
    if (cut) return;
    files.push_back(std::move(file));
  }
}

absl::StatusOr<FarMessage> PieceOfOutput(const std::string& folder, const nlohmann::json& question) {
  const std::string path = question.at("path").get<std::string>();
  const uint64_t offset = question.at("offset").get<uint64_t>();
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder, path, O_RDONLY));
  struct stat info;
  const bool known = fstat(fd, &info) == 0;
  close(fd);
  if (!known || VersionOf(info) != question.at("version").get<std::string>())
    return absl::NotFoundError(absl::StrCat(path, " was written meanwhile"));
  FarMessage message;
  ASSIGN_OR_RETURN(message.bytes, ReadBelow(folder, path, offset, kMostFarBytes));
  return message;
}

}  // namespace

absl::StatusOr<FarMessage> AnswerOutputs(const Home& home, const ExperimentId& id, const FarMessage& question) {
  const std::string folder = home.output(id);
  try {
    const std::string job = question.head.at("job").get<std::string>();
    if (!HasReceived(home, id, job))
      return absl::NotFoundError(absl::StrCat("experiment ", id.ToString(), " isn't in job ", job, " yet"));
    if (question.head.contains("path")) return PieceOfOutput(folder, question.head);
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("it is no question of muster home outputs");
  }
  OutputList list;
  list.Walk(open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC), "", 0);
  return FarMessage{.head = {{"files", std::move(list.files)}, {"cut", list.cut}}};
}

}  // namespace muster
