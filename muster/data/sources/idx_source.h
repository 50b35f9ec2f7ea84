// Reads examples from a pair of IDX files (MNIST's format): Dataset::FromIdx. Both are read into memory when the first
// stream is opened, and all streams share them: all of MNIST takes 47 MB, and rows are needed in any order.
// Thread-safe. Internal to muster/data.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/data/sources/loaded_source.h"

namespace muster {

class IdxSource final : public LoadedSource {
 public:
  // Borrows `system`.
  IdxSource(std::string images, std::string labels, FileSystem& system)
      : images_(std::move(images)), labels_(std::move(labels)), system_(system) {}

  std::string Name() const override;

 private:
  // Errors: those of ReadIdx; InvalidArgument, naming both files: labels that aren't one number each, or not as many as
  // images.
  absl::StatusOr<std::shared_ptr<const RowReader>> Load() const override;

  // Constant after construction.
  const std::string images_;
  const std::string labels_;
  FileSystem& system_;
};

}  // namespace muster
