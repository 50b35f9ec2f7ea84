#include "muster/base/files/memory_file_system.h"

#include <algorithm>
#include <filesystem>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// Normalises a path: "a//b/./c/" and "a/b/c" are the same file.
std::string Normal(const std::string& path) {
  std::string normal = std::filesystem::path(path).lexically_normal().string();
  if (normal.size() > 1 && normal.back() == '/') normal.pop_back();
  return normal;
}

std::string Parent(const std::string& path) {
  const std::string parent = std::filesystem::path(path).parent_path().string();
  return parent.empty() ? "." : parent;
}

bool IsBelow(const std::string& path, const std::string& directory) {
  return directory == "." || absl::StartsWith(path, directory == "/" ? "/" : directory + "/");
}

absl::Status Missing(const std::string& path) {
  return absl::NotFoundError(absl::StrCat(path, ": no such file or directory"));
}

// Counts down to the scripted failure; returns true when it is due.
bool IsTheOne(int& until_failure) { return until_failure > 0 && --until_failure == 0; }

}  // namespace

class MemoryWritableFile final : public WritableFile {
 public:
  MemoryWritableFile(MemoryFileSystem& files, std::string path, std::shared_ptr<MemoryFileSystem::Node> node,
                     uint64_t writer)
      : files_(files), path_(std::move(path)), node_(std::move(node)), writer_(writer) {}

  absl::Status Append(ByteSpan bytes) override {
    if (node_ == nullptr) return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
    return files_.Append(path_, *node_, writer_, bytes);
  }
  absl::Status Flush() override { return Append({}); }
  absl::Status Sync() override {
    if (node_ == nullptr) return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
    return files_.Sync(path_, *node_, writer_);
  }
  absl::Status Close() override {
    if (node_ == nullptr) return absl::FailedPreconditionError(absl::StrCat(path_, " is closed"));
    node_ = nullptr;
    return absl::OkStatus();
  }

 private:
  MemoryFileSystem& files_;
  const std::string path_;
  std::shared_ptr<MemoryFileSystem::Node> node_;  // null once closed
  const uint64_t writer_;
};

class MemoryReadableFile final : public ReadableFile {
 public:
  MemoryReadableFile(MemoryFileSystem& files, std::string path, std::shared_ptr<MemoryFileSystem::Node> node)
      : files_(files), path_(std::move(path)), node_(std::move(node)) {}

  absl::Status ReadAt(uint64_t offset, MutableByteSpan into) const override {
    MutexLock lock(files_.mutex_);
    return MemoryFileSystem::Read(path_, node_->content, offset, into);
  }
  absl::StatusOr<uint64_t> Size() const override {
    MutexLock lock(files_.mutex_);
    return node_->content.size();
  }

 private:
  MemoryFileSystem& files_;
  const std::string path_;
  const std::shared_ptr<MemoryFileSystem::Node> node_;
};

class MemoryFileLock final : public FileLock {
 public:
  MemoryFileLock(MemoryFileSystem& files, std::string path) : files_(files), path_(std::move(path)) {}
  ~MemoryFileLock() override {
    MutexLock lock(files_.mutex_);
    files_.locked_.erase(path_);
  }
  MemoryFileLock(const MemoryFileLock&) = delete;
  MemoryFileLock& operator=(const MemoryFileLock&) = delete;

 private:
  MemoryFileSystem& files_;
  const std::string path_;
};

void MemoryFileSystem::FillAfter(uint64_t bytes) {
  MutexLock lock(mutex_);
  room_ = bytes;
}

void MemoryFileSystem::SetReadOnly(bool read_only) {
  MutexLock lock(mutex_);
  read_only_ = read_only;
}

void MemoryFileSystem::FailRename(int n) {
  MutexLock lock(mutex_);
  renames_until_failure_ = n;
}

void MemoryFileSystem::FailSync(int n) {
  MutexLock lock(mutex_);
  syncs_until_failure_ = n;
}

void MemoryFileSystem::StopAfter(int64_t operations) {
  MutexLock lock(mutex_);
  changes_left_ = operations;
}

int64_t MemoryFileSystem::Resume() {
  MutexLock lock(mutex_);
  changes_left_ = std::numeric_limits<int64_t>::max();
  return std::exchange(changes_, 0);
}

void MemoryFileSystem::LosePower(const std::function<bool(const std::string&)>& survives) {
  MutexLock lock(mutex_);
  Nodes found;
  const auto take = [&](const Nodes& from, bool surviving) {
    for (const auto& entry : from)
      if ((survives && survives(entry.first)) == surviving) found.insert(entry);
  };
  take(nodes_, true);
  take(durable_, false);
  nodes_ = std::move(found);
  durable_ = nodes_;
  for (auto& [path, node] : nodes_) {
    node->content = node->durable;
    node->writer = 0;
  }
}

absl::Status MemoryFileSystem::Change(const std::string& what, const std::string& path) {
  if (changes_left_ == 0)
    return absl::AbortedError(absl::StrCat("cannot ", what, " ", path, ": stopped by the script"));
  if (read_only_)
    return absl::PermissionDeniedError(absl::StrCat("cannot ", what, " ", path, ": read-only file system"));
  --changes_left_;
  ++changes_;
  return absl::OkStatus();
}

absl::StatusOr<std::shared_ptr<MemoryFileSystem::Node>> MemoryFileSystem::Find(const std::string& path) {
  const auto found = nodes_.find(Normal(path));
  if (found == nodes_.end()) return Missing(path);
  return found->second;
}

absl::Status MemoryFileSystem::Corrupt(const std::string& path, uint64_t offset, uint8_t mask) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(path));
  if (offset >= node->content.size()) return absl::OutOfRangeError(absl::StrCat(path, " has no byte ", offset));
  node->content[offset] = static_cast<char>(node->content[offset] ^ mask);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Truncate(const std::string& path, uint64_t bytes) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(path));
  node->content.resize(bytes);
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::WriteFile(const std::string& path, const std::string& content) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  auto node = std::make_shared<Node>(Node{.content = content, .durable = content});
  nodes_[normal] = node;
  durable_[normal] = node;
  for (std::string parent = Parent(normal); directories_.insert(parent).second;) parent = Parent(parent);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::OpenForWriting(const std::string& path) {
  return Open(path, /*replace=*/false);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::CreateFile(const std::string& path) {
  return Open(path, /*replace=*/true);
}

absl::StatusOr<std::unique_ptr<WritableFile>> MemoryFileSystem::Open(const std::string& path, bool replace) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  const std::string parent = Parent(normal);
  if (parent != "." && parent != "/" && !directories_.contains(parent)) return Missing(path);
  if (replace && nodes_.contains(normal)) {
    RETURN_IF_ERROR(Change("replace", path));
    nodes_.erase(normal);
  }
  RETURN_IF_ERROR(Change("write", path));
  std::shared_ptr<Node>& node = nodes_[normal];
  if (node == nullptr) node = std::make_shared<Node>();
  node->content.clear();
  node->writer = next_writer_++;
  return std::make_unique<MemoryWritableFile>(*this, path, node, node->writer);
}

absl::Status MemoryFileSystem::Append(const std::string& path, Node& node, uint64_t writer, ByteSpan bytes) {
  MutexLock lock(mutex_);
  if (node.writer != writer) return absl::AbortedError(absl::StrCat(path, " was taken from its writer"));
  if (bytes.empty()) return absl::OkStatus();
  RETURN_IF_ERROR(Change("write", path));
  const size_t fits = std::min<uint64_t>(room_, bytes.size());
  node.content.append(reinterpret_cast<const char*>(bytes.data()), fits);
  room_ -= room_ == std::numeric_limits<uint64_t>::max() ? 0 : fits;
  if (fits == bytes.size()) return absl::OkStatus();
  return absl::ResourceExhaustedError(absl::StrCat("cannot write ", path, ": no space left on device"));
}

absl::Status MemoryFileSystem::Sync(const std::string& path, Node& node, uint64_t writer) {
  MutexLock lock(mutex_);
  if (node.writer != writer) return absl::AbortedError(absl::StrCat(path, " was taken from its writer"));
  RETURN_IF_ERROR(Change("sync", path));
  if (IsTheOne(syncs_until_failure_)) return absl::UnavailableError(absl::StrCat("cannot sync ", path, ": script"));
  node.durable = node.content;
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<ReadableFile>> MemoryFileSystem::OpenForReading(const std::string& path) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(path));
  return std::make_unique<MemoryReadableFile>(*this, path, node);
}

absl::StatusOr<std::string> MemoryFileSystem::ReadFile(const std::string& path) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(path));
  return node->content;
}

absl::StatusOr<std::string> MemoryFileSystem::ReadShortFile(const std::string& path, size_t limit) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(path));
  if (node->content.size() > limit)
    return absl::FailedPreconditionError(absl::StrCat(path, " has more than ", limit, " bytes"));
  return node->content;
}

absl::Status MemoryFileSystem::ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(path));
  return Read(path, node->content, offset, into);
}

absl::Status MemoryFileSystem::Read(const std::string& path, const std::string& content, uint64_t offset,
                                    MutableByteSpan into) {
  const uint64_t size = content.size();
  if (offset > size || into.size() > size - offset)
    return absl::DataLossError(absl::StrCat(path, " is too short: ends at byte ", size));
  const auto* data = reinterpret_cast<const std::byte*>(content.data());
  std::copy(data + offset, data + offset + into.size(), into.begin());
  return absl::OkStatus();
}

absl::StatusOr<uint64_t> MemoryFileSystem::FileSize(const std::string& path) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(path));
  return node->content.size();
}

bool MemoryFileSystem::Exists(const std::string& path) {
  MutexLock lock(mutex_);
  return nodes_.contains(Normal(path)) || directories_.contains(Normal(path));
}

absl::Status MemoryFileSystem::CreateDirectory(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  if (directories_.contains(normal)) return absl::OkStatus();
  RETURN_IF_ERROR(Change("create directory", path));
  for (std::string directory = normal; directories_.insert(directory).second;) directory = Parent(directory);
  return absl::OkStatus();
}

absl::StatusOr<std::vector<std::string>> MemoryFileSystem::ListDirectory(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  if (!directories_.contains(normal)) return Missing(path);
  std::vector<std::string> names;
  const auto add = [&](const std::string& entry) {
    if (entry != normal && Parent(entry) == normal) names.push_back(std::filesystem::path(entry).filename().string());
  };
  for (const auto& [entry, node] : nodes_) add(entry);
  for (const std::string& entry : directories_) add(entry);
  std::sort(names.begin(), names.end());
  return names;
}

absl::Status MemoryFileSystem::Rename(const std::string& from, const std::string& to) {
  MutexLock lock(mutex_);
  ASSIGN_OR_RETURN(const auto node, Find(from));
  RETURN_IF_ERROR(Change("rename", from));
  if (IsTheOne(renames_until_failure_))
    return absl::UnavailableError(absl::StrCat("cannot rename ", from, " to ", to, ": script"));
  nodes_.erase(Normal(from));
  nodes_[Normal(to)] = node;
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::Remove(const std::string& path) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(Find(path).status());
  RETURN_IF_ERROR(Change("remove", path));
  nodes_.erase(Normal(path));
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::RemoveTree(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  RETURN_IF_ERROR(Change("remove", path));
  std::erase_if(nodes_, [&](const auto& entry) { return entry.first == normal || IsBelow(entry.first, normal); });
  std::erase_if(directories_, [&](const std::string& entry) { return entry == normal || IsBelow(entry, normal); });
  return absl::OkStatus();
}

absl::Status MemoryFileSystem::SyncDirectory(const std::string& path) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  if (!directories_.contains(normal)) return Missing(path);
  RETURN_IF_ERROR(Change("sync directory", path));
  const auto is_here = [&](const auto& entry) { return Parent(entry.first) == normal; };
  std::erase_if(durable_, is_here);
  for (const auto& entry : nodes_)
    if (is_here(entry)) durable_.insert(entry);
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<FileLock>> MemoryFileSystem::Lock(const std::string& path, const std::string& holder) {
  MutexLock lock(mutex_);
  const std::string normal = Normal(path);
  const std::string parent = Parent(normal);
  if (parent != "." && parent != "/" && !directories_.contains(parent)) return Missing(path);
  if (locked_.contains(normal)) {
    const auto node = Find(path);  // the file may have been removed
    return absl::FailedPreconditionError(node.ok() ? (*node)->content : "somebody who left no name");
  }
  RETURN_IF_ERROR(Change("lock", path));
  std::shared_ptr<Node>& node = nodes_[normal];
  if (node == nullptr) node = std::make_shared<Node>();
  node->content = holder;
  locked_.insert(normal);
  return std::make_unique<MemoryFileLock>(*this, normal);
}

}  // namespace muster
