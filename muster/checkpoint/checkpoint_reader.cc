#include "muster/checkpoint/checkpoint_reader.h"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <limits>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/strip.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_directory.h"

namespace muster {
namespace {

// The manifest is valid, so this can't fail.
int64_t Elements(const std::vector<int64_t>& shape) { return *ElementCount(shape); }

int64_t RowElements(const ManifestSlice& slice) { return Elements({slice.shape.begin() + 1, slice.shape.end()}); }

// The part of elements [first, first + count) of a variable that lies in a slice.
struct Overlap {
  int64_t first = 0;
  int64_t end = 0;
  bool empty() const { return first >= end; }
};

// Counts in elements of the variable if the slice is contiguous, else in rows of the slice.
Overlap OverlapOf(const ManifestSlice& slice, int64_t first, int64_t count) {
  if (slice.row_step != 1) {
    const int64_t width = RowElements(slice);
    const auto rows_before = [&](int64_t row) {
      const int64_t behind = row - slice.offset / width;
      return std::clamp<int64_t>((behind + slice.row_step - 1) / slice.row_step, 0, slice.shape[0]);
    };
    return {.first = rows_before(first / width), .end = rows_before((first + count + width - 1) / width)};
  }
  return {.first = std::max(first, slice.offset), .end = std::min(first + count, slice.offset + Elements(slice.shape))};
}

struct Found {
  const ManifestVariable* variable = nullptr;
  const ManifestSlot* slot = nullptr;
};

absl::StatusOr<const ManifestVariable*> FindVariable(const Manifest& manifest, const std::string& path,
                                                     std::string_view name) {
  const ManifestVariable* variable = manifest.Find(name);
  if (variable == nullptr) return absl::NotFoundError(absl::StrCat(path, " has no variable '", AbslView(name), "'"));
  return variable;
}

absl::StatusOr<Found> FindSlot(const Manifest& manifest, const std::string& path, std::string_view variable,
                               std::string_view slot) {
  Found found;
  ASSIGN_OR_RETURN(found.variable, FindVariable(manifest, path, variable));
  found.slot = found.variable->FindSlot(slot);
  if (found.slot == nullptr)
    return absl::NotFoundError(
        absl::StrCat(path, ": variable '", found.variable->name, "' has no slot '", AbslView(slot), "'"));
  return found;
}

absl::Status CheckRange(const std::string& path, const ManifestVariable& variable, int64_t first, int64_t count) {
  const int64_t elements = Elements(variable.shape);
  if (first >= 0 && count >= 0 && first <= elements && count <= elements - first) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(path, ": variable '", variable.name, "' has ", elements,
                                                 " elements, asked for were ", count, " from ", first));
}

}  // namespace

CheckpointReader::CheckpointReader(std::string path, Manifest manifest)
    : path_(std::move(path)), manifest_(std::move(manifest)) {}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(FileSystem& files, const std::string& path) {
  return Open(files, path, Options());
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::Open(FileSystem& files, const std::string& path,
                                                                         const Options& options) {
  const std::string name = std::string(absl::StripSuffix(path, kManifestSuffix));
  const std::string manifest_path = absl::StrCat(name, kManifestSuffix);
  ASSIGN_OR_RETURN(std::string text, files.ReadFile(manifest_path));
  for (int tries = 1;; ++tries) {
    auto reader = OpenAsIn(files, name, text, options);
    if (reader.ok() || tries == kMostTries) return reader;
    // Another save of the step may have been committed meanwhile, and the parts of the first removed.
    ASSIGN_OR_RETURN(std::string now, files.ReadFile(manifest_path));
    if (now == text) return reader;
    text = std::move(now);
  }
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> CheckpointReader::OpenAsIn(FileSystem& files, const std::string& name,
                                                                             const std::string& text,
                                                                             const Options& options) {
  ASSIGN_OR_RETURN(Manifest manifest, ParseManifest(text, absl::StrCat(name, kManifestSuffix)));
  std::unique_ptr<CheckpointReader> reader(new CheckpointReader(name, std::move(manifest)));
  RETURN_IF_ERROR(reader->OpenParts(files, options));
  for (const ManifestVariable& variable : reader->manifest_.variables) {
    const std::string owner = absl::StrCat("variable '", variable.name, "'");
    for (const ManifestSlice& slice : variable.slices)
      RETURN_IF_ERROR(reader->CheckSlice(owner, slice, variable.dtype, /*stride=*/1));
    for (const ManifestSlot& slot : variable.slots)
      for (const ManifestSlice& slice : slot.slices)
        RETURN_IF_ERROR(
            reader->CheckSlice(absl::StrCat(owner, ", slot '", slot.name, "'"), slice, slot.dtype, slot.stride));
  }
  return reader;
}

absl::Status CheckpointReader::OpenParts(FileSystem& files, const Options& options) {
  const std::string directory = std::filesystem::path(path_).parent_path().string();
  for (const ManifestPart& part : manifest_.parts) {
    const std::string part_path = JoinPath(directory, part.file);
    auto opened = TensorFileReader::Open(files, part_path);
    if (absl::IsNotFound(opened.status()))
      return absl::DataLossError(absl::StrCat(part_path, ", a part of ", path_, ", is missing"));
    if (!opened.ok()) return opened.status();
    if ((*opened)->file_bytes() != part.bytes)
      return absl::DataLossError(
          absl::StrCat(part_path, " is damaged: has ", (*opened)->file_bytes(), " bytes, wanted ", part.bytes));
    if (options.verify_checksums) RETURN_IF_ERROR((*opened)->Verify(part.crc32c));
    parts_.push_back(*std::move(opened));
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::CheckSlice(const std::string& owner, const ManifestSlice& slice, DType dtype,
                                          int64_t stride) const {
  const TensorFileReader& part = *parts_[slice.part];
  const TensorInfo* tensor = part.Find(slice.tensor);
  if (tensor == nullptr)
    return absl::DataLossError(absl::StrCat(part.path(), ": tensor '", slice.tensor, "' of ", owner, " is missing"));
  const std::vector<int64_t> counters = {(Elements(slice.shape) + stride - 1) / stride};
  const std::vector<int64_t>& wanted = stride == 1 ? slice.shape : counters;
  if (tensor->dtype == dtype && tensor->shape == wanted) return absl::OkStatus();
  return absl::DataLossError(absl::StrCat(part.path(), ": tensor '", slice.tensor, "' of ", owner, " is ",
                                          DTypeName(tensor->dtype), " [", absl::StrJoin(tensor->shape, ","),
                                          "], wanted ", DTypeName(dtype), " [", absl::StrJoin(wanted, ","), "]"));
}

absl::Status CheckpointReader::ReadSlices(const std::vector<ManifestSlice>& slices, DType dtype, int64_t first,
                                          int64_t count, MutableByteSpan into) const {
  const int64_t size = static_cast<int64_t>(DTypeSize(dtype));
  if (into.size() != static_cast<uint64_t>(count) * size)
    return absl::InvalidArgumentError(
        absl::StrCat(path_, ": room for ", into.size(), " bytes, wanted for ", count * size));
  for (const ManifestSlice& slice : slices) {
    const Overlap overlap = OverlapOf(slice, first, count);
    if (overlap.empty()) continue;
    if (slice.row_step != 1) {
      RETURN_IF_ERROR(ReadRows(slice, size, overlap.first, overlap.end, first, into));
      continue;
    }
    RETURN_IF_ERROR(parts_[slice.part]->ReadRange(
        slice.tensor, (overlap.first - slice.offset) * size,
        into.subspan((overlap.first - first) * size, (overlap.end - overlap.first) * size)));
  }
  return absl::OkStatus();
}

// Copies rows [row, end) of the slice to their places in `into`, which begins with element `first` of the variable.
absl::Status CheckpointReader::ReadRows(const ManifestSlice& slice, int64_t size, int64_t row, int64_t end,
                                        int64_t first, MutableByteSpan into) const {
  constexpr int64_t kPieceBytes = 1 << 20;
  const int64_t row_bytes = RowElements(slice) * size;
  const int64_t at_once = std::max<int64_t>(1, kPieceBytes / row_bytes);
  std::vector<std::byte> piece;
  for (; row < end; row += at_once) {
    const int64_t rows = std::min(at_once, end - row);
    piece.resize(rows * row_bytes);
    RETURN_IF_ERROR(parts_[slice.part]->ReadRange(slice.tensor, row * row_bytes, piece));
    for (int64_t i = 0; i < rows; ++i) {
      // The first and the last row may lie partly outside `into`.
      const int64_t to = (slice.offset - first) * size + (row + i) * slice.row_step * row_bytes;
      const int64_t from = std::max<int64_t>(to, 0);
      const int64_t until = std::min<int64_t>(to + row_bytes, static_cast<int64_t>(into.size()));
      if (from < until) std::memcpy(into.data() + from, piece.data() + i * row_bytes + (from - to), until - from);
    }
  }
  return absl::OkStatus();
}

absl::Status CheckpointReader::ReadVariable(std::string_view name, MutableByteSpan into) const {
  ASSIGN_OR_RETURN(const ManifestVariable* variable, FindVariable(manifest_, path_, name));
  return ReadVariableRange(name, 0, Elements(variable->shape), into);
}

absl::Status CheckpointReader::ReadSlot(std::string_view variable, std::string_view slot, MutableByteSpan into) const {
  ASSIGN_OR_RETURN(const Found found, FindSlot(manifest_, path_, variable, slot));
  return ReadSlotRange(variable, slot, 0, Elements(found.variable->shape), into);
}

absl::Status CheckpointReader::ReadVariableRange(std::string_view name, int64_t first, int64_t count,
                                                 MutableByteSpan into) const {
  ASSIGN_OR_RETURN(const ManifestVariable* variable, FindVariable(manifest_, path_, name));
  RETURN_IF_ERROR(CheckRange(path_, *variable, first, count));
  return ReadSlices(variable->slices, variable->dtype, first, count, into);
}

absl::Status CheckpointReader::ReadSlotRange(std::string_view variable, std::string_view slot, int64_t first,
                                             int64_t count, MutableByteSpan into) const {
  ASSIGN_OR_RETURN(const Found found, FindSlot(manifest_, path_, variable, slot));
  RETURN_IF_ERROR(CheckRange(path_, *found.variable, first, count));
  if (found.slot->stride != 1)
    return absl::InvalidArgumentError(absl::StrCat(path_, ": slot '", found.slot->name, "' of variable '",
                                                   found.variable->name, "' has one value per ", found.slot->stride,
                                                   " elements: read it with ReadCounter"));
  return ReadSlices(found.slot->slices, found.slot->dtype, first, count, into);
}

absl::StatusOr<int64_t> CheckpointReader::ReadCounter(std::string_view variable, std::string_view slot, int64_t first,
                                                      int64_t count) const {
  ASSIGN_OR_RETURN(const Found found, FindSlot(manifest_, path_, variable, slot));
  RETURN_IF_ERROR(CheckRange(path_, *found.variable, first, count));
  if (count == 0 || found.slot->dtype != DType::kInt64)
    return absl::InvalidArgumentError(absl::StrCat(path_, ": cannot read a counter of ", count, " elements of slot '",
                                                   found.slot->name, "', ", DTypeName(found.slot->dtype)));
  const int64_t stride = found.slot->stride;
  int64_t largest = std::numeric_limits<int64_t>::min();
  for (const ManifestSlice& slice : found.slot->slices) {
    const Overlap overlap = OverlapOf(slice, first, count);
    if (overlap.empty()) continue;
    // Counts in elements of the slice.
    const bool rows = slice.row_step != 1;
    const int64_t begin = rows ? overlap.first * RowElements(slice) : overlap.first - slice.offset;
    const int64_t end = rows ? overlap.end * RowElements(slice) : overlap.end - slice.offset;
    const int64_t first_value = begin / stride;
    const int64_t end_value = (end - 1) / stride + 1;
    std::vector<int64_t> values(end_value - first_value);
    RETURN_IF_ERROR(parts_[slice.part]->ReadRange(slice.tensor, first_value * sizeof(int64_t),
                                                  AsMutableBytes(values.data(), values.size())));
    largest = std::max(largest, *std::max_element(values.begin(), values.end()));
  }
  return largest;
}

}  // namespace muster
