// A file system that forwards every call to another one. A test or a simulation derives from it and overrides only what
// matters to it. As thread-safe as the inner one.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "muster/base/files/file_system.h"

namespace muster {

class ForwardingFileSystem : public FileSystem {
 public:
  // `inner` must outlive it.
  explicit ForwardingFileSystem(FileSystem& inner) : inner_(inner) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override {
    return inner_.OpenForWriting(path);
  }
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override {
    return inner_.CreateFile(path);
  }
  absl::StatusOr<std::unique_ptr<ReadableFile>> OpenForReading(const std::string& path) override {
    return inner_.OpenForReading(path);
  }
  absl::StatusOr<std::string> ReadFile(const std::string& path) override { return inner_.ReadFile(path); }
  absl::StatusOr<std::string> ReadShortFile(const std::string& path, size_t limit) override {
    return inner_.ReadShortFile(path, limit);
  }
  absl::Status ReadAt(const std::string& path, uint64_t offset, MutableByteSpan into) override {
    return inner_.ReadAt(path, offset, into);
  }
  absl::StatusOr<uint64_t> FileSize(const std::string& path) override { return inner_.FileSize(path); }
  bool Exists(const std::string& path) override { return inner_.Exists(path); }
  absl::Status CreateDirectory(const std::string& path) override { return inner_.CreateDirectory(path); }
  absl::StatusOr<std::vector<std::string>> ListDirectory(const std::string& path) override {
    return inner_.ListDirectory(path);
  }
  absl::Status Rename(const std::string& from, const std::string& to) override { return inner_.Rename(from, to); }
  absl::Status Remove(const std::string& path) override { return inner_.Remove(path); }
  absl::Status RemoveTree(const std::string& path) override { return inner_.RemoveTree(path); }
  absl::Status SyncDirectory(const std::string& path) override { return inner_.SyncDirectory(path); }
  absl::StatusOr<std::unique_ptr<FileLock>> Lock(const std::string& path, const std::string& holder) override {
    return inner_.Lock(path, holder);
  }

 protected:
  FileSystem& inner_;
};

}  // namespace muster
