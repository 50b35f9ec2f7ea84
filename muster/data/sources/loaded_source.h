// The base of IDX files and folders of images: a source that is loaded as a whole when its rows are first needed, and
// kept as long as the data set. Thread-safe: a thread that needs the rows while another loads them waits. Internal to
// muster/data.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/base/status_macros.h"
#include "muster/data/stages/dataset_stage.h"

namespace muster {

class LoadedSource : public DatasetStage {
 public:
  bool indexed() const final { return true; }

  absl::StatusOr<std::shared_ptr<const RowReader>> OpenReader() const final {
    MutexLock lock(mutex_);
    if (reader_ == nullptr) {
      ASSIGN_OR_RETURN(reader_, Load());
    }
    return reader_;
  }

  // Loads. Returns nullopt if that fails or the stage has a mistake; opening a stream then reports the error.
  std::optional<int64_t> size() const final {
    if (!Check().ok()) return std::nullopt;
    const auto reader = OpenReader();
    if (!reader.ok()) return std::nullopt;
    return static_cast<int64_t>((*reader)->rows());
  }

 private:
  virtual absl::StatusOr<std::shared_ptr<const RowReader>> Load() const = 0;

  mutable Mutex mutex_;
  mutable std::shared_ptr<const RowReader> reader_ ABSL_GUARDED_BY(mutex_);  // null before loading and after an error
};

}  // namespace muster
