#include "muster/launch/project/folder_receiver.h"

#include <sys/stat.h>

#include <cerrno>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/file_copy.h"
#include "muster/launch/project/tree_hash.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

constexpr uint64_t kMostListed = uint64_t{256} << 20;  // bytes of the list of files
// What Work compares at a time, in bytes; a file counts with this much more, which opening it costs.
constexpr int64_t kComparedAtOnce = int64_t{32} << 20;
constexpr int64_t kSmallFile = int64_t{64} << 10;

// Makes the folders between `folder` and a file below it. A link in place of one isn't followed: it may lead anywhere.
absl::Status MakeFolders(const std::string& folder, const std::string& file) {
  for (size_t slash = file.find('/'); slash != std::string::npos; slash = file.find('/', slash + 1)) {
    const std::string path = JoinPath(folder, file.substr(0, slash));
    struct stat info;
    if (mkdir(path.c_str(), 0777) == 0) continue;
    if (errno != EEXIST) return absl::ErrnoToStatus(errno, absl::StrCat("cannot make ", path));
    if (lstat(path.c_str(), &info) != 0 || !S_ISDIR(info.st_mode))
      return absl::FailedPreconditionError(absl::StrCat(path, " is no folder here, but is one on the host"));
  }
  return absl::OkStatus();
}

}  // namespace

FolderReceiver::FolderReceiver(std::string folder) : folder_(std::move(folder)), output_(kTransferGreeting) {}

template <typename Message>
void FolderReceiver::Send(const Message& message) {
  output_ += TransferFrameOf(Message::kKind, Encode(message));
}

absl::Status FolderReceiver::Take(std::string_view bytes) {
  const absl::Status taken = frames_.TakeAll(bytes, [this](const TransferFrame& frame) { return TakeFrame(frame); });
  if (taken.ok()) output_ += frames_.Told();
  return Told(taken);
}

absl::Status FolderReceiver::Told(const absl::Status& status) {
  if (!status.ok()) Send(FailedMessage{.why = std::string(status.message().substr(0, 4096))});
  return status;
}

absl::Status FolderReceiver::Work() {
  for (int64_t bytes = 0; has_work() && bytes < kComparedAtOnce; ++compared_) {
    bytes += files_[compared_].file.bytes + kSmallFile;
    RETURN_IF_ERROR(Told(Compare(static_cast<uint32_t>(compared_))));
  }
  if (has_work()) return absl::OkStatus();
  output_ += MissingFrames(missing_);
  return Told(GoOn());
}

absl::Status FolderReceiver::Compare(uint32_t position) {
  const TreeFile& file = files_[position];
  if (!file.file.link_to.empty()) ++links_;
  if (file.file.empty_folder) return MakeFolders(folder_, file.file.path + "/");
  if (IsRegular(file.file) && !IsHere(file)) missing_.push_back(position);
  return absl::OkStatus();
}

absl::Status FolderReceiver::TakeFrame(const TransferFrame& frame) {
  if (done_) return absl::InvalidArgumentError("the host goes on after the end");
  switch (frame.kind) {
    case TransferKind::kSee:
      Send(SeenMessage());
      return absl::OkStatus();
    case TransferKind::kFiles: {
      FilesMessage files;
      RETURN_IF_ERROR(Decode(frame.body, files));
      listed_ += frame.body.size();
      if (listed_ > kMostListed) return absl::InvalidArgumentError("the host's list of files is too long");
      if (has_tree_ || files_.size() + files.files.size() > kMostTransferFiles)
        return absl::InvalidArgumentError("the host has too many files, or names them too late");
      for (TreeFile& file : files.files) files_.push_back(std::move(file));
      return absl::OkStatus();
    }
    case TransferKind::kAssemble: {
      AssembleMessage assemble;
      RETURN_IF_ERROR(Decode(frame.body, assemble));
      return TakeTree(assemble);
    }
    case TransferKind::kContents: {
      ContentsMessage contents;
      RETURN_IF_ERROR(Decode(frame.body, contents));
      return TakeContents(contents.bytes);
    }
    case TransferKind::kFailed: {
      FailedMessage failed;
      RETURN_IF_ERROR(Decode(frame.body, failed));
      return absl::FailedPreconditionError(failed.why);
    }
    default:
      return absl::InvalidArgumentError("the host says what only a receiver says");
  }
}

bool FolderReceiver::IsHere(const TreeFile& file) const {
  struct stat info;
  const std::string path = PathOf(file);
  if (lstat(path.c_str(), &info) != 0 || !S_ISREG(info.st_mode) || info.st_size != file.file.bytes) return false;
  const absl::StatusOr<FileContents> contents = HashFile(path);
  return contents.ok() && contents->digest == file.digest;
}

absl::Status FolderReceiver::TakeTree(const AssembleMessage& assemble) {
  if (has_tree_) return absl::InvalidArgumentError("the host sends a second folder");
  RETURN_IF_ERROR(CheckTreeFiles(files_));
  TreeHash hash;
  for (const TreeFile& file : files_) hash.Add(file.file, file.digest);
  if (hash.Finish() != assemble.hash) return absl::InvalidArgumentError("the folder has another hash than announced");
  has_tree_ = true;
  if (!files_.empty()) return absl::OkStatus();
  output_ += MissingFrames(missing_);
  return GoOn();
}

absl::Status FolderReceiver::TakeContents(std::string_view bytes) {
  if (bytes.empty() || !incoming_.has_value() || bytes.size() > static_cast<uint64_t>(left_))
    return absl::InvalidArgumentError("the host sends contents that nobody has asked for");
  RETURN_IF_ERROR(incoming_->Add(bytes));
  left_ -= static_cast<int64_t>(bytes.size());
  bytes_ += bytes.size();
  return left_ > 0 ? absl::OkStatus() : GoOn();
}

absl::Status FolderReceiver::GoOn() {
  while (true) {
    if (incoming_.has_value()) {
      RETURN_IF_ERROR(incoming_->Finish());
      incoming_.reset();
      missing_.pop_front();
      ++received_;
    }
    if (missing_.empty()) break;
    RETURN_IF_ERROR(Begin(files_[missing_.front()]));
    if (left_ > 0) return absl::OkStatus();
  }
  done_ = true;
  Send(DoneMessage{.work = folder_});
  return absl::OkStatus();
}

absl::Status FolderReceiver::Begin(const TreeFile& file) {
  RETURN_IF_ERROR(MakeFolders(folder_, file.file.path));
  ASSIGN_OR_RETURN(ContentStore::Incoming incoming,
                   ContentStore::Incoming::BeginAt(PathOf(file), file.digest, file.file.executable));
  incoming_.emplace(std::move(incoming));
  left_ = file.file.bytes;
  return absl::OkStatus();
}

}  // namespace muster
