// A checkpoint seen as whole variables by name, whatever slices and files it was saved in: this is what makes restoring
// onto another number of parameter servers natural, as any range of elements can be asked for.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/tensor_file.h"

namespace muster {

// Constant after Open, so thread-safe. Blocks for as long as the disk does. `files` must outlive it.
class CheckpointReader {
 public:
  struct Options {
    bool verify_checksums = true;  // read every part whole while opening
  };

  // `path` is that of LatestCheckpoint ("dir/model.ckpt-100") or of a manifest file. NotFound: no manifest. DataLoss:
  // the manifest or a part is damaged, missing, or they contradict each other; names the file.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(FileSystem& files, const std::string& path,
                                                                const Options& options);
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(FileSystem& files, const std::string& path);

  const Manifest& manifest() const { return manifest_; }
  const std::string& path() const { return path_; }

  // A whole variable or slot; `into` has exactly its bytes. NotFound: no such variable or slot. InvalidArgument:
  // another size. DataLoss: the file can't be read.
  [[nodiscard]] absl::Status ReadVariable(std::string_view variable, MutableByteSpan into) const;
  [[nodiscard]] absl::Status ReadSlot(std::string_view variable, std::string_view slot, MutableByteSpan into) const;

  // Elements [first, first + count) of it. A slot must have stride 1.
  [[nodiscard]] absl::Status ReadVariableRange(std::string_view variable, int64_t first, int64_t count,
                                               MutableByteSpan into) const;
  [[nodiscard]] absl::Status ReadSlotRange(std::string_view variable, std::string_view slot, int64_t first,
                                           int64_t count, MutableByteSpan into) const;

  // Of a counter (an int64 slot of any stride): the largest value of those that cover elements [first, first + count).
  absl::StatusOr<int64_t> ReadCounter(std::string_view variable, std::string_view slot, int64_t first,
                                      int64_t count) const;

 private:
  CheckpointReader(std::string path, Manifest manifest);
  [[nodiscard]] absl::Status OpenParts(FileSystem& files, const Options& options);
  [[nodiscard]] absl::Status CheckSlice(const std::string& owner, const ManifestSlice& slice, DType dtype,
                                        int64_t stride) const;
  [[nodiscard]] absl::Status ReadSlices(const std::vector<ManifestSlice>& slices, DType dtype, int64_t first,
                                        int64_t count, MutableByteSpan into) const;
  [[nodiscard]] absl::Status ReadRows(const ManifestSlice& slice, int64_t size, int64_t row, int64_t end, int64_t first,
                                      MutableByteSpan into) const;

  const std::string path_;
  const Manifest manifest_;
  std::vector<std::unique_ptr<TensorFileReader>> parts_;
};

}  // namespace muster
