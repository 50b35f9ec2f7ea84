// A slow disk: every change first makes the calling simulated thread wait, so that a process can be killed or overtaken
// between any two changes. A dead process changes nothing. `inner` does the work.
#pragma once

#include <memory>
#include <string>

#include "muster/base/files/forwarding_file_system.h"
#include "muster/transport/simulated/simulated_process.h"

namespace muster {

class SlowDisk final : public ForwardingFileSystem {
 public:
  // A change takes up to `longest`. `world` and `inner` must outlive this.
  SlowDisk(SimulatedWorld& world, FileSystem& inner, absl::Duration longest)
      : ForwardingFileSystem(inner), world_(world), longest_(longest) {}

  absl::StatusOr<std::unique_ptr<WritableFile>> OpenForWriting(const std::string& path) override;
  absl::StatusOr<std::unique_ptr<WritableFile>> CreateFile(const std::string& path) override;
  absl::Status CreateDirectory(const std::string& path) override;
  absl::Status Rename(const std::string& from, const std::string& to) override;
  absl::Status Remove(const std::string& path) override;
  absl::Status RemoveTree(const std::string& path) override;
  absl::Status SyncDirectory(const std::string& path) override;

 private:
  class File;
  // Returns Aborted if the process is dead.
  [[nodiscard]] absl::Status Wait();

  SimulatedWorld& world_;
  const absl::Duration longest_;
  uint64_t changes_ = 0;
};

}  // namespace muster
