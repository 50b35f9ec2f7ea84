#include "muster/sim/slow_disk.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster {

class SlowDisk::File final : public WritableFile {
 public:
  File(SlowDisk& disk, std::unique_ptr<WritableFile> inner) : disk_(disk), inner_(std::move(inner)) {}
  absl::Status Append(ByteSpan bytes) override { return Then(inner_->Append(bytes)); }
  absl::Status Flush() override { return inner_->Flush(); }
  absl::Status Sync() override { return Then(inner_->Sync()); }
  absl::Status Close() override { return inner_->Close(); }

 private:
  absl::Status Then(absl::Status done) {
    RETURN_IF_ERROR(disk_.Wait());
    return done;
  }
  SlowDisk& disk_;
  const std::unique_ptr<WritableFile> inner_;
};

absl::Status SlowDisk::Wait() {
  SimulatedThread* thread = world_.current();
  if (thread == nullptr) return absl::OkStatus();
  if (!thread->process().alive()) return absl::AbortedError("the process is dead");
  const uint64_t drawn = HashNumbers(world_.seed(), thread->process().number(), ++changes_);
  thread->Compute(longest_ * (static_cast<double>(drawn >> 40) / static_cast<double>(1 << 24)));
  return absl::OkStatus();
}

absl::StatusOr<std::unique_ptr<WritableFile>> SlowDisk::OpenForWriting(const std::string& path) {
  RETURN_IF_ERROR(Wait());
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, inner_.OpenForWriting(path));
  return std::make_unique<File>(*this, std::move(file));
}

absl::StatusOr<std::unique_ptr<WritableFile>> SlowDisk::CreateFile(const std::string& path) {
  RETURN_IF_ERROR(Wait());
  ASSIGN_OR_RETURN(std::unique_ptr<WritableFile> file, inner_.CreateFile(path));
  return std::make_unique<File>(*this, std::move(file));
}

absl::Status SlowDisk::CreateDirectory(const std::string& path) {
  RETURN_IF_ERROR(Wait());
  return inner_.CreateDirectory(path);
}

absl::Status SlowDisk::Rename(const std::string& from, const std::string& to) {
  RETURN_IF_ERROR(Wait());
  return inner_.Rename(from, to);
}

absl::Status SlowDisk::Remove(const std::string& path) {
  RETURN_IF_ERROR(Wait());
  return inner_.Remove(path);
}

absl::Status SlowDisk::RemoveTree(const std::string& path) {
  RETURN_IF_ERROR(Wait());
  return inner_.RemoveTree(path);
}

absl::Status SlowDisk::SyncDirectory(const std::string& path) {
  RETURN_IF_ERROR(Wait());
  return inner_.SyncDirectory(path);
}

}  // namespace muster
