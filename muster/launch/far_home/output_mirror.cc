#include "muster/launch/far_home/output_mirror.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

constexpr size_t kMostVersions = 4 << 20;  // bytes of the file with versions
constexpr size_t kMostVersion = 200;
constexpr char kOutputFolder[] = "output/";

struct FarOutputFile {
  std::string path, version;
  int64_t bytes = 0;
};

absl::StatusOr<std::vector<FarOutputFile>> ParseOutputs(const FarMessage& answer) {
  std::vector<FarOutputFile> files;
  try {
    for (const nlohmann::json& one : answer.head.at("files")) {
      FarOutputFile file{.path = one.at("path").get<std::string>(),
                         .version = one.at("version").get<std::string>(),
                         .bytes = one.at("bytes").get<int64_t>()};
      if (!IsPathBelow(file.path) || file.bytes < 0 || file.version.size() > kMostVersion)
        return absl::DataLossError(absl::StrCat("the job's output has '", file.path, "', which it may not have"));
      files.push_back(std::move(file));
    }
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError("the job's answer isn't one of muster home outputs");
  }
  std::sort(files.begin(), files.end(),
            [](const FarOutputFile& a, const FarOutputFile& b) { return a.bytes < b.bytes; });
  return files;
}

class OutputMirror {
 public:
  OutputMirror(const Home& home, const ExperimentId& id, JobEngine& engine, std::string job, const Clock& clock,
               const FarOutputOptions& options)
      : folder_(home.folder(id)),
        id_(id),
        engine_(engine),
        job_(std::move(job)),
        clock_(clock),
        options_(options),
        until_(clock.Now() + options.patience) {}

  absl::StatusOr<FetchedOutput> Fetch();

 private:
  void ReadVersions();
  void WriteVersions() const;
  bool IsHere(const FarOutputFile& file) const;
  // Returns whether the file is whole now. NotFound: it was written meanwhile.
  absl::StatusOr<bool> FetchFile(const FarOutputFile& file);
  absl::Status AddToPiece(const std::string& bytes, int64_t have) const;
  absl::Status Place(const FarOutputFile& file) const;
  std::string piece() const { return JoinPath(folder_, kFarPieceName); }

  const std::string folder_;
  const ExperimentId id_;
  JobEngine& engine_;
  const std::string job_;
  const Clock& clock_;
  const FarOutputOptions options_;
  const absl::Time until_;
  nlohmann::json versions_ = nlohmann::json::object();  // by path; under "", of the piece
};

void OutputMirror::ReadVersions() {
  const auto text = PosixFileSystem().ReadShortFile(JoinPath(folder_, kFarOutputsName), kMostVersions);
  if (!text.ok()) return;
  nlohmann::json versions = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (versions.is_object()) versions_ = std::move(versions);
}

// Without it, files come once more.
void OutputMirror::WriteVersions() const {
  static_cast<void>(ReplaceFile(JoinPath(folder_, kFarOutputsName),
                                versions_.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace),
                                Durability::kProcess));
}

bool OutputMirror::IsHere(const FarOutputFile& file) const {
  const auto known = versions_.find(file.path);
  return known != versions_.end() && *known == file.version &&
         SizeBelow(folder_, absl::StrCat(kOutputFolder, file.path)).ok();
}

absl::Status OutputMirror::AddToPiece(const std::string& bytes, int64_t have) const {
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder_, kFarPieceName, O_WRONLY | O_CREAT));
  absl::Status put;
  for (size_t done = 0; done < bytes.size() && put.ok();) {
    const ssize_t some = Uninterrupted([&] {
      return pwrite(fd, bytes.data() + done, bytes.size() - done,
                    static_cast<off_t>(have + static_cast<int64_t>(done)));
    });
    if (some <= 0)
      put = absl::ErrnoToStatus(some == 0 ? ENOSPC : errno, absl::StrCat("cannot write ", piece()));
    else
      done += static_cast<size_t>(some);
  }
  if (!put.ok() && ftruncate(fd, static_cast<off_t>(have)) != 0) unlink(piece().c_str());
  close(fd);
  return put;
}

absl::Status OutputMirror::Place(const FarOutputFile& file) const {
  const std::string path = absl::StrCat(kOutputFolder, file.path);
  // Makes the folders, and refuses to go through a link.
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder_, path, O_WRONLY | O_CREAT));
  close(fd);
  if (rename(piece().c_str(), JoinPath(folder_, path).c_str()) == 0) return absl::OkStatus();
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot replace ", JoinPath(folder_, path)));
}

absl::StatusOr<bool> OutputMirror::FetchFile(const FarOutputFile& file) {
  const nlohmann::json mark = {file.path, file.version};
  if (const auto known = versions_.find(""); known == versions_.end() || *known != mark) {
    unlink(piece().c_str());
    versions_[""] = mark;
    WriteVersions();
  }
  for (;;) {
    const int64_t have = static_cast<int64_t>(SizeBelow(folder_, kFarPieceName).value_or(0));
    if (have >= file.bytes) break;
    if (clock_.Now() >= until_) return false;
    ASSIGN_OR_RETURN(
        const FarMessage answer,
        AskFar(engine_, job_, "outputs", id_.ToString(),
               {.head = {{"job", job_}, {"path", file.path}, {"version", file.version}, {"offset", have}}}));
    if (answer.bytes.empty() || static_cast<int64_t>(answer.bytes.size()) > file.bytes - have)
      return absl::NotFoundError(absl::StrCat(file.path, " has another size than the job has said"));
    RETURN_IF_ERROR(AddToPiece(answer.bytes, have));
  }
  if (file.bytes == 0) RETURN_IF_ERROR(AddToPiece("", 0));
  RETURN_IF_ERROR(Place(file));
  versions_.erase("");
  versions_[file.path] = file.version;
  return true;
}

absl::StatusOr<FetchedOutput> OutputMirror::Fetch() {
  ASSIGN_OR_RETURN(const FarMessage answer,
                   AskFar(engine_, job_, "outputs", id_.ToString(), {.head = {{"job", job_}, {"list", true}}}));
  ASSIGN_OR_RETURN(const std::vector<FarOutputFile> files, ParseOutputs(answer));
  ReadVersions();
  int64_t all = 0;
  for (const FarOutputFile& file : files) all += std::min(file.bytes, FarOutputOptions::kSmallOutput + 1);
  const bool any_size = options_.at_end && (options_.everything || all <= FarOutputOptions::kSmallOutput);
  FetchedOutput fetched;
  int64_t small = 0;
  for (const FarOutputFile& file : files) {
    small += std::min(file.bytes, FarOutputOptions::kSmallOutput + 1);  // the small ones come first
    if (!any_size && (file.bytes > FarOutputOptions::kSmallFile || small > FarOutputOptions::kSmallOutput)) {
      fetched.left.push_back(absl::StrCat(file.path, ": ", file.bytes, " bytes"));
      continue;
    }
    if (IsHere(file)) continue;
    const absl::StatusOr<bool> whole = FetchFile(file);
    if (absl::IsNotFound(whole.status()) || absl::IsFailedPrecondition(whole.status())) {
      fetched.left.push_back(absl::StrCat(file.path, ": ", std::string(whole.status().message())));
      continue;
    }
    if (!whole.ok()) WriteVersions();
    RETURN_IF_ERROR(whole.status());
    fetched.files += *whole ? 1 : 0;
    fetched.more = !*whole;
    if (fetched.more) break;
  }
  const auto cut = answer.head.find("cut");
  if (cut != answer.head.end() && *cut == true) fetched.left.emplace_back("more files than can be listed");
  WriteVersions();
  return fetched;
}

}  // namespace

absl::StatusOr<FetchedOutput> FetchOutput(const Home& home, const ExperimentId& id, JobEngine& engine,
                                          const std::string& job, const Clock& clock, const FarOutputOptions& options) {
  return OutputMirror(home, id, engine, job, clock, options).Fetch();
}

}  // namespace muster
