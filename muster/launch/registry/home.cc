#include "muster/launch/registry/home.h"

#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <memory>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/launch/system/random_hex.h"

namespace muster {
namespace {

// Makes the path absolute, because supervisors and tasks have working directories of their own.
absl::StatusOr<std::string> AbsoluteHome(const std::string& path) {
  if (path.empty()) {
    return WrongConfigurationError(
        "no folder for experiments: neither MUSTER_HOME nor HOME is set; set MUSTER_HOME to a folder");
  }
  std::error_code error;
  const std::string absolute = std::filesystem::absolute(path, error).lexically_normal().string();
  if (!error) return absolute;
  return WrongConfigurationError(
      absl::StrCat("MUSTER_HOME ", path, " can't be made an absolute path: ", error.message()));
}

absl::Status TryToWriteHome(const std::string& path, FileSystem& files) {
  RETURN_IF_ERROR(files.CreateDirectory(path));
  // Uses a random name, because several commands may try at the same time.
  const std::string trial = JoinPath(path, absl::StrCat(".writable.tmp", RandomHex(8)));
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, files.CreateFile(trial));
  RETURN_IF_ERROR(file->Close());
  return files.Remove(trial);
}

// Others who may write into the folder could put files of theirs in the place of muster's.
absl::Status RefuseWritableByOthers(const std::string& path) {
  struct stat info;
  if (stat(path.c_str(), &info) != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) == 0) return absl::OkStatus();
  return WrongConfigurationError(absl::StrCat("MUSTER_HOME ", path, " can be written by other users, who could change ",
                                              "what experiments run; chmod go-w ", path,
                                              " ends that, or set MUSTER_HOME to another folder"));
}

// Takes the rights of group and others from what the home holds: the folder itself may be open to them, and an older
// muster made files that they could read.
void KeepOthersOut(const Home& home) {
  std::vector<std::string> paths = {home.experiments(), home.open_folder(), home.trees(), home.builds(),
                                    home.environments()};
  for (const std::string& database : {home.database(), home.former_database()})
    for (const char* end : {"", "-wal", "-shm"}) paths.push_back(database + end);
  for (const std::string& path : paths) {
    struct stat info;
    const bool there = lstat(path.c_str(), &info) == 0 && !S_ISLNK(info.st_mode) && info.st_uid == geteuid();
    if (there && (info.st_mode & 077) != 0) chmod(path.c_str(), info.st_mode & 0700);
  }
}

}  // namespace

absl::StatusOr<Home> Home::Open(const std::string& path, FileSystem& files) {
  ASSIGN_OR_RETURN(const std::string absolute, AbsoluteHome(path));
  const bool is_new = !files.Exists(absolute);
  const absl::Status written = TryToWriteHome(absolute, files);
  if (written.ok()) {
    std::error_code no_rights;  // ignored: some file systems have no permissions other than the mount's
    if (is_new) std::filesystem::permissions(absolute, std::filesystem::perms::owner_all, no_rights);
    RETURN_IF_ERROR(RefuseWritableByOthers(absolute));
    KeepOthersOut(Home(absolute));
    return Home(absolute);
  }
  return WrongConfigurationError(absl::StrCat("experiments can't be kept in ", absolute, ": ",
                                              std::string(written.message()),
                                              "; make it writable, or set MUSTER_HOME to another folder"));
}

absl::StatusOr<Home> Home::OpenToRead(const std::string& path, FileSystem& files) {
  ASSIGN_OR_RETURN(const std::string absolute, AbsoluteHome(path));
  const Home home(absolute);
  if (!files.Exists(home.database()) && !files.Exists(home.former_database()) && !files.Exists(home.experiments()))
    return Open(path, files);
  KeepOthersOut(home);
  return home;
}

std::string Home::database() const { return JoinPath(path_, "index.db"); }
std::string Home::former_database() const { return JoinPath(path_, "registry.db"); }
std::string Home::open_folder() const { return JoinPath(path_, "open"); }
std::string Home::open_marker(int64_t number) const { return JoinPath(open_folder(), absl::StrCat(number)); }
std::string Home::far_folder() const { return JoinPath(path_, "far"); }
std::string Home::far_marker(const ExperimentId& id) const { return JoinPath(far_folder(), id.ToString()); }
std::string Home::experiments() const { return JoinPath(path_, "experiments"); }
std::string Home::trees() const { return JoinPath(path_, "code"); }
std::string Home::builds() const { return JoinPath(path_, "builds"); }
std::string Home::environments() const { return JoinPath(path_, "environments"); }

std::string Home::held() const { return JoinPath(path_, "held"); }

std::string Home::folder(const ExperimentId& id) const {
  const std::string whole = JoinPath(experiments(), absl::StrCat(id.number));
  return id.run == 0 ? whole : JoinPath(whole, absl::StrCat("runs/", id.run));
}

std::string Home::work(const ExperimentId& id) const { return JoinPath(folder(id), "work"); }
std::string Home::logs(const ExperimentId& id) const { return JoinPath(folder(id), "logs"); }
std::string Home::output(const ExperimentId& id) const { return JoinPath(folder(id), "output"); }
std::string Home::experiment_file(int64_t number) const {
  return JoinPath(folder({.number = number}), "experiment.json");
}
std::string Home::experiment_lock(int64_t number) const { return absl::StrCat(experiment_file(number), ".lock"); }
std::string Home::former_file(int64_t number) const { return JoinPath(folder({.number = number}), "former.json"); }
std::string Home::refused(const ExperimentId& id) const { return JoinPath(folder(id), "refused"); }
std::string Home::records(const ExperimentId& id) const { return JoinPath(folder(id), "records"); }
std::string Home::state(const ExperimentId& id) const { return JoinPath(folder(id), "state.json"); }
std::string Home::requests(const ExperimentId& id) const { return JoinPath(folder(id), "requests"); }
std::string Home::other_home(const ExperimentId& id) const { return JoinPath(folder(id), "other_home"); }
std::string Home::lock(const ExperimentId& id) const { return JoinPath(folder(id), "lock"); }
std::string Home::host_usage(const ExperimentId& id) const { return JoinPath(folder(id), "usage.json"); }
std::string Home::job(const ExperimentId& id) const { return JoinPath(folder(id), "job"); }
std::string Home::job_script(const ExperimentId& id) const { return JoinPath(folder(id), "job.sh"); }
std::string Home::job_over(const ExperimentId& id) const { return JoinPath(folder(id), "job_over"); }
std::string Home::handover(const ExperimentId& id) const { return JoinPath(folder(id), "handover"); }
std::string Home::logged_output(const ExperimentId& id) const { return JoinPath(folder(id), "logged_output"); }
std::string Home::job_waits(const ExperimentId& id) const { return JoinPath(folder(id), "job_waits"); }
std::string Home::job_notice(const ExperimentId& id) const { return JoinPath(folder(id), "job_notice"); }
std::string Home::job_output(const ExperimentId& id) const { return JoinPath(folder(id), "job.out"); }
std::string Home::output_mark(const ExperimentId& id) const { return JoinPath(folder(id), "output_mark"); }
std::string Home::output_elsewhere(const ExperimentId& id) const { return JoinPath(folder(id), "output_elsewhere"); }
std::string Home::supervisor_log(const ExperimentId& id) const { return JoinPath(folder(id), "supervisor.log"); }

}  // namespace muster
