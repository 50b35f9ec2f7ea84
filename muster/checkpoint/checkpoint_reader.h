// Presents a checkpoint as whole variables by name, whatever slices and files hold them. Any range of elements can be
// read, which makes restoring onto another number of parameter servers natural.
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
#include "muster/checkpoint/safetensors_file.h"

namespace muster {

// Constant after Open, so thread-safe. Blocks as long as the disk does. `files` must outlive it.
class CheckpointReader {
 public:
  struct Options {
    bool verify_checksums = true;  // read every part whole while opening
  };

  // `path` is LatestCheckpoint's result ("dir/model.ckpt-100") or a manifest file. NotFound: no manifest. DataLoss
  // names the file: the manifest or a part is damaged or missing, or they contradict each other. A save that takes the
  // place of the one that is being opened is no damage: the new one is opened.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(FileSystem& files, const std::string& path,
                                                                const Options& options);
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(FileSystem& files, const std::string& path);

  const Manifest& manifest() const { return manifest_; }
  const std::string& path() const { return path_; }

  // Reads a whole variable or slot; `into` must have exactly its size. NotFound: no such variable or slot.
  // InvalidArgument: another size. DataLoss: the file can't be read.
  [[nodiscard]] absl::Status ReadVariable(std::string_view variable, MutableByteSpan into) const;
  [[nodiscard]] absl::Status ReadSlot(std::string_view variable, std::string_view slot, MutableByteSpan into) const;

  // Reads elements [first, first + count). A slot must have stride 1.
  [[nodiscard]] absl::Status ReadVariableRange(std::string_view variable, int64_t first, int64_t count,
                                               MutableByteSpan into) const;
  [[nodiscard]] absl::Status ReadSlotRange(std::string_view variable, std::string_view slot, int64_t first,
                                           int64_t count, MutableByteSpan into) const;

  // Returns the largest value of a counter (an int64 slot of any stride) over elements [first, first + count).
  absl::StatusOr<int64_t> ReadCounter(std::string_view variable, std::string_view slot, int64_t first,
                                      int64_t count) const;

 private:
  static constexpr int kMostTries = 10;

  // As Open, with the text of the manifest.
  static absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenAsIn(FileSystem& files, const std::string& name,
                                                                    const std::string& text, const Options& options);
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
