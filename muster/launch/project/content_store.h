// Files by the SHA-256 of their contents, in a folder of this user alone: HH/HASH, where HH begins HASH. They are kept
// between runs, so that only what has changed is sent to a host. Hosts that share the folder may write at once: each
// writes a file of its own and renames it, so a reader sees whole contents or none. Blocking; not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/project/sha256.h"

namespace muster {

class ContentStore {
 public:
  // `folder` and its parents are made when something is added.
  explicit ContentStore(std::string folder) : folder_(std::move(folder)) {}

  // Contents that arrive in pieces. What isn't finished leaves nothing but what a killed process leaves: a file
  // ".tmp-…", which Sweep removes.
  class Incoming {
   public:
    static absl::StatusOr<Incoming> Begin(const ContentStore& store, const std::string& digest);
    // The same for a file of any name, which takes the place of what is there, in a folder that is there.
    static absl::StatusOr<Incoming> BeginAt(std::string path, const std::string& digest, bool executable);
    ~Incoming();
    Incoming(Incoming&& other) noexcept;
    Incoming& operator=(Incoming&&) = delete;

    [[nodiscard]] absl::Status Add(std::string_view bytes);
    // Makes them visible. DataLoss: they have another hash.
    [[nodiscard]] absl::Status Finish();

   private:
    static absl::StatusOr<Incoming> BeginWith(std::string path, const std::string& digest, mode_t mode, bool cached);
    Incoming(int fd, std::string written, std::string path, std::string digest, bool cached);
    absl::Status Failed(int error, const std::string& what) const;

    int fd_;                      // -1: finished or moved from
    std::string written_, path_;  // the temporary file and its place
    std::string digest_;
    bool cached_;  // belongs to a ContentStore
    std::unique_ptr<Sha256> sha_;
  };

  // Returns whether contents of this digest (32 bytes) are there, read anew: a file that a loss of power has emptied
  // counts as missing. Found ones count as used now.
  bool Has(const std::string& digest) const;
  std::string PathOf(const std::string& digest) const;
  // Removes what was last used before `before`, and what a killed process has left before `left_before`.
  void Sweep(absl::Time before, absl::Time left_before) const;

 private:
  std::string folder_;
};

// Makes the folder and its parents, for this user alone. An error says what to do.
[[nodiscard]] absl::Status MakeCacheFolder(const std::string& path);
// FailedPrecondition if others may write there, or it belongs to somebody else.
[[nodiscard]] absl::Status CheckOwnFolder(const std::string& path);
// Returns the error of `path`, with what to do about it.
absl::Status CacheError(int error, const std::string& what);

}  // namespace muster
