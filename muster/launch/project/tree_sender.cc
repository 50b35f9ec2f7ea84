#include "muster/launch/project/tree_sender.h"

#include <unistd.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/file_copy.h"
#include "muster/launch/project/tree_hash.h"
#include "muster/launch/system/random_hex.h"
#include "muster/transport/messages/codec.h"

namespace muster {
namespace {

constexpr size_t kFilesInFrame = size_t{32} << 10;  // bytes, roughly
constexpr size_t kNonceBytes = 16;

absl::Status Changed(const std::string& path) {
  return absl::DataLossError(absl::StrCat(path, " has been changed or can't be read"));
}

size_t SizeOf(const TreeFile& file) { return file.file.path.size() + file.file.link_to.size() + 64; }

}  // namespace

absl::StatusOr<DescribedTree> DescribeTree(const std::string& folder, const DescribeOptions& options) {
  ASSIGN_OR_RETURN(const ProjectFiles listed, ListProject(folder, options.left_out, options.which));
  DescribedTree tree{.folder = folder, .hash = "", .files = {}};
  TreeHash hash;
  for (const ProjectFile& file : listed.files) {
    TreeFile described{.file = file, .digest = DigestBesideFiles(file)};
    if (IsRegular(file)) {
      absl::StatusOr<FileContents> contents = HashFile(JoinPath(folder, file.path));
      if (!contents.ok() && options.unreadable) {
        options.unreadable(contents.status());
        continue;
      }
      RETURN_IF_ERROR(contents.status());
      described.file.bytes = contents->bytes;
      described.digest = std::move(contents->digest);
    }
    hash.Add(described.file, described.digest);
    tree.files.push_back(std::move(described));
    if (options.between) options.between();
  }
  tree.hash = hash.Finish();
  return tree;
}

absl::StatusOr<NonceFile> NonceFile::Make(const std::string& folder) { return Make(folder, RandomHex(kNonceBytes)); }

absl::StatusOr<NonceFile> NonceFile::Make(const std::string& folder, std::string nonce) {
  std::string path = absl::StrCat(folder, "/", kNoncePrefix, RandomHex(kNonceBytes));
  ASSIGN_OR_RETURN(const std::unique_ptr<WritableFile> file, PosixFileSystem().CreateFile(path));
  NonceFile made(std::move(path), std::move(nonce));
  RETURN_IF_ERROR(file->Append(AsBytes(made.nonce_.data(), made.nonce_.size())));
  RETURN_IF_ERROR(file->Close());
  return made;
}

NonceFile::~NonceFile() {
  if (!path_.empty()) unlink(path_.c_str());
}

TreeSender::TreeSender(TreeSenderOptions options, const DescribedTree& tree)
    : options_(std::move(options)), tree_(tree) {
  queue_.emplace_back(kTransferGreeting);
  Queue(SeeMessage{.paths = options_.see_paths, .nonce = options_.nonce});
}

template <typename Message>
void TreeSender::Queue(const Message& message) {
  queue_.push_back(TransferFrameOf(Message::kKind, Encode(message)));
}

std::string TreeSender::NextOfList() {
  FilesMessage files;
  for (size_t bytes = 0; *listed_ < tree_.files.size() && bytes < kFilesInFrame; ++*listed_) {
    files.files.push_back(tree_.files[*listed_]);
    bytes += SizeOf(files.files.back());
  }
  if (!files.files.empty()) return TransferFrameOf(FilesMessage::kKind, Encode(files));
  listed_.reset();
  const AssembleMessage assemble{.job = options_.job, .hash = tree_.hash};
  return TransferFrameOf(AssembleMessage::kKind, Encode(assemble));
}

absl::Status TreeSender::Take(std::string_view bytes) {
  return frames_.TakeAll(bytes, [this](const TransferFrame& frame) { return TakeFrame(frame); });
}

absl::Status TreeSender::TakeFrame(const TransferFrame& frame) {
  switch (frame.kind) {
    case TransferKind::kSeen: {
      SeenMessage seen;
      RETURN_IF_ERROR(Decode(frame.body, seen));
      if (std::exchange(asked_, true)) return absl::InvalidArgumentError("the host says twice what it sees");
      for (const uint32_t i : seen.seen) {
        if (i >= options_.see_paths.size()) return absl::InvalidArgumentError("the host sees what it wasn't asked for");
        seen_.insert(options_.see_paths[i]);
      }
      if (!options_.see_paths.empty() && seen_.contains(options_.see_paths.front()))
        FinishTree();
      else
        listed_ = 0;
      return absl::OkStatus();
    }
    case TransferKind::kMissing:
      return TakeMissing(frame);
    case TransferKind::kTaken: {
      TakenMessage taken;
      RETURN_IF_ERROR(Decode(frame.body, taken));
      if (taken.bytes < taken_ || taken.bytes > given_)
        return absl::InvalidArgumentError("the host has taken what wasn't sent");
      taken_ = taken.bytes;
      return absl::OkStatus();
    }
    case TransferKind::kDone: {
      DoneMessage message;
      RETURN_IF_ERROR(Decode(frame.body, message));
      // The host doesn't wait for contents without bytes.
      for (; !missing_.empty() && !file_.has_value() && tree_.files[missing_.front()].file.bytes == 0; ++files_sent_)
        missing_.pop_front();
      if (!told_missing_ || !missing_.empty() || !work_.empty() || message.work.empty() || message.work[0] != '/')
        return absl::InvalidArgumentError("the host is done before it can be");
      work_ = message.work;
      FinishTree();
      return absl::OkStatus();
    }
    case TransferKind::kOutput: {
      OutputMessage message;
      RETURN_IF_ERROR(Decode(frame.body, message));
      if (!wants_output_ || message.path.empty() || message.path[0] != '/')
        return absl::InvalidArgumentError("the host has made a folder that nobody has asked for");
      output_ = message.path;
      output_is_other_ = message.other;
      done_ = true;
      return absl::OkStatus();
    }
    case TransferKind::kFailed: {
      FailedMessage failed;
      RETURN_IF_ERROR(Decode(frame.body, failed));
      return absl::FailedPreconditionError(failed.why);
    }
    default:
      return absl::InvalidArgumentError("the host says what only a sender says");
  }
}

void TreeSender::FinishTree() {
  wants_output_ =
      !options_.output_name.empty() && (options_.see_paths.empty() || !seen_.contains(options_.see_paths.back()));
  if (wants_output_)
    return Queue(MakeOutputMessage{.name = options_.output_name,
                                   .before = options_.output_before,
                                   .next = options_.output_next,
                                   .anew = options_.output_anew});
  done_ = true;
}

absl::Status TreeSender::TakeMissing(const TransferFrame& frame) {
  MissingMessage missing;
  RETURN_IF_ERROR(Decode(frame.body, missing));
  if (!asked_ || told_missing_) return absl::InvalidArgumentError("the host lacks files of which it wasn't told");
  for (const uint32_t i : missing.files) {
    if (i >= tree_.files.size() || !IsRegular(tree_.files[i].file) || (!missing_.empty() && i <= missing_.back()))
      return absl::InvalidArgumentError("the host lacks a file that there isn't");
    missing_.push_back(i);
  }
  told_missing_ = missing.last;
  return absl::OkStatus();
}

absl::StatusOr<std::string> TreeSender::Next() {
  if (done_) return "";
  // The largest frame must have room: it may be all that can be sent.
  if (given_ - taken_ + kMaxTransferFrame > kTransferCredit) return "";
  std::string next;
  if (!queue_.empty()) {
    next = std::move(queue_.front());
    queue_.pop_front();
  } else if (listed_.has_value()) {
    next = NextOfList();
  } else if (told_missing_) {
    ASSIGN_OR_RETURN(next, NextContents());
  }
  given_ += next.size();
  return next;
}

absl::StatusOr<std::string> TreeSender::NextContents() {
  while (!missing_.empty()) {
    const TreeFile& file = tree_.files[missing_.front()];
    const std::string path = JoinPath(tree_.folder, file.file.path);
    if (!file_.has_value()) {
      absl::StatusOr<FileReader> opened = FileReader::Open(path);
      if (!opened.ok()) return Changed(path);
      file_.emplace(*std::move(opened));
      left_ = file.file.bytes;
      ++files_sent_;
    }
    std::string bytes(std::min<int64_t>(left_, kTransferPiece), '\0');
    if (!file_->Read(bytes.data(), bytes.size()).ok()) return Changed(path);
    left_ -= static_cast<int64_t>(bytes.size());
    bytes_sent_ += bytes.size();
    if (left_ == 0) {
      file_.reset();
      missing_.pop_front();
    }
    if (!bytes.empty()) return TransferFrameOf(TransferKind::kContents, Encode(ContentsMessage{.bytes = bytes}));
  }
  return "";
}

}  // namespace muster
