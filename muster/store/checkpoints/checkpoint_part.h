// What one ps contributes to a checkpoint: how its slices, slots and step counters are laid out as one piece of memory
// (the bulk of kInitialize and kExportPart), as a safetensors file, and as entries of the manifest. Pure functions.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/tensor_file.h"
#include "muster/store/arena/arena.h"
#include "muster/store/model/model.h"

namespace muster {

// Name of a slice's tensor in a part: "fc.weight", or "fc.weight/part_1" of a variable that is partitioned
// (TensorFlow's word for a slice). Its slots' tensors have "/" and the slot's name behind it.
std::string TensorNameOf(const std::string& variable, const PlacedSlice& slice);

// Bytes of the values of all slices (those of tables of rows only if asked for), and of all slots.
uint64_t ValueBytes(const StoreModel& model, bool with_rows = true);
uint64_t SlotBytes(const StoreModel& model);
int64_t NumStripes(const StoreModel& model);

// The state of a ps at one moment (each stripe of one moment): values of the slices in order, then for each updated
// slice its slots in order.
struct PartSnapshot {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> steps;  // the rule's step counter, one a stripe
};
// … of a finished mark.
PartSnapshot CopyAside(const Arena& arena);

// The same where it lies.
struct PartView {
  std::vector<ByteSpan> values;  // one a slice
  std::vector<ByteSpan> slots;   // of each updated slice in order
  std::vector<uint64_t> steps;
};
PartView ViewOf(const StoreModel& model, const PartSnapshot& snapshot);
// What a finished mark has set aside.
PartView ViewAside(const Arena& arena);

// Writes a part as a tensor file to `path`, synced, not renamed. Tensor names: docs/checkpoint_format.md.
absl::StatusOr<FileSummary> WritePart(FileSystem& files, const std::string& path, const StoreModel& model,
                                      const PartView& part);

// Enters part number `part` with the slices of `model` (one ps's) into `manifest`, whose variables were added before.
void AddPartToManifest(const StoreModel& model, int part, Manifest& manifest);
// Enters every variable (without slices) and the rule.
void AddVariablesToManifest(const StoreModel& model, Manifest& manifest);

// The snapshot of what `model` (one ps's) holds, read from a checkpoint that may have been saved with another number of
// ps. `with_slots` says whether the slots could be restored too: they can when the rule is the same kind.
// FailedPrecondition: a variable that the checkpoint lacks, or has in another shape or type; names the first one.
struct RestoredPart {
  PartSnapshot snapshot;
  bool with_slots = false;
  std::string work = {};  // ps 0's: the WorkState of that checkpoint, for who has read it
};
absl::StatusOr<RestoredPart> ReadPart(const CheckpointReader& checkpoint, const StoreModel& model);

// FailedPrecondition if the checkpoint isn't one of this model: names the first variable that differs, both shapes.
[[nodiscard]] absl::Status CheckModelOfCheckpoint(const Manifest& manifest, const std::vector<VariableSpec>& variables,
                                                  const std::string& path);

}  // namespace muster
