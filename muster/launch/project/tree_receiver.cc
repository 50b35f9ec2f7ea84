#include "muster/launch/project/tree_receiver.h"

#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <iterator>
#include <set>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/build.h"
#include "muster/launch/project/file_copy.h"
#include "muster/launch/project/folder_lock.h"
#include "muster/launch/project/remove_folder.h"
#include "muster/launch/project/temporary_folder.h"
#include "muster/launch/project/tree_hash.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

constexpr size_t kMostNonce = 256;
constexpr absl::Duration kLeftoversKept = absl::Hours(24);

std::vector<std::string> FoldersOfNobody(const ReceivePlace& place,
                                         const std::function<bool(const std::string& job)>& lives) {
  std::vector<std::string> folders;
  if (!MakeCacheFolder(place.works()).ok()) return folders;
  // So that no folder is seen between its making and its locking.
  const auto instant = FolderLock::Take(place.works(), kInstantLockWait);
  if (!instant.ok()) return folders;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(place.works(), error), end; !error && entry != end;
       entry.increment(error)) {
    const std::string job = entry->path().filename();
    const bool left = absl::StartsWith(job, kTemporaryPrefix) && !FolderLock::IsHeld(entry->path());
    if (left || (CheckReceivedJob(job).ok() && !lives(job))) folders.push_back(entry->path());
  }
  return folders;
}

absl::Status CheckOutputName(const std::string& name) {
  for (const absl::string_view part : absl::StrSplit(name, '/')) {
    const bool named =
        !part.empty() && part[0] != '.' && part.size() <= 128 && std::all_of(part.begin(), part.end(), [](char c) {
          return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-' || c == '_' || c == '.';
        });
    if (!named) return absl::InvalidArgumentError(absl::StrCat("'", name, "' can't name a folder of output"));
  }
  return absl::OkStatus();
}

// Hosts of other boots, and other hosts that share the folder: nobody can ask whether their jobs live.
std::vector<std::string> FoldersOfOtherBoots(const ReceivePlace& place, absl::Time before) {
  std::vector<std::string> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(place.cache + "/work", error), end; !error && entry != end;
       entry.increment(error)) {
    struct stat info;
    if (entry->path() == place.works() || lstat(entry->path().c_str(), &info) != 0) continue;
    if (absl::TimeFromTimespec(info.st_mtim) < before) folders.push_back(entry->path());
  }
  return folders;
}

bool WasUsedBefore(const std::string& setup, absl::Time before) {
  struct stat info;
  const std::string mark = JoinPath(setup, kBuildDoneName);
  if (stat(mark.c_str(), &info) != 0 && lstat(setup.c_str(), &info) != 0) return false;
  return absl::TimeFromTimespec(info.st_mtim) < before;
}

// What `setup` of an experiment file has made (experiment/setup_plan.h).
std::vector<std::string> SetupsOf(const ReceivePlace& place) {
  std::vector<std::string> folders;
  std::error_code error;
  for (std::filesystem::directory_iterator entry(place.cache + "/setup", error), end; !error && entry != end;
       entry.increment(error))
    folders.push_back(entry->path());
  return folders;
}

// Returns whether the folder is one to go on in, and marks it. The mark is beside it: what is in it is the tasks' own.
absl::StatusOr<bool> TakeMark(const std::string& folder, const MakeOutputMessage& make) {
  if (make.next.empty()) return true;
  const std::filesystem::path path(folder);
  const std::string mark = absl::StrCat(path.parent_path().string(), "/.mark-", path.filename().string());
  const std::string has = PosixFileSystem().ReadShortFile(mark, kMostNonce).value_or("");
  const bool known = std::find(make.before.begin(), make.before.end(), has) != make.before.end();
  if (!make.anew && (has.empty() || !known)) return false;
  RETURN_IF_ERROR(WriteFileAtomically(PosixFileSystem(), mark, AsBytes(make.next.data(), make.next.size())));
  return true;
}

template <typename Message>
absl::StatusOr<Message> Decoded(const TransferFrame& frame) {
  Message message;
  RETURN_IF_ERROR(Decode(frame.body, message));
  return message;
}

}  // namespace

absl::StatusOr<ReceivePlace> PlaceToReceive(const std::string& home, const std::string& xdg_cache_home,
                                            const std::string& host_name) {
  const bool xdg = absl::StartsWith(xdg_cache_home, "/");
  if (!xdg && !absl::StartsWith(home, "/"))
    return absl::FailedPreconditionError("neither HOME nor XDG_CACHE_HOME is an absolute path; set one on that host");
  if (host_name.empty() || host_name[0] == '.' || host_name.find('/') != std::string::npos)
    return absl::FailedPreconditionError(absl::StrCat("the host's name '", host_name, "' can't name a folder"));
  const std::string cache = absl::StrCat(xdg ? xdg_cache_home : home + "/.cache", "/muster");
  return ReceivePlace{.cache = cache,
                      .host = host_name,
                      .outputs = absl::StartsWith(home, "/") ? home + "/.muster/output" : cache + "/output"};
}

absl::Status CheckReceivedJob(const std::string& job) {
  const bool named = !job.empty() && job.size() <= 64 && std::all_of(job.begin(), job.end(), [](char c) {
    return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '-';
  });
  return named ? absl::OkStatus() : absl::InvalidArgumentError("a job's name has 1 to 64 letters, digits and '-'");
}

void SweepReceived(const ReceivePlace& place, absl::Time now,
                   const std::function<bool(const std::string& job)>& lives) {
  ContentStore(absl::StrCat(place.cache, "/files")).Sweep(now - kContentsKept, now - kLeftoversKept);
  std::vector<std::string> folders = FoldersOfNobody(place, lives);
  for (std::string& folder : FoldersOfOtherBoots(place, now - kContentsKept)) folders.push_back(std::move(folder));
  for (const std::string& folder : folders) RemoveFolder(folder).IgnoreError();  // the next sweep tries again
  SweepSetups(place, now);
}

void SweepSetups(const ReceivePlace& place, absl::Time now) {
  const absl::Time before = now - kContentsKept;
  for (const std::string& folder : SetupsOf(place)) {
    if (!WasUsedBefore(folder, before)) continue;
    const absl::StatusOr<FolderLock> lock = FolderLock::Take(folder, absl::ZeroDuration());
    // Another run may have begun to use it meanwhile.
    if (lock.ok() && WasUsedBefore(folder, before)) RemoveFolder(folder).IgnoreError();
  }
}

TreeReceiver::TreeReceiver(ReceivePlace place)
    : place_(std::move(place)), store_(absl::StrCat(place_.cache, "/files")), output_(kTransferGreeting) {}

template <typename Message>
void TreeReceiver::Send(const Message& message) {
  output_ += TransferFrameOf(Message::kKind, Encode(message));
}

absl::Status TreeReceiver::Take(std::string_view bytes) {
  const absl::Status taken = frames_.TakeAll(bytes, [this](const TransferFrame& frame) { return TakeFrame(frame); });
  if (taken.ok())
    output_ += frames_.Told();
  else
    Send(FailedMessage{.why = std::string(taken.message().substr(0, 4096))});
  return taken;
}

absl::Status TreeReceiver::TakeFrame(const TransferFrame& frame) {
  if (done_ && frame.kind != TransferKind::kMakeOutput)
    return absl::InvalidArgumentError("the sender goes on after the end");
  switch (frame.kind) {
    case TransferKind::kSee: {
      ASSIGN_OR_RETURN(const SeeMessage see, Decoded<SeeMessage>(frame));
      return Take(see);
    }
    case TransferKind::kFiles: {
      ASSIGN_OR_RETURN(FilesMessage files, Decoded<FilesMessage>(frame));
      return Take(std::move(files));
    }
    case TransferKind::kAssemble: {
      ASSIGN_OR_RETURN(const AssembleMessage assemble, Decoded<AssembleMessage>(frame));
      return Take(assemble);
    }
    case TransferKind::kContents: {
      ASSIGN_OR_RETURN(const ContentsMessage contents, Decoded<ContentsMessage>(frame));
      return Take(contents);
    }
    case TransferKind::kMakeOutput: {
      ASSIGN_OR_RETURN(const MakeOutputMessage make, Decoded<MakeOutputMessage>(frame));
      return Take(make);
    }
    default:
      return absl::InvalidArgumentError("the sender says what only a host says");
  }
}

absl::Status TreeReceiver::Take(const SeeMessage& see) {
  SeenMessage seen;
  for (size_t i = 0; i < see.paths.size(); ++i) {
    const absl::StatusOr<std::string> text = PosixFileSystem().ReadShortFile(see.paths[i], kMostNonce);
    if (text.ok() && *text == see.nonce) seen.seen.push_back(static_cast<uint32_t>(i));
  }
  Send(seen);
  return absl::OkStatus();
}

absl::Status TreeReceiver::Take(FilesMessage files) {
  if (assemble_.has_value() || files_.size() + files.files.size() > kMostTransferFiles)
    return absl::InvalidArgumentError("there are too many files, or they come too late");
  std::move(files.files.begin(), files.files.end(), std::back_inserter(files_));
  return absl::OkStatus();
}

absl::Status TreeReceiver::Take(const AssembleMessage& assemble) {
  if (assemble_.has_value()) return absl::InvalidArgumentError("a second tree");
  RETURN_IF_ERROR(CheckReceivedJob(assemble.job));
  RETURN_IF_ERROR(CheckTreeFiles(files_));
  TreeHash hash;
  for (const TreeFile& file : files_) hash.Add(file.file, file.digest);
  if (hash.Finish() != assemble.hash) return absl::InvalidArgumentError("the tree has another hash than announced");
  assemble_ = assemble;
  std::set<std::string> looked_up;
  for (uint32_t i = 0; i < files_.size(); ++i)
    if (IsRegular(files_[i].file) && looked_up.insert(files_[i].digest).second && !store_.Has(files_[i].digest))
      missing_.push_back(i);
  output_ += MissingFrames(missing_);
  return GoOn();
}

absl::Status TreeReceiver::Take(const ContentsMessage& contents) {
  std::string_view bytes = contents.bytes;
  if (bytes.empty() || !incoming_.has_value() || bytes.size() > static_cast<uint64_t>(left_))
    return absl::InvalidArgumentError("the sender sends contents that nobody has asked for");
  RETURN_IF_ERROR(incoming_->Add(bytes));
  left_ -= static_cast<int64_t>(bytes.size());
  return left_ > 0 ? absl::OkStatus() : GoOn();
}

absl::Status TreeReceiver::Take(const MakeOutputMessage& make) {
  RETURN_IF_ERROR(CheckOutputName(make.name));
  const std::string path = absl::StrCat(place_.outputs, "/", make.name);
  RETURN_IF_ERROR(MakeCacheFolder(path));
  ASSIGN_OR_RETURN(const bool goes_on, TakeMark(path, make));
  Send(OutputMessage{.path = path, .other = !goes_on});
  return absl::OkStatus();
}

absl::Status TreeReceiver::GoOn() {
  while (true) {
    if (incoming_.has_value()) {
      const absl::Status finished = incoming_->Finish();
      if (absl::IsDataLoss(finished))
        return absl::DataLossError(
            absl::StrCat(files_[missing_.front()].file.path, " was changed while it was copied; start again"));
      RETURN_IF_ERROR(finished);
      incoming_.reset();
      missing_.pop_front();
    }
    if (missing_.empty()) return Assemble();
    const TreeFile& next = files_[missing_.front()];
    ASSIGN_OR_RETURN(ContentStore::Incoming incoming, ContentStore::Incoming::Begin(store_, next.digest));
    incoming_.emplace(std::move(incoming));
    left_ = next.file.bytes;
    if (left_ > 0) return absl::OkStatus();
  }
}

absl::Status TreeReceiver::MakeFile(const TreeFile& file, const std::string& folder) const {
  const std::string path = absl::StrCat(folder, "/", file.file.path);
  if (file.file.empty_folder) return MakeCacheFolder(path);
  RETURN_IF_ERROR(MakeCacheFolder(std::filesystem::path(path).parent_path()));
  if (IsRegular(file.file)) {
    const absl::Status copied = CopyFileOnce(store_.PathOf(file.digest), path, file.file.executable);
    return absl::IsResourceExhausted(copied) ? CacheError(ENOSPC, absl::StrCat("cannot write ", path)) : copied;
  }
  if (symlink(file.file.link_to.c_str(), path.c_str()) == 0) return absl::OkStatus();
  return CacheError(errno, absl::StrCat("cannot make ", path));
}

// In a new folder, so that nothing which is there already, a link above all, is followed.
absl::Status TreeReceiver::Assemble() {
  const std::string folders = place_.works();
  RETURN_IF_ERROR(MakeCacheFolder(folders));
  RETURN_IF_ERROR(CheckOwnFolder(place_.cache));
  struct statvfs disk;
  const bool has_programs = std::any_of(
      files_.begin(), files_.end(), [](const TreeFile& file) { return IsRegular(file.file) && file.file.executable; });
  if (has_programs && statvfs(folders.c_str(), &disk) == 0 && (disk.f_flag & ST_NOEXEC) != 0)
    return absl::FailedPreconditionError(
        absl::StrCat("programs can't be executed in ", folders,
                     " (mounted noexec); set XDG_CACHE_HOME on that host to a folder where they can"));
  ASSIGN_OR_RETURN(const TemporaryFolder temporary, TemporaryFolder::Make(folders));
  const std::string made = absl::StrCat(temporary.path(), "/work");
  RETURN_IF_ERROR(MakeCacheFolder(made));
  for (const TreeFile& file : files_) RETURN_IF_ERROR(MakeFile(file, made));
  const std::string work = place_.work(assemble_->job);
  RETURN_IF_ERROR(RemoveFolder(work));
  if (rename(made.c_str(), work.c_str()) != 0) return CacheError(errno, absl::StrCat("cannot make ", work));
  done_ = true;
  Send(DoneMessage{.work = work});
  return absl::OkStatus();
}

}  // namespace muster
