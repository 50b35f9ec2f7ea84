#include "muster/launch/far_home/output_mirror.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <map>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

constexpr size_t kMostVersions = 16 << 20;  // bytes of the file with versions
constexpr size_t kMostVersion = 200;
constexpr size_t kMostNames = 2 << 20;  // bytes of names and versions that are kept, beside those of the present list
constexpr size_t kMostOfEntry = 32;     // that an entry takes beside them
constexpr size_t kMostShownPath = 300;
constexpr int64_t kLeastOfFile = 4 << 10;  // that a file takes on a disk
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
        return absl::DataLossError(
            absl::StrCat("the job's output has '", OneLine(file.path, kMostShownPath), "', which it may not have"));
      files.push_back(std::move(file));
    }
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError("the job's answer isn't one of muster home outputs");
  }
  std::sort(files.begin(), files.end(),
            [](const FarOutputFile& a, const FarOutputFile& b) { return a.bytes < b.bytes; });
  return files;
}

// Takes files away whose names would do something else than name them where they are shown. Returns which.
std::vector<std::string> LeaveUnshowable(std::vector<FarOutputFile>& files) {
  std::vector<std::string> left;
  std::erase_if(files, [&left](const FarOutputFile& file) {
    const std::string shown = OneLine(file.path, file.path.size());
    if (shown == file.path) return false;
    left.push_back(absl::StrCat(OneLine(file.path), ": its name has control characters"));
    return true;
  });
  return left;
}

// What is here of the output, in a file between calls. Files that the job has removed stay here, and count.
class OutputsHere {
 public:
  struct Entry {
    std::string version;
    int64_t bytes = 0;
    bool is_listed = false;
  };

  // Reads the file; without it, all comes once more.
  explicit OutputsHere(const std::string& folder);
  void Write() const;

  // Takes a new list of the job, and forgets names beyond the limit, but not how much they take.
  void Take(const std::vector<FarOutputFile>& files);
  // Returns null for a file that never came.
  const Entry* Find(const std::string& path) const {
    const auto found = entries_.find(path);
    return found == entries_.end() ? nullptr : &found->second;
  }
  void Note(const FarOutputFile& file) { entries_[file.path] = {file.version, file.bytes, true}; }
  // Returns what is taken by files that the job has no more.
  int64_t left_over() const;

  nlohmann::json piece;  // path and version of the file that isn't whole yet

 private:
  void Parse(const nlohmann::json& text);

  const std::string path_;
  std::map<std::string, Entry> entries_;
  int64_t forgotten_ = 0;  // bytes of files whose names are forgotten
};

OutputsHere::OutputsHere(const std::string& folder) : path_(JoinPath(folder, kFarOutputsName)) {
  const auto text = PosixFileSystem().ReadShortFile(path_, kMostVersions);
  if (!text.ok()) return;
  try {
    Parse(nlohmann::json::parse(*text));
  } catch (const nlohmann::json::exception&) {
    entries_.clear();
  }
}

void OutputsHere::Parse(const nlohmann::json& text) {
  forgotten_ = text.at("forgotten").get<int64_t>();
  for (const auto& [path, entry] : text.at("files").items())
    entries_[path] = {.version = entry.at(0).get<std::string>(), .bytes = entry.at(1).get<int64_t>()};
  piece = text.at("piece");
}

void OutputsHere::Write() const {
  nlohmann::json files = nlohmann::json::object();
  for (const auto& [path, entry] : entries_) files[path] = {entry.version, entry.bytes};
  const nlohmann::json text = {{"files", std::move(files)}, {"piece", piece}, {"forgotten", forgotten_}};
  static_cast<void>(
      ReplaceFile(path_, text.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace), Durability::kProcess));
}

void OutputsHere::Take(const std::vector<FarOutputFile>& files) {
  for (const FarOutputFile& file : files)
    if (const auto found = entries_.find(file.path); found != entries_.end()) found->second.is_listed = true;
  size_t names = 0;
  for (const auto& [path, entry] : entries_)
    names += entry.is_listed ? 0 : path.size() + entry.version.size() + kMostOfEntry;
  if (names <= kMostNames) return;
  forgotten_ = left_over();
  std::erase_if(entries_, [](const auto& one) { return !one.second.is_listed; });
}

int64_t OutputsHere::left_over() const {
  int64_t all = forgotten_;
  for (const auto& [path, entry] : entries_) all += entry.is_listed ? 0 : std::max(entry.bytes, kLeastOfFile);
  return all;
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
        until_(clock.Now() + options.patience),
        here_(folder_) {}

  absl::StatusOr<FetchedOutput> Fetch();

 private:
  // Returns the files that aren't to come now, with why, and takes them from the others.
  std::vector<std::string> LeaveBehind(std::vector<FarOutputFile>& files) const;
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
  OutputsHere here_;
};

bool OutputMirror::IsHere(const FarOutputFile& file) const {
  const OutputsHere::Entry* const known = here_.Find(file.path);
  return known != nullptr && known->version == file.version &&
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
  if (here_.piece != mark) {
    unlink(piece().c_str());
    here_.piece = mark;
    here_.Write();
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
  here_.piece = nullptr;
  here_.Note(file);
  return true;
}

std::vector<std::string> OutputMirror::LeaveBehind(std::vector<FarOutputFile>& files) const {
  constexpr int64_t kSmallOutput = FarOutputOptions::kSmallOutput;
  int64_t all = 0;
  for (const FarOutputFile& file : files) all += std::min(file.bytes, kSmallOutput + 1);
  const bool everything = options_.at_end && options_.everything;
  const bool any_size = everything || (options_.at_end && all <= kSmallOutput);
  const bool new_ones = everything || here_.left_over() <= FarOutputOptions::kLeftOver;
  std::vector<std::string> left;
  int64_t small = 0;
  std::erase_if(files, [&](const FarOutputFile& file) {
    const OutputsHere::Entry* const known = here_.Find(file.path);
    // The small ones come first. What is here may be larger than what the job says now.
    small += std::min(std::max(file.bytes, known != nullptr ? known->bytes : 0), kSmallOutput + 1);
    const bool fits = any_size || (file.bytes <= FarOutputOptions::kSmallFile && small <= kSmallOutput);
    if (fits && (new_ones || known != nullptr)) return false;
    left.push_back(fits ? absl::StrCat(OneLine(file.path), ": so many files have come that the job has removed again")
                        : absl::StrCat(OneLine(file.path), ": ", file.bytes, " bytes"));
    return true;
  });
  return left;
}

absl::StatusOr<FetchedOutput> OutputMirror::Fetch() {
  ASSIGN_OR_RETURN(const FarMessage answer,
                   AskFar(engine_, job_, "outputs", id_.ToString(), {.head = {{"job", job_}, {"list", true}}}));
  ASSIGN_OR_RETURN(std::vector<FarOutputFile> files, ParseOutputs(answer));
  FetchedOutput fetched{.left = LeaveUnshowable(files)};
  here_.Take(files);
  for (std::string& left : LeaveBehind(files)) fetched.left.push_back(std::move(left));
  for (const FarOutputFile& file : files) {
    if (IsHere(file)) continue;
    const absl::StatusOr<bool> whole = FetchFile(file);
    if (absl::IsNotFound(whole.status()) || absl::IsFailedPrecondition(whole.status())) {
      fetched.left.push_back(OneLine(absl::StrCat(file.path, ": ", std::string(whole.status().message()))));
      continue;
    }
    if (!whole.ok()) here_.Write();
    RETURN_IF_ERROR(whole.status());
    fetched.files += *whole ? 1 : 0;
    fetched.more = !*whole;
    if (fetched.more) break;
  }
  const auto cut = answer.head.find("cut");
  if (cut != answer.head.end() && *cut == true) fetched.left.emplace_back("more files than can be listed");
  here_.Write();
  return fetched;
}

}  // namespace

absl::StatusOr<FetchedOutput> FetchOutput(const Home& home, const ExperimentId& id, JobEngine& engine,
                                          const std::string& job, const Clock& clock, const FarOutputOptions& options) {
  return OutputMirror(home, id, engine, job, clock, options).Fetch();
}

}  // namespace muster
