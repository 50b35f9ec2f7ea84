#include "muster/launch/far_home/parcel_receiver.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>
#include <vector>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/project/sha256.h"
#include "muster/launch/registry/files/other_home.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/run_lock.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {
namespace {

constexpr char kParcelName[] = "parcel";
constexpr char kParcelAbout[] = "about";
constexpr size_t kMostParcelLine = 16 << 10;
constexpr size_t kMostName = 512;  // bytes of a job's id, and of a small file
constexpr size_t kCopyAtOnce = size_t{1} << 20;
constexpr absl::Duration kLookForParcel = absl::Milliseconds(100);
constexpr absl::Duration kLookForEnd = absl::Milliseconds(200);

std::string SmallFile(const std::string& path) { return PosixFileSystem().ReadShortFile(path, kMostName).value_or(""); }

bool IsHexName(const std::string& text) {
  return text.size() == 64 && text.find_first_not_of("0123456789abcdef") == std::string::npos;
}

absl::Status WriteAt(int fd, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put =
        Uninterrupted([&] { return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (put <= 0) return absl::ErrnoToStatus(put == 0 ? ENOSPC : errno, "the job can't write the experiment");
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

// A file of the parcel and where its bytes are.
struct ParcelEntry {
  std::string path, kind, to;
  uint64_t begin = 0, bytes = 0;
};

bool MayBeInParcel(const ParcelEntry& entry) {
  if (!IsPathBelow(entry.path)) return false;
  if (absl::StartsWith(entry.path, "tree/")) return true;
  if (absl::StartsWith(entry.path, "logs/")) {
    const auto place = FarPlaceOf(entry.path);
    return entry.bytes == 0 && place.has_value() && place->kind == PlaceKind::kAppended;
  }
  return entry.path == "experiment.json" || entry.path == "job" || entry.path == "records";
}

// The whole parcel, as it lies in the folder of what comes.
class OpenedParcel {
 public:
  OpenedParcel(const Home& home, const ExperimentId& id, std::string incoming)
      : home_(home), id_(id), incoming_(std::move(incoming)) {}

  // Puts all files in their places, the one that says so last.
  absl::Status Unpack(const std::string& name, const std::string& job, const std::string& tree);

 private:
  absl::Status CheckName(const std::string& name) const;
  absl::Status ReadEntries(const std::string& job, const std::string& tree);
  absl::StatusOr<nlohmann::json> LineAt(uint64_t& offset) const;
  absl::StatusOr<std::string> BytesOf(const ParcelEntry& entry) const;
  absl::Status PutTree(const std::string& tree) const;
  absl::Status PutTreeFile(const std::string& folder, const ParcelEntry& entry) const;
  absl::Status PutRun() const;

  const Home& home_;
  const ExperimentId id_;
  const std::string incoming_;
  std::string other_home_;
  std::vector<ParcelEntry> entries_;
};

absl::Status OpenedParcel::CheckName(const std::string& name) const {
  Sha256 sha;
  for (uint64_t done = 0;;) {
    ASSIGN_OR_RETURN(const std::string bytes, ReadBelow(incoming_, kParcelName, done, kCopyAtOnce));
    if (bytes.empty()) break;
    sha.Add(bytes);
    done += bytes.size();
  }
  return absl::BytesToHexString(sha.Finish()) == name
             ? absl::OkStatus()
             : absl::DataLossError("what has come of the experiment has another checksum: it is sent once more");
}

absl::StatusOr<nlohmann::json> OpenedParcel::LineAt(uint64_t& offset) const {
  ASSIGN_OR_RETURN(const std::string bytes, ReadBelow(incoming_, kParcelName, offset, kMostParcelLine));
  const size_t end = bytes.find('\n');
  nlohmann::json line = nlohmann::json::parse(bytes.substr(0, end), nullptr, /*allow_exceptions=*/false);
  if (end == std::string::npos || !line.is_object()) return absl::InvalidArgumentError("it is no parcel of muster");
  offset += end + 1;
  return line;
}

absl::Status OpenedParcel::ReadEntries(const std::string& job, const std::string& tree) {
  ASSIGN_OR_RETURN(const uint64_t size, SizeBelow(incoming_, kParcelName));
  uint64_t offset = 0;
  ASSIGN_OR_RETURN(const nlohmann::json first, LineAt(offset));
  if (first.at("id") != id_.ToString() || first.at("job") != job || first.at("tree") != tree)
    return absl::InvalidArgumentError("the parcel is for another experiment or job");
  other_home_ = first.at("home").get<std::string>();
  while (offset < size) {
    ASSIGN_OR_RETURN(const nlohmann::json line, LineAt(offset));
    ParcelEntry entry{.path = line.at("path").get<std::string>(),
                      .kind = line.at("kind").get<std::string>(),
                      .to = line.value("to", ""),
                      .begin = offset,
                      .bytes = line.at("bytes").get<uint64_t>()};
    if (!MayBeInParcel(entry) || entry.bytes > size - offset)
      return absl::InvalidArgumentError(absl::StrCat("'", entry.path, "' can't be in a parcel"));
    offset += entry.bytes;
    entries_.push_back(std::move(entry));
  }
  return absl::OkStatus();
}

absl::StatusOr<std::string> OpenedParcel::BytesOf(const ParcelEntry& entry) const {
  return ReadBelow(incoming_, kParcelName, entry.begin, entry.bytes);
}

absl::Status OpenedParcel::PutTreeFile(const std::string& folder, const ParcelEntry& entry) const {
  const std::string path = entry.path.substr(5);  // behind "tree/"
  if (entry.kind == "d") {
    RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(JoinPath(folder, path)));
    return absl::OkStatus();
  }
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder, path, O_WRONLY | O_CREAT | O_EXCL));
  absl::Status put;
  for (uint64_t done = 0; done < entry.bytes && put.ok();) {
    const size_t wanted = static_cast<size_t>(std::min<uint64_t>(entry.bytes - done, kCopyAtOnce));
    const auto bytes = ReadBelow(incoming_, kParcelName, entry.begin + done, wanted);
    put = bytes.ok() ? WriteAt(fd, *bytes, done) : bytes.status();
    done += wanted;
  }
  if (put.ok() && entry.kind == "x" && fchmod(fd, 0700) != 0) put = absl::ErrnoToStatus(errno, "chmod");
  close(fd);
  return put;
}

// Links come last, so that no file is written through one.
absl::Status OpenedParcel::PutTree(const std::string& tree) const {
  const std::string folder = JoinPath(incoming_, "tree");
  RETURN_IF_ERROR(PosixFileSystem().RemoveTree(folder));
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(folder));
  std::vector<const ParcelEntry*> links;
  for (const ParcelEntry& entry : entries_) {
    if (!absl::StartsWith(entry.path, "tree/")) continue;
    if (entry.kind == "l")
      links.push_back(&entry);
    else
      RETURN_IF_ERROR(PutTreeFile(folder, entry));
  }
  for (const ParcelEntry* link : links) {
    const std::string path = JoinPath(folder, link->path.substr(5));
    RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(path.substr(0, path.rfind('/'))));
    if (symlink(link->to.c_str(), path.c_str()) != 0) return absl::ErrnoToStatus(errno, "cannot make a link");
  }
  ASSIGN_OR_RETURN(const ProjectFiles files, ListProject(folder, {}, ListedFiles::kAll));
  ASSIGN_OR_RETURN(const std::string hash, StoreTree(folder, files, home_.trees(), [](int64_t) {}));
  RETURN_IF_ERROR(PosixFileSystem().RemoveTree(folder));
  return hash == tree ? absl::OkStatus()
                      : absl::DataLossError(absl::StrCat("the code that has come has the hash ", hash, ", not ", tree));
}

absl::Status OpenedParcel::PutRun() const {
  const std::string folder = home_.folder(id_);
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(folder));
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(home_.open_folder()));
  RETURN_IF_ERROR(WriteOtherHome(home_.other_home(id_), {.path = other_home_}));
  // Those of a job before.
  for (const char* name : {kFarCollectedName, kFarLingersName}) unlink(FarFile(home_, id_, name).c_str());
  unlink(home_.job_over(id_).c_str());
  const ParcelEntry* asked = nullptr;
  for (const ParcelEntry& entry : entries_) {
    if (absl::StartsWith(entry.path, "tree/")) continue;
    if (entry.path == "experiment.json") {
      asked = &entry;
    } else if (entry.path == "job" || entry.path == "records") {
      ASSIGN_OR_RETURN(const std::string text, BytesOf(entry));
      RETURN_IF_ERROR(ReplaceFile(JoinPath(folder, entry.path), text, Durability::kDisk));
    } else {  // a log
      ASSIGN_OR_RETURN(const int fd, OpenBelow(folder, entry.path, O_WRONLY | O_CREAT));
      close(fd);
    }
  }
  if (asked == nullptr) return absl::InvalidArgumentError("the parcel has no experiment.json");
  ASSIGN_OR_RETURN(const std::string text, BytesOf(*asked));
  RETURN_IF_ERROR(ReplaceFile(home_.experiment_file(id_.number), text, Durability::kDisk));
  return ReplaceFile(home_.open_marker(id_.number), "", Durability::kProcess);
}

absl::Status OpenedParcel::Unpack(const std::string& name, const std::string& job, const std::string& tree) {
  RETURN_IF_ERROR(CheckName(name));
  try {
    RETURN_IF_ERROR(ReadEntries(job, tree));
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("it is no parcel of muster");
  }
  const bool with_tree = std::any_of(entries_.begin(), entries_.end(),
                                     [](const ParcelEntry& entry) { return absl::StartsWith(entry.path, "tree/"); });
  if (with_tree || !PosixFileSystem().Exists(JoinPath(home_.trees(), tree))) RETURN_IF_ERROR(PutTree(tree));
  RETURN_IF_ERROR(PutRun());
  return ReplaceFile(FarFile(home_, id_, kFarReceivedName), job, Durability::kDisk);
}

struct ReceiveQuestion {
  std::string parcel, job, tree;
  uint64_t size = 0, offset = 0;
};

absl::StatusOr<ReceiveQuestion> ParseReceive(const nlohmann::json& head) {
  ReceiveQuestion question;
  try {
    question = {.parcel = head.at("parcel").get<std::string>(),
                .job = head.at("job").get<std::string>(),
                .tree = head.at("tree").get<std::string>(),
                .size = head.at("size").get<uint64_t>(),
                .offset = head.at("offset").get<uint64_t>()};
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("it is no question of muster home receive");
  }
  const bool named = question.parcel.empty() || IsHexName(question.parcel);
  if (!named || question.job.empty() || question.job.size() > kMostName || !IsPathBelow(question.tree) ||
      question.tree.find('/') != std::string::npos)
    return absl::InvalidArgumentError("it is no question of muster home receive");
  return question;
}

// Returns how much of the parcel has come, after these bytes.
absl::StatusOr<uint64_t> TakePiece(const std::string& incoming, const ReceiveQuestion& question,
                                   const std::string& bytes) {
  const std::string about = JoinPath(incoming, kParcelAbout);
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(incoming));
  if (SmallFile(about) != question.parcel) {
    unlink(JoinPath(incoming, kParcelName).c_str());
    RETURN_IF_ERROR(ReplaceFile(about, question.parcel, Durability::kProcess));
  }
  const uint64_t have = SizeBelow(incoming, kParcelName).value_or(0);
  if (question.offset != have || bytes.size() > question.size - std::min(have, question.size)) return have;
  ASSIGN_OR_RETURN(const int fd, OpenBelow(incoming, kParcelName, O_WRONLY | O_CREAT));
  const absl::Status put = WriteAt(fd, bytes, have);
  // A piece that had no room is no piece.
  if (!put.ok() && ftruncate(fd, static_cast<off_t>(have)) != 0) unlink(JoinPath(incoming, kParcelName).c_str());
  close(fd);
  RETURN_IF_ERROR(put);
  return have + bytes.size();
}

}  // namespace

bool HasReceived(const Home& home, const ExperimentId& id, const std::string& job) {
  const std::string received = SmallFile(FarFile(home, id, kFarReceivedName));
  return !received.empty() && (job.empty() || received == job);
}

absl::StatusOr<FarMessage> AnswerReceive(const Home& home, const ExperimentId& id, const FarMessage& question) {
  ASSIGN_OR_RETURN(const ReceiveQuestion asked, ParseReceive(question.head));
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(home.folder(id)));
  // Two that send at once would write one file.
  ASSIGN_OR_RETURN(const RunLock lock, RunLock::Take(FarFile(home, id, kFarLockName)));
  const std::string incoming = FarFile(home, id, kFarIncomingName);
  nlohmann::json head = {{"done", HasReceived(home, id, asked.job)},
                         {"has_tree", PosixFileSystem().Exists(JoinPath(home.trees(), asked.tree))},
                         {"have", 0}};
  if (head.at("done").get<bool>() || asked.parcel.empty()) return FarMessage{.head = head};
  ASSIGN_OR_RETURN(const uint64_t have, TakePiece(incoming, asked, question.bytes));
  head["have"] = have;
  if (have < asked.size || have == 0) return FarMessage{.head = head};
  const absl::Status unpacked = OpenedParcel(home, id, incoming).Unpack(asked.parcel, asked.job, asked.tree);
  // Whatever is wrong with it, it has to come again.
  static_cast<void>(PosixFileSystem().RemoveTree(incoming));
  RETURN_IF_ERROR(unpacked);
  head["done"] = true;
  return FarMessage{.head = head};
}

absl::Status AwaitParcel(const Home& home, const ExperimentId& id, const std::string& job, absl::Duration patience,
                         const Clock& clock, const std::function<void(absl::Duration)>& pause) {
  const std::string parcel = JoinPath(FarFile(home, id, kFarIncomingName), kParcelName);
  std::string seen;
  for (absl::Time until = clock.Now() + patience; !HasReceived(home, id, job); pause(kLookForParcel)) {
    if (std::string now = SignatureOf(parcel); now != seen) {
      seen = std::move(now);
      until = clock.Now() + patience;
    }
    if (clock.Now() < until) continue;
    return absl::DeadlineExceededError(absl::StrCat(
        "for ", absl::FormatDuration(patience), " nothing of experiment ", id.ToString(),
        " has come into its job: the machine that has submitted it may be off or asleep, or can't reach the job; ",
        "muster status ", id.ToString(), " there says why, and muster train --experiment ", id.ToString(),
        " submits it once more"));
  }
  return absl::OkStatus();
}

bool Linger(const Home& home, const ExperimentId& id, const std::string& named, absl::Duration keep, const Clock& clock,
            const std::function<void(absl::Duration)>& pause) {
  const std::string job = named.empty() ? SmallFile(FarFile(home, id, kFarReceivedName)) : named;
  static_cast<void>(ReplaceFile(FarFile(home, id, kFarLingersName), job, Durability::kProcess));
  for (const absl::Time until = clock.Now() + keep;; pause(kLookForEnd)) {
    if (SmallFile(FarFile(home, id, kFarCollectedName)) == job) return true;
    if (clock.Now() >= until) return false;
  }
}

}  // namespace muster
