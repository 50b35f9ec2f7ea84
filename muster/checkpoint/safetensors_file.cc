#include "muster/checkpoint/safetensors_file.h"

#include <algorithm>
#include <array>
#include <bit>
#include <nlohmann/json.hpp>
#include <set>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/absl_view.h"
#include "muster/base/check.h"
#include "muster/base/crc32c.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/strict_json.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "tensors and lengths are written as they lie in memory");

using nlohmann::json;

constexpr uint64_t kLengthBytes = 8;
constexpr uint64_t kMaxHeaderBytes = 100'000'000;  // safetensors' own limit
constexpr int64_t kMaxElements = int64_t{1} << 59;
constexpr size_t kVerifyBlock = 1 << 20;
constexpr char kMetadataKey[] = "__metadata__";

struct TypeName {
  DType dtype;
  const char* name;
};

// In the order in which safetensors lays out tensors.
constexpr std::array<TypeName, 8> kTypes = {{{DType::kInt64, "I64"},
                                             {DType::kFloat64, "F64"},
                                             {DType::kFloat32, "F32"},
                                             {DType::kInt32, "I32"},
                                             {DType::kBFloat16, "BF16"},
                                             {DType::kFloat16, "F16"},
                                             {DType::kUInt8, "U8"},
                                             {DType::kBool, "BOOL"}}};

int Rank(DType dtype) {
  for (int i = 0; i < static_cast<int>(kTypes.size()); ++i)
    if (kTypes[i].dtype == dtype) return i;
  MUSTER_CHECK(false && "a DType that has no name in safetensors");
  return 0;
}

absl::Status Damaged(const std::string& path, absl::string_view what) {
  return absl::DataLossError(absl::StrCat(path, " is damaged: ", what));
}

// Sorts the tensors, gives each its place after the previous one (from 0), and checks names and shapes.
absl::StatusOr<std::vector<TensorInfo>> LayOut(const std::string& path, std::vector<TensorSpec> specs) {
  std::sort(specs.begin(), specs.end(), [](const TensorSpec& a, const TensorSpec& b) {
    return std::pair(Rank(a.dtype), std::string_view(a.name)) < std::pair(Rank(b.dtype), std::string_view(b.name));
  });
  std::set<std::string_view> names;
  std::vector<TensorInfo> tensors;
  uint64_t offset = 0;
  for (const TensorSpec& spec : specs) {
    if (spec.name.empty() || spec.name == kMetadataKey)
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", path, ": a tensor can't have the name '", spec.name, "'"));
    if (!names.insert(spec.name).second)
      return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": two tensors are called ", spec.name));
    const auto elements = ElementCount(spec.shape);
    if (!elements.ok())
      return absl::InvalidArgumentError(
          absl::StrCat("cannot write ", path, ": tensor ", spec.name, ": ", elements.status().message()));
    const uint64_t bytes = static_cast<uint64_t>(*elements) * DTypeSize(spec.dtype);
    tensors.push_back({.name = spec.name, .dtype = spec.dtype, .shape = spec.shape, .offset = offset, .bytes = bytes});
    if (offset + bytes < offset) return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": too large"));
    offset += bytes;
  }
  return tensors;
}

absl::StatusOr<std::string> Header(const std::vector<TensorInfo>& tensors, const TensorFileMetadata& metadata) {
  std::string header = "{";
  if (!metadata.empty()) {
    absl::StrAppend(&header, "\"", kMetadataKey, "\":{");
    for (const auto& [key, value] : metadata) {
      ASSIGN_OR_RETURN(const std::string quoted_key, QuoteJson(key));
      ASSIGN_OR_RETURN(const std::string quoted_value, QuoteJson(value));
      absl::StrAppend(&header, header.back() == '{' ? "" : ",", quoted_key, ":", quoted_value);
    }
    header += '}';
  }
  for (const TensorInfo& tensor : tensors) {
    ASSIGN_OR_RETURN(const std::string name, QuoteJson(tensor.name));
    absl::StrAppend(&header, header == "{" ? "" : ",", name, ":{\"dtype\":\"", SafetensorsName(tensor.dtype),
                    "\",\"shape\":[", absl::StrJoin(tensor.shape, ","), "],\"data_offsets\":[", tensor.offset, ",",
                    tensor.offset + tensor.bytes, "]}");
  }
  header += '}';
  header.resize((header.size() + 7) / 8 * 8, ' ');
  if (header.size() > kMaxHeaderBytes)
    return absl::InvalidArgumentError(absl::StrCat("header of ", header.size(), " bytes; at most ", kMaxHeaderBytes));
  return header;
}

// Parses one entry of the header; the offset is still relative to the data.
absl::StatusOr<TensorInfo> ParseTensor(const std::string& name, const json& entry) {
  const auto bad = [&](absl::string_view what) {
    return absl::InvalidArgumentError(absl::StrCat("tensor '", name, "': ", what));
  };
  if (!entry.is_object() || entry.size() != 3 || !entry.contains("dtype") || !entry.contains("shape") ||
      !entry.contains("data_offsets"))
    return bad("needs dtype, shape and data_offsets, nothing else");
  TensorInfo tensor = {.name = name};
  if (!entry["dtype"].is_string()) return bad("dtype isn't a string");
  ASSIGN_OR_RETURN(tensor.dtype, ParseSafetensorsName(entry["dtype"].get_ref<const std::string&>()));
  if (!entry["shape"].is_array()) return bad("shape isn't a list");
  for (const json& extent : entry["shape"]) {
    if (!extent.is_number_unsigned() || extent.get<uint64_t>() > static_cast<uint64_t>(kMaxElements))
      return bad(absl::StrCat("extent ", extent.dump(), " in its shape"));
    tensor.shape.push_back(extent.get<int64_t>());
  }
  const json& offsets = entry["data_offsets"];
  if (!offsets.is_array() || offsets.size() != 2 || !offsets[0].is_number_unsigned() ||
      !offsets[1].is_number_unsigned() || offsets[0].get<uint64_t>() > offsets[1].get<uint64_t>())
    return bad(absl::StrCat("data_offsets are ", offsets.dump(), ", wanted [begin, end]"));
  tensor.offset = offsets[0].get<uint64_t>();
  tensor.bytes = offsets[1].get<uint64_t>() - tensor.offset;
  const auto elements = ElementCount(tensor.shape);
  if (!elements.ok()) return bad(elements.status().message());
  if (static_cast<uint64_t>(*elements) * DTypeSize(tensor.dtype) != tensor.bytes)
    return bad(absl::StrCat("its shape [", absl::StrJoin(tensor.shape, ","), "] is not of ", tensor.bytes, " bytes"));
  return tensor;
}

}  // namespace

absl::StatusOr<int64_t> ElementCount(std::span<const int64_t> shape) {
  int64_t count = 1;
  for (int64_t extent : shape) {
    if (extent < 0) return absl::InvalidArgumentError(absl::StrCat("extent ", extent, " is negative"));
    if (extent > 0 && count > kMaxElements / extent)
      return absl::InvalidArgumentError(
          absl::StrCat("shape [", absl::StrJoin(shape, ","), "] has more than 2^59 elements"));
    count *= extent;
  }
  return count;
}

std::string SafetensorsName(DType dtype) { return kTypes[Rank(dtype)].name; }

absl::StatusOr<DType> ParseSafetensorsName(std::string_view name) {
  for (const TypeName& type : kTypes)
    if (name == type.name) return type.dtype;
  return absl::UnimplementedError(absl::StrCat(
      "element type '", AbslView(name), "'; muster knows ",
      absl::StrJoin(kTypes, ", ", [](std::string* out, const TypeName& type) { absl::StrAppend(out, type.name); })));
}

TensorFileWriter::TensorFileWriter(std::string path, std::vector<TensorInfo> tensors, uint64_t total_bytes)
    : path_(std::move(path)), tensors_(std::move(tensors)), total_bytes_(total_bytes) {}

absl::StatusOr<std::unique_ptr<TensorFileWriter>> TensorFileWriter::Create(FileSystem& files, const std::string& path,
                                                                           std::vector<TensorSpec> specs,
                                                                           const TensorFileMetadata& metadata) {
  ASSIGN_OR_RETURN(std::vector<TensorInfo> tensors, LayOut(path, std::move(specs)));
  const auto header = Header(tensors, metadata);
  if (!header.ok())
    return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": ", header.status().message()));
  const uint64_t data_start = kLengthBytes + header->size();
  uint64_t total_bytes = data_start;
  for (TensorInfo& tensor : tensors) {
    tensor.offset += data_start;
    total_bytes += tensor.bytes;
  }
  std::unique_ptr<TensorFileWriter> writer(new TensorFileWriter(path, std::move(tensors), total_bytes));
  ASSIGN_OR_RETURN(writer->file_, files.CreateFile(path));
  const uint64_t length = header->size();
  RETURN_IF_ERROR(writer->AppendChecksummed(AsBytes(&length, 1)));
  RETURN_IF_ERROR(writer->AppendChecksummed(AsBytes(header->data(), header->size())));
  return writer;
}

absl::Status TensorFileWriter::AppendChecksummed(ByteSpan bytes) {
  RETURN_IF_ERROR(file_->Append(bytes));
  written_.bytes += bytes.size();
  written_.crc32c = Crc32c(bytes, written_.crc32c);
  return absl::OkStatus();
}

absl::Status TensorFileWriter::Append(ByteSpan bytes) {
  if (bytes.size() > total_bytes_ - written_.bytes)
    return absl::OutOfRangeError(absl::StrCat(path_, ": ", bytes.size(), " bytes more, where the header promises ",
                                              total_bytes_ - written_.bytes));
  return AppendChecksummed(bytes);
}

absl::StatusOr<FileSummary> TensorFileWriter::Finish() {
  if (written_.bytes != total_bytes_)
    return absl::FailedPreconditionError(
        absl::StrCat(path_, ": ", total_bytes_ - written_.bytes, " bytes of its tensors haven't been written"));
  RETURN_IF_ERROR(file_->Sync());
  RETURN_IF_ERROR(file_->Close());
  return written_;
}

absl::StatusOr<FileSummary> WriteTensorFile(FileSystem& files, const std::string& path,
                                            std::span<const TensorView> tensors, const TensorFileMetadata& metadata) {
  std::vector<TensorSpec> specs;
  absl::flat_hash_map<std::string, ByteSpan> bytes;
  for (const TensorView& tensor : tensors) {
    specs.push_back({.name = tensor.name, .dtype = tensor.dtype, .shape = tensor.shape});
    bytes[tensor.name] = tensor.bytes;
  }
  for (const TensorView& tensor : tensors) {
    const auto elements = ElementCount(tensor.shape);
    if (elements.ok() && static_cast<uint64_t>(*elements) * DTypeSize(tensor.dtype) != tensor.bytes.size())
      return absl::InvalidArgumentError(absl::StrCat("cannot write ", path, ": tensor ", tensor.name, " has ",
                                                     tensor.bytes.size(), " bytes for shape [",
                                                     absl::StrJoin(tensor.shape, ","), "]"));
  }
  ASSIGN_OR_RETURN(auto writer, TensorFileWriter::Create(files, path, std::move(specs), metadata));
  for (const TensorInfo& tensor : writer->tensors()) RETURN_IF_ERROR(writer->Append(bytes[tensor.name]));
  return writer->Finish();
}

TensorFileReader::TensorFileReader(std::string path, std::unique_ptr<ReadableFile> file, uint64_t file_bytes)
    : path_(std::move(path)), file_(std::move(file)), file_bytes_(file_bytes) {}

absl::StatusOr<std::unique_ptr<TensorFileReader>> TensorFileReader::Open(FileSystem& files, const std::string& path) {
  ASSIGN_OR_RETURN(std::unique_ptr<ReadableFile> file, files.OpenForReading(path));
  ASSIGN_OR_RETURN(const uint64_t file_bytes, file->Size());
  std::unique_ptr<TensorFileReader> reader(new TensorFileReader(path, std::move(file), file_bytes));
  if (file_bytes < kLengthBytes) return Damaged(path, absl::StrCat("only ", file_bytes, " bytes"));
  uint64_t header_bytes = 0;
  RETURN_IF_ERROR(reader->file_->ReadAt(0, AsMutableBytes(&header_bytes, 1)));
  if (header_bytes > kMaxHeaderBytes || header_bytes > file_bytes - kLengthBytes)
    return Damaged(path, absl::StrCat("a header of ", header_bytes, " bytes in a file of ", file_bytes));
  std::string header(header_bytes, '\0');
  RETURN_IF_ERROR(reader->file_->ReadAt(kLengthBytes, AsMutableBytes(header.data(), header.size())));
  RETURN_IF_ERROR(reader->ParseHeader(header));
  RETURN_IF_ERROR(reader->CheckLayout(kLengthBytes + header_bytes));
  return reader;
}

absl::Status TensorFileReader::ParseHeader(std::string_view header) {
  if (header.empty() || header.front() != '{') return Damaged(path_, "its header doesn't begin with {");
  const auto parsed = ParseStrictJson(header, /*max_depth=*/3);
  if (!parsed.ok()) return Damaged(path_, absl::StrCat("its header: ", parsed.status().message()));
  for (const auto& [name, entry] : parsed->items()) {
    if (name == kMetadataKey) {
      if (!entry.is_object()) return Damaged(path_, "its __metadata__ isn't an object");
      for (const auto& [key, value] : entry.items()) {
        if (!value.is_string()) return Damaged(path_, absl::StrCat("its __metadata__ '", key, "' isn't a string"));
        metadata_[key] = value.get<std::string>();
      }
      continue;
    }
    auto tensor = ParseTensor(name, entry);
    if (absl::IsUnimplemented(tensor.status()))
      return absl::UnimplementedError(absl::StrCat(path_, ": tensor '", name, "': ", tensor.status().message()));
    if (!tensor.ok()) return Damaged(path_, tensor.status().message());
    tensors_.push_back(*std::move(tensor));
  }
  return absl::OkStatus();
}

absl::Status TensorFileReader::CheckLayout(uint64_t data_start) {
  std::sort(tensors_.begin(), tensors_.end(), [](const TensorInfo& a, const TensorInfo& b) {
    return std::pair(a.offset, a.bytes) < std::pair(b.offset, b.bytes);
  });
  uint64_t end = 0;
  for (size_t i = 0; i < tensors_.size(); ++i) {
    TensorInfo& tensor = tensors_[i];
    if (tensor.offset != end)
      return Damaged(path_, absl::StrCat("tensor '", tensor.name, "' begins at ", tensor.offset, " of the data, where ",
                                         end, " is next"));
    end += tensor.bytes;
    tensor.offset += data_start;
    index_[tensor.name] = i;
  }
  if (end != file_bytes_ - data_start)
    return Damaged(
        path_, absl::StrCat("its tensors have ", end, " bytes, the file has ", file_bytes_ - data_start, " for them"));
  return absl::OkStatus();
}

const TensorInfo* TensorFileReader::Find(std::string_view name) const {
  const auto found = index_.find(AbslView(name));
  return found == index_.end() ? nullptr : &tensors_[found->second];
}

absl::Status TensorFileReader::Read(std::string_view name, MutableByteSpan into) const {
  const TensorInfo* tensor = Find(name);
  if (tensor != nullptr && into.size() != tensor->bytes)
    return absl::InvalidArgumentError(absl::StrCat(path_, ": tensor '", tensor->name, "' has ", tensor->bytes,
                                                   " bytes, asked for were ", into.size()));
  return ReadRange(name, 0, into);
}

absl::Status TensorFileReader::ReadRange(std::string_view name, uint64_t first_byte, MutableByteSpan into) const {
  const TensorInfo* tensor = Find(name);
  if (tensor == nullptr) return absl::NotFoundError(absl::StrCat(path_, " has no tensor '", AbslView(name), "'"));
  if (first_byte > tensor->bytes || into.size() > tensor->bytes - first_byte)
    return absl::InvalidArgumentError(absl::StrCat(path_, ": tensor '", tensor->name, "' has ", tensor->bytes,
                                                   " bytes, asked for were ", into.size(), " from ", first_byte));
  return file_->ReadAt(tensor->offset + first_byte, into);
}

absl::Status TensorFileReader::Verify(uint32_t crc32c) const {
  std::vector<std::byte> block(std::min<uint64_t>(kVerifyBlock, file_bytes_));
  uint32_t found = 0;
  for (uint64_t offset = 0; offset < file_bytes_; offset += block.size()) {
    const MutableByteSpan piece(block.data(), std::min<uint64_t>(block.size(), file_bytes_ - offset));
    RETURN_IF_ERROR(file_->ReadAt(offset, piece));
    found = Crc32c(piece, found);
  }
  if (found == crc32c) return absl::OkStatus();
  return Damaged(path_, absl::StrCat("its checksum is ", found, ", wanted ", crc32c));
}

}  // namespace muster
