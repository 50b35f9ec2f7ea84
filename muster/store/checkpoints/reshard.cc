#include "muster/store/checkpoints/reshard.h"

#include <algorithm>
#include <utility>
#include <vector>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/version.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/store/checkpoints/checkpoint_part.h"

namespace muster {
namespace {

constexpr uint64_t kPieceBytes = 4 << 20;

// The source of a tensor in a new part.
struct Source {
  const ManifestVariable* variable = nullptr;
  const ManifestSlot* slot = nullptr;  // null: the variable itself
  const PlacedSlice* slice = nullptr;

  DType dtype() const { return slot != nullptr ? slot->dtype : variable->dtype; }
  int64_t stride() const { return slot != nullptr ? slot->stride : 1; }
  std::string tensor() const {
    const std::string name = TensorNameOf(variable->name, *slice);
    return slot != nullptr ? absl::StrCat(name, "/", slot->name) : name;
  }
  std::vector<int64_t> shape() const {
    if (stride() == 1) return slice->shape;
    return {(slice->elements + stride() - 1) / stride()};
  }
};

class Resharding {
 public:
  Resharding(FileSystem& files, const CheckpointReader& from, std::string directory, std::string_view save_id)
      : files_(files), from_(from), directory_(std::move(directory)), manifest_(from.manifest()) {
    manifest_.save_id = std::string(save_id);
    manifest_.writer = "muster checkpoint reshard";
    manifest_.muster_version = kMusterVersion;
    manifest_.parts.clear();
    for (ManifestVariable& variable : manifest_.variables) {
      variable.slices.clear();
      for (ManifestSlot& slot : variable.slots) slot.slices.clear();
    }
  }

  absl::Status Place(const ReshardOptions& options) {
    std::vector<VariableSpec> variables;
    for (const ManifestVariable& variable : manifest_.variables)
      variables.push_back({.name = variable.name, .dtype = variable.dtype, .shape = variable.shape});
    ASSIGN_OR_RETURN(placement_, PlaceVariables(variables, options.num_ps, options.placement, options.partitioning));
    num_parts_ = options.num_ps;
    return absl::OkStatus();
  }

  absl::Status Write() {
    RETURN_IF_ERROR(files_.CreateDirectory(directory_));
    save_number_ = FreeSaveNumber(files_, directory_, manifest_.global_step);
    for (int part = 0; part < num_parts_; ++part) {
      ASSIGN_OR_RETURN(const FileSummary written, WritePartOf(part));
      manifest_.parts.push_back({PartName(part), written.bytes, written.crc32c});
    }
    return CommitManifest(files_, directory_, manifest_);
  }

  // Removes what a failed Write left. A manifest makes it a checkpoint: then its parts stay.
  void RemoveParts() {
    if (files_.Exists(JoinPath(directory_, ManifestFileName(manifest_.global_step)))) return;
    for (int part = 0; part < num_parts_; ++part)
      for (const std::string& name : {PartName(part), TemporaryName(PartName(part), manifest_.save_id)})
        files_.Remove(JoinPath(directory_, name)).IgnoreError();
  }

  std::string path() const { return JoinPath(directory_, CheckpointName(manifest_.global_step)); }

 private:
  std::string PartName(int part) const { return PartFileName(manifest_.global_step, part, num_parts_, save_number_); }

  // Returns everything of the slices on that ps, and enters it into the manifest. Slices come by offset.
  std::vector<Source> Enter(int part) {
    std::vector<Source> sources;
    for (const PlacedSlice& slice : placement_.slices) {
      if (slice.ps != part) continue;
      const ManifestVariable& saved = from_.manifest().variables[slice.variable];
      ManifestVariable& variable = manifest_.variables[slice.variable];
      const auto enter = [&](const ManifestSlot* slot, std::vector<ManifestSlice>& slices) {
        sources.push_back({&saved, slot, &slice});
        slices.push_back({part, sources.back().tensor(), slice.offset, slice.shape});
        std::sort(slices.begin(), slices.end(),
                  [](const ManifestSlice& a, const ManifestSlice& b) { return a.offset < b.offset; });
      };
      enter(nullptr, variable.slices);
      for (size_t i = 0; i < saved.slots.size(); ++i) enter(&saved.slots[i], variable.slots[i].slices);
    }
    return sources;
  }

  absl::StatusOr<FileSummary> WritePartOf(int part) {
    const std::vector<Source> sources = Enter(part);
    std::vector<TensorSpec> specs;
    absl::flat_hash_map<std::string, const Source*> by_tensor;
    for (const Source& source : sources) {
      specs.push_back({source.tensor(), source.dtype(), source.shape()});
      by_tensor[specs.back().name] = &source;
    }
    ASSIGN_OR_RETURN(
        const auto writer,
        TensorFileWriter::Create(files_, JoinPath(directory_, TemporaryName(PartName(part), manifest_.save_id)),
                                 std::move(specs), {{"producer", "muster"}}));
    for (const TensorInfo& tensor : writer->tensors()) {
      const Source& source = *by_tensor.at(tensor.name);
      RETURN_IF_ERROR(source.stride() == 1 ? CopyValues(source, *writer) : CopyCounters(source, *writer));
    }
    return writer->Finish();
  }

  absl::Status CopyValues(const Source& source, TensorFileWriter& writer) {
    const int64_t size = static_cast<int64_t>(DTypeSize(source.dtype()));
    const int64_t at_once = static_cast<int64_t>(kPieceBytes) / size;
    for (int64_t done = 0; done < source.slice->elements; done += at_once) {
      const int64_t count = std::min(at_once, source.slice->elements - done);
      const int64_t first = source.slice->offset + done;
      piece_.resize(count * size);
      RETURN_IF_ERROR(source.slot != nullptr
                          ? from_.ReadSlotRange(source.variable->name, source.slot->name, first, count, piece_)
                          : from_.ReadVariableRange(source.variable->name, first, count, piece_));
      RETURN_IF_ERROR(writer.Append(piece_));
    }
    return absl::OkStatus();
  }

  absl::Status CopyCounters(const Source& source, TensorFileWriter& writer) {
    for (int64_t done = 0; done < source.slice->elements; done += source.stride()) {
      ASSIGN_OR_RETURN(const int64_t count,
                       from_.ReadCounter(source.variable->name, source.slot->name, source.slice->offset + done,
                                         std::min(source.stride(), source.slice->elements - done)));
      RETURN_IF_ERROR(writer.Append(AsBytes(&count, 1)));
    }
    return absl::OkStatus();
  }

  FileSystem& files_;
  const CheckpointReader& from_;
  const std::string directory_;
  Manifest manifest_;
  PlacementResult placement_;
  int num_parts_ = 0;
  int save_number_ = 1;
  std::vector<std::byte> piece_;
};

}  // namespace

absl::StatusOr<std::string> ReshardCheckpoint(FileSystem& files, const CheckpointReader& from,
                                              const std::string& directory, const ReshardOptions& options,
                                              std::string_view save_id) {
  ASSIGN_OR_RETURN(const auto there, ListCheckpoints(files, directory));
  if (!there.empty())
    return absl::AlreadyExistsError(absl::StrCat(directory, " has a checkpoint already, ", there.back(),
                                                 "; give a directory without one: nothing is overwritten"));
  Resharding resharding(files, from, directory, save_id);
  RETURN_IF_ERROR(resharding.Place(options));
  const absl::Status written = resharding.Write();
  if (!written.ok()) {
    resharding.RemoveParts();
    return written;
  }
  return resharding.path();
}

}  // namespace muster
