// Tells which of many folders have changed, by inotify(7). For a folder that doesn't exist yet, it watches the nearest
// existing one above it. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "muster/base/os/local_file_system.h"

namespace muster {

class LogWatch {
 public:
  using IsLocal = bool (*)(const std::string& folder);
  explicit LogWatch(IsLocal is_local = IsOnLocalFileSystem);
  ~LogWatch();
  LogWatch(const LogWatch&) = delete;
  LogWatch& operator=(const LogWatch&) = delete;

  // Readable when something has changed; -1: inotify isn't available.
  int fd() const { return fd_; }

  enum class Seen {
    kWatched,     // every later change is reported
    kNotThere,    // reported once when it, or a folder above it, appears: call Add again then
    kCannotWatch  // look now and then instead: as on a network file system, where other hosts write unnoticed
  };
  // `key` is what Changed returns for it. `files`: report also changes of its files, not only new entries.
  Seen Add(const std::string& folder, size_t key, bool files);

  // Returns the keys of what has changed since the last call, maybe with duplicates. False: too many changes; look at
  // everything.
  bool Changed(std::vector<size_t>& keys);

 private:
  int Watch(const std::string& folder, bool files);

  const IsLocal is_local_;
  const int fd_;
  // Keys by watch descriptor.
  absl::flat_hash_map<int, std::vector<size_t>> watched_;
  absl::flat_hash_map<int, std::vector<size_t>> awaited_;  // reported once
};

}  // namespace muster
