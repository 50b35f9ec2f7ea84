// Tells which of many folders have changed, by inotify(7), folders that aren't there yet included: of those the nearest
// one above that is there is watched. Not thread-safe.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "absl/container/flat_hash_map.h"

namespace muster {

class LogWatch {
 public:
  LogWatch();
  ~LogWatch();
  LogWatch(const LogWatch&) = delete;
  LogWatch& operator=(const LogWatch&) = delete;

  // Readable when something has changed; -1: there is no inotify.
  int fd() const { return fd_; }

  enum class Seen {
    kWatched,     // every later change will be told
    kNotThere,    // its coming, or that of a folder above it, will be told once: Add again then
    kCannotWatch  // look now and then
  };
  // `key` is what Changed calls it. `files`: changes of the files in it are told too, not only what comes into it.
  Seen Add(const std::string& folder, size_t key, bool files);

  // The keys of what has changed since the last call, some maybe more than once. False: too much has to be told; look
  // at everything.
  bool Changed(std::vector<size_t>& keys);

 private:
  int Watch(const std::string& folder, bool files);

  const int fd_;
  // By watch descriptor.
  absl::flat_hash_map<int, std::vector<size_t>> watched_;
  absl::flat_hash_map<int, std::vector<size_t>> awaited_;  // told once
};

}  // namespace muster
