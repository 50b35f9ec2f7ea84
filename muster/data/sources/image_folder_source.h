// Reads examples from folders of pictures, one per class: Dataset::FromImageFolders. Opening the first stream lists the
// folders and reads the first picture, whose size all must have; every other picture is read and decoded when it is
// drawn, so that memory doesn't limit the data. Thread-safe. Internal to muster/data.
#pragma once

#include <memory>
#include <string>
#include <utility>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/data/sources/file_sources.h"
#include "muster/data/sources/loaded_source.h"

namespace muster {

class ImageFolderSource final : public LoadedSource {
 public:
  // Borrows `system`.
  ImageFolderSource(std::string directory, ImageFolderOptions options, FileSystem& system)
      : directory_(std::move(directory)), options_(std::move(options)), system_(system) {}

  std::string Name() const override;
  [[nodiscard]] absl::Status Check() const override;

 private:
  // Errors: NotFound: no such directory, or a class without a folder; InvalidArgument: no class, or one without
  // pictures; those of DecodeImage for the first picture. The rows' errors: those of DecodeImage, and InvalidArgument,
  // naming a picture of another size.
  absl::StatusOr<std::shared_ptr<const RowReader>> Load() const override;

  // Constant after construction.
  const std::string directory_;
  const ImageFolderOptions options_;
  FileSystem& system_;
};

}  // namespace muster
