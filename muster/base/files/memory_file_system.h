// A disk in memory for tests. It runs full, turns read-only, fails or stops at the n-th operation, and loses exactly
// the unsynced data at a power failure. Faults are scripted by count. Thread-safe.
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
  // Faults. Each stays set until it is changed.

  // Leaves room for `bytes` more; after that Append takes what fits and returns ResourceExhausted.
  void FillAfter(uint64_t bytes);
  void Unfill() { FillAfter(std::numeric_limits<uint64_t>::max()); }
  // Refuses every change of the disk with PermissionDenied.
  void SetReadOnly(bool read_only);
  // The n-th rename from now (1 is the next) fails with Unavailable and does nothing.
  void FailRename(int n);
  // Does the same to the n-th WritableFile::Sync.
  void FailSync(int n);
  // Aborts every change after the next `operations` ones, as if the process had been killed there.
  void StopAfter(int64_t operations);
  // Lifts StopAfter, and returns the number of changes since the last call (or since construction).
  int64_t Resume();

  // Drops what was not synced: bytes after the last Sync, names and renames after the last SyncDirectory. Files still
  // open for writing are cut off from the disk. A real disk may have written some names early: those for which
  // `survives` returns true are kept as they were last.
  void LosePower(const std::function<bool(const std::string& path)>& survives = {});

  // These ignore all faults. `Corrupt` flips the bits of `mask` in one byte.
  [[nodiscard]] absl::Status Corrupt(const std::string& path, uint64_t offset, uint8_t mask);
  [[nodiscard]] absl::Status Truncate(const std::string& path, uint64_t bytes);
  [[nodiscard]] absl::Status WriteFile(const std::string& path, const std::string& content);

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override;
  absl::StatusOr<std::string> ReadFile(const std::string& path) override;
  absl::StatusOr<std::string> ReadShortFile(const std::string& path, size_t limit) override;
  [[nodiscard]] absl::Status ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) override;
  absl::StatusOr<uint64_t> FileSize(const std::string& path) override;
  bool Exists(const std::string& path) override;
  [[nodiscard]] absl::Status CreateDirectory(const std::string& path) override;
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override;
  [[nodiscard]] absl::Status Rename(const std::string& from, const std::string& to) override;
  [[nodiscard]] absl::Status Remove(const std::string& path) override;
  [[nodiscard]] absl::Status RemoveTree(const std::string& path) override;
  [[nodiscard]] absl::Status SyncDirectory(const std::string& path) override;
  // The file system must outlive the lock.
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, const std::string& holder) override;

 private:
  friend class MemoryFileLock;
  friend class MemoryReadableFile;
  friend class MemoryWritableFile;
  struct Node {
    std::string content;
    std::string durable;
    uint64_t writer = 0;  // the writer that may still append; a later OpenForWriting or a power failure revokes it
  };
  using Nodes = std::map<std::string, std::shared_ptr<Node>>;

  // Counts a change that is about to be made; returns an error if a scripted fault forbids it.
  [[nodiscard]] absl::Status Change(const std::string& what, const std::string& path)
      ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  absl::StatusOr<std::shared_ptr<Node>> Find(const std::string& path) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // With `replace` the file is a new one, and who writes the old one goes on writing that.
  absl::StatusOr<std::unique_ptr<WritableFile>> Open(const std::string& path, bool replace);
  [[nodiscard]] static absl::Status Read(const std::string& path, const std::string& content, uint64_t offset,
                                         MutableByteSpan into);
  [[nodiscard]] absl::Status Append(const std::string& path, Node& node, uint64_t writer, ByteSpan bytes);
  [[nodiscard]] absl::Status Sync(const std::string& path, Node& node, uint64_t writer);

  Mutex mutex_;
  Nodes nodes_ ABSL_GUARDED_BY(mutex_);
  Nodes durable_ ABSL_GUARDED_BY(mutex_);  // the names that would remain after a power failure
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
