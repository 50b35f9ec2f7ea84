// A disk in memory for tests, which runs full, turns read-only, fails or stops at the n-th operation, and forgets at a
// power failure exactly what was not synced. Faults are scripted by count. Thread-safe.
#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "muster/base/files/file_system.h"
#include "muster/base/mutex.h"

namespace muster {

class MemoryFileSystem final : public FileSystem {
 public:
  // Faults. Each stays until it is set otherwise.

  // Room for `bytes` more; then Append is ResourceExhausted after taking what fits.
  void FillAfter(uint64_t bytes);
  void Unfill() { FillAfter(std::numeric_limits<uint64_t>::max()); }
  // Everything that would change the disk is PermissionDenied.
  void SetReadOnly(bool read_only);
  // The n-th rename from now (1 is the next) fails with Unavailable and does nothing.
  void FailRename(int n);
  // The same for WritableFile::Sync.
  void FailSync(int n);
  // After `operations` more changes every change is Aborted, as if the process had been killed there.
  void StopAfter(int64_t operations);
  // Lifts StopAfter and returns the number of changes made since the file system exists or was last asked.
  int64_t Resume();

  // What was not synced is gone: bytes after the last Sync, names and renames after the last SyncDirectory. Files still
  // open for writing are cut off. A disk may also have been ahead with some names: those that `survives` is true for
  // are as they were last.
  void LosePower(const std::function<bool(const std::string& path)>& survives = {});

  // Looks past all faults. `Corrupt` flips the bits of `mask` in one byte.
  [[nodiscard]] absl::Status Corrupt(const std::string& path, uint64_t offset, uint8_t mask);
  [[nodiscard]] absl::Status Truncate(const std::string& path, uint64_t bytes);
  [[nodiscard]] absl::Status WriteFile(const std::string& path, const std::string& content);

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  [[nodiscard]] absl::Status ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) override;
  absl::StatusOr<uint64_t> FileSize(const std::string& path) override;
  bool Exists(const std::string& path) override;
  [[nodiscard]] absl::Status CreateDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  [[nodiscard]] absl::Status Rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] absl::Status Remove(const std::string& path) override;
  [[nodiscard]] absl::Status RemoveTree(const std::string& path) override;
  [[nodiscard]] absl::Status SyncDirectory(const std::string& path) override;
  // Must outlive the lock.
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, const std::string& holder) override;

 private:
  friend class MemoryFileLock;
  friend class MemoryWritableFile;
  struct Node {
    std::string content;
    std::string durable;
    uint64_t writer = 0;  // who may still append; a later OpenForWriting or a power failure takes it away
  };
  using Nodes = std::map<std::string, std::shared_ptr<Node>>;

  // Counts a change about to be made and says whether a scripted fault forbids it.
  [[nodiscard]] absl::Status Change(const std::string& what, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Node>> Find(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  [[nodiscard]] absl::Status Append(const std::string& path, Node& node, uint64_t writer, ByteSpan bytes);
  [[nodiscard]] absl::Status Sync(const std::string& path, Node& node, uint64_t writer);

  Mutex mutex_;
  Nodes nodes_ ABSL_GUARDED_BY(mutex_);
  Nodes durable_ ABSL_GUARDED_BY(mutex_);  // names as they would be found after a power failure
  std::set<std::string> directories_ ABSL_GUARDED_BY(mutex_);
  std::set<std::string> locked_ ABSL_GUARDED_BY(mutex_);
  uint64_t room_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<uint64_t>::max();
  bool read_only_ ABSL_GUARDED_BY(mutex_) = false;
  int renames_until_failure_ ABSL_GUARDED_BY(mutex_) = 0;
  int syncs_until_failure_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t changes_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t changes_left_ ABSL_GUARDED_BY(mutex_) = std::numeric_limits<int64_t>::max();
  uint64_t next_writer_ ABSL_GUARDED_BY(mutex_) = 1;
};

}  // namespace muster
