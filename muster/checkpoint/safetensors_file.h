// A file of named tensors in the safetensors format, so that Python reads our files and we read Python's: u64
// little-endian header length, JSON header padded with spaces to 8 bytes, then the tensors' bytes without gaps. Reading
// is strict, because a header from outside may lie: every length is checked before anything is allocated. Byte layout:
// docs/checkpoint_format.md. Source: safetensors/src/tensor.rs of huggingface/safetensors.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/base/files/file_system.h"

namespace muster {

// Returns the number of elements of a tensor; InvalidArgument for a negative extent or a product over 2^59.
absl::StatusOr<int64_t> ElementCount(std::span<const int64_t> shape);

// A tensor whose bytes aren't known yet.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // [] is a scalar
};

// A tensor to write; `bytes` is borrowed for the call, row-major, little-endian.
struct TensorView {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  ByteSpan bytes;
};

// A tensor of a file.
struct TensorInfo {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;
  uint64_t offset = 0;  // of the first byte, from the beginning of the file
  uint64_t bytes = 0;
};

// Used to check a finished file later.
struct FileSummary {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of the whole file, including the header
};

using TensorFileMetadata = std::map<std::string, std::string>;

// Writes tensors that arrive in pieces: first the header, then the bytes of each tensor in order of tensors(). Not
// thread-safe. Writes directly to the given path, without a rename. `files` must outlive it.
class TensorFileWriter {
 public:
  // Writes the header. InvalidArgument: a duplicate or empty name, "__metadata__", a bad shape.
  static absl::StatusOr<std::unique_ptr<TensorFileWriter>> Create(FileSystem& files, const std::string& path,
                                                                  std::vector<TensorSpec> tensors,
                                                                  const TensorFileMetadata& metadata = {});

  // The tensors in the order in which Append expects their bytes: as safetensors does, largest alignment first, then by
  // name.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  // Writes the next bytes, in pieces of any size. OutOfRange if they exceed what the header promises.
  [[nodiscard]] absl::Status Append(ByteSpan bytes);

  // Syncs (fsync) and closes the file. FailedPrecondition if bytes are missing. No call may follow.
  absl::StatusOr<FileSummary> Finish();

 private:
  TensorFileWriter(std::string path, std::vector<TensorInfo> tensors, uint64_t total_bytes);
  [[nodiscard]] absl::Status AppendChecksummed(ByteSpan bytes);

  const std::string path_;
  const std::vector<TensorInfo> tensors_;
  const uint64_t total_bytes_;
  std::unique_ptr<WritableFile> file_;
  FileSummary written_;
};

// Writes everything at once: header, bytes, fsync, close.
absl::StatusOr<FileSummary> WriteTensorFile(FileSystem& files, const std::string& path,
                                            std::span<const TensorView> tensors,
                                            const TensorFileMetadata& metadata = {});

// Constant after Open, so thread-safe. Holds the header and a descriptor, and reads the bytes on request: what Verify
// has read and what Read reads is one file, even if another was renamed to its name in between. `files` must outlive
// it.
class TensorFileReader {
 public:
  // DataLoss names the file and the damage: truncated, a header that isn't safetensors, gaps or overlaps between
  // tensors, bytes after the last one. Unimplemented: an element type that muster doesn't have. NotFound: no file.
  static absl::StatusOr<std::unique_ptr<TensorFileReader>> Open(FileSystem& files, const std::string& path);

  // In order of their positions in the file.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorFileMetadata& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }
  uint64_t file_bytes() const { return file_bytes_; }

  // Returns nullptr if no tensor has this name. Valid as long as the reader.
  const TensorInfo* Find(std::string_view name) const;

  // Reads a whole tensor; `into` must have exactly its size. NotFound, InvalidArgument, DataLoss.
  [[nodiscard]] absl::Status Read(std::string_view name, MutableByteSpan into) const;

  // Reads a part of a tensor; `first_byte` is counted from the tensor's beginning.
  [[nodiscard]] absl::Status ReadRange(std::string_view name, uint64_t first_byte, MutableByteSpan into) const;

  // Reads the whole file; DataLoss if its checksum differs.
  [[nodiscard]] absl::Status Verify(uint32_t crc32c) const;

 private:
  TensorFileReader(std::string path, std::unique_ptr<ReadableFile> file, uint64_t file_bytes);
  [[nodiscard]] absl::Status ParseHeader(std::string_view header);
  [[nodiscard]] absl::Status CheckLayout(uint64_t data_start);

  const std::string path_;
  const std::unique_ptr<ReadableFile> file_;
  const uint64_t file_bytes_;
  std::vector<TensorInfo> tensors_;
  TensorFileMetadata metadata_;
  absl::flat_hash_map<std::string, size_t> index_;
};

// Returns "F32", "F64", "F16", "BF16", "I64", "I32", "U8" or "BOOL".
std::string SafetensorsName(DType dtype);
absl::StatusOr<DType> ParseSafetensorsName(std::string_view name);

}  // namespace muster
