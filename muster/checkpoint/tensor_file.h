// One file of named tensors in the safetensors format, so that Python reads what we save and we read what Python saves:
// u64 little-endian header length, JSON header padded with spaces to 8 bytes, then the tensors' bytes without gaps.
// Reading is strict, as a header from the world may lie: every length is checked before anything is allocated.
// Byte layout: docs/checkpoint_format.md. Source: safetensors/src/tensor.rs of huggingface/safetensors.
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

// The number of elements of a tensor; InvalidArgument for a negative extent or a product over 2^59.
absl::StatusOr<int64_t> ElementCount(std::span<const int64_t> shape);

// What is known of a tensor before its bytes are.
struct TensorSpec {
  std::string name;
  DType dtype = DType::kFloat32;
  std::vector<int64_t> shape;  // [] is a scalar
};

// A tensor to be written; `bytes` is borrowed for the call, row-major, little-endian.
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
  uint64_t offset = 0;  // of the first byte, from the start of the file
  uint64_t bytes = 0;
};

// What a finished file is checked against later.
struct FileSummary {
  uint64_t bytes = 0;
  uint32_t crc32c = 0;  // of the whole file, header included
};

using TensorFileMetadata = std::map<std::string, std::string>;

// Writes tensors that arrive in pieces: the header is known first, then come the bytes of each tensor in order of
// tensors(). Not thread-safe. Writes to the path it is given, without a rename. `files` must outlive it.
class TensorFileWriter {
 public:
  // Writes the header. InvalidArgument: a name twice, empty or "__metadata__", a bad shape.
  static absl::StatusOr<std::unique_ptr<TensorFileWriter>> Create(FileSystem& files, const std::string& path,
                                                                  std::vector<TensorSpec> tensors,
                                                                  const TensorFileMetadata& metadata = {});

  // In the order in which the bytes are wanted: as safetensors writes them, largest alignment first, then by name.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }

  // The next bytes, in pieces of any size. OutOfRange when they are more than the header promises.
  [[nodiscard]] absl::Status Append(ByteSpan bytes);

  // fsync and close. FailedPrecondition when bytes are missing. Nothing may follow.
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

// All at once: header, bytes, fsync, close.
absl::StatusOr<FileSummary> WriteTensorFile(FileSystem& files, const std::string& path,
                                            std::span<const TensorView> tensors,
                                            const TensorFileMetadata& metadata = {});

// Constant after Open, so thread-safe. Holds the header only; the bytes are read when asked for. `files` must outlive
// it.
class TensorFileReader {
 public:
  // DataLoss, naming the file and what is wrong with it: truncated, a header that isn't safetensors, gaps or overlaps
  // between tensors, bytes after the last one. Unimplemented: an element type that muster doesn't have. NotFound: no
  // file.
  static absl::StatusOr<std::unique_ptr<TensorFileReader>> Open(FileSystem& files, const std::string& path);

  // In order of their place in the file.
  const std::vector<TensorInfo>& tensors() const { return tensors_; }
  const TensorFileMetadata& metadata() const { return metadata_; }
  const std::string& path() const { return path_; }
  uint64_t file_bytes() const { return file_bytes_; }

  // nullptr if there is none of this name. Valid as long as the reader.
  const TensorInfo* Find(std::string_view name) const;

  // A whole tensor; `into` has exactly its size. NotFound, InvalidArgument, DataLoss.
  [[nodiscard]] absl::Status Read(std::string_view name, MutableByteSpan into) const;

  // A part of a tensor, `first_byte` counted from its start.
  [[nodiscard]] absl::Status ReadRange(std::string_view name, uint64_t first_byte, MutableByteSpan into) const;

  // Reads the whole file; DataLoss if its checksum is another.
  [[nodiscard]] absl::Status Verify(uint32_t crc32c) const;

 private:
  TensorFileReader(FileSystem& files, std::string path, uint64_t file_bytes);
  [[nodiscard]] absl::Status ParseHeader(std::string_view header);
  [[nodiscard]] absl::Status CheckLayout(uint64_t data_start);

  FileSystem& files_;
  const std::string path_;
  const uint64_t file_bytes_;
  std::vector<TensorInfo> tensors_;
  TensorFileMetadata metadata_;
  absl::flat_hash_map<std::string, size_t> index_;
};

// "F32", "F64", "F16", "BF16", "I64", "I32", "U8", "BOOL".
std::string SafetensorsName(DType dtype);
absl::StatusOr<DType> ParseSafetensorsName(std::string_view name);

}  // namespace muster
