// What one ps contributes to a checkpoint: the layout of its slices, slots and step counters as one piece of memory
// (the bulk of kInitialize and kExportPart), as a safetensors file, and as entries of the manifest. Pure functions.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/checkpoint/manifest.h"
#include "muster/checkpoint/safetensors_file.h"
#include "muster/store/arena/arena.h"
#include "muster/store/model/model.h"

namespace muster {

// Returns the name of a slice's tensor in a part: "fc.weight", or "fc.weight/part_1" if the variable is partitioned
// (TensorFlow's word for a slice). Tensors of slots append "/" and the slot's name.
std::string TensorNameOf(const std::string& variable, const PlacedSlice& slice);

// Bytes of the values of all slices (of tables of rows only if `with_rows`), and of all slots.
uint64_t ValueBytes(const StoreModel& model, bool with_rows = true);
uint64_t SlotBytes(const StoreModel& model);
int64_t NumStripes(const StoreModel& model);

// The state of a ps (each stripe is of one moment): the values of the slices in order, then each updated slice's slots
// in order.
struct PartSnapshot {
  std::vector<std::byte> bytes;
  std::vector<uint64_t> steps;  // the rule's step counter, one per stripe
};
// Copies the bytes [first, first + bytes) of the state that a finished mark has set aside, in a PartSnapshot's order.
std::vector<std::byte> CopyAside(const Arena& arena, uint64_t first, uint64_t bytes);

// A view of such a state.
struct PartView {
  std::vector<ByteSpan> values;  // one per slice
  std::vector<ByteSpan> slots;   // of each updated slice in order
  std::vector<uint64_t> steps;
};
PartView ViewOf(const StoreModel& model, const PartSnapshot& snapshot);
// Returns a view of what a finished mark has set aside.
PartView ViewAside(const Arena& arena);

// Writes a part as a tensor file to `path`; syncs but doesn't rename it. Tensor names: docs/checkpoint_format.md.
absl::StatusOr<FileSummary> WritePart(FileSystem& files, const std::string& path, const StoreModel& model,
                                      const PartView& part);

// A piece of PartSnapshot::bytes: where it begins, and the memory for it.
struct PartPiece {
  uint64_t first = 0;
  MutableByteSpan into;
};
// The most pieces that are read at once.
constexpr size_t kMostPieces = 256;
// Writes the same file from a state that comes in pieces: `read` fills at most `memory` bytes in at most kMostPieces
// pieces at once. Its error ends the writing, and is returned.
absl::StatusOr<FileSummary> WritePartInPieces(FileSystem& files, const std::string& path, const StoreModel& model,
                                              const std::vector<uint64_t>& steps, uint64_t memory,
                                              absl::FunctionRef<absl::Status(std::span<const PartPiece>)> read);

// Adds part number `part`, with the slices of `model` (one ps's), to `manifest`, which must have the variables already.
void AddPartToManifest(const StoreModel& model, int part, Manifest& manifest);
// Adds every variable (without slices) and the rule.
void AddVariablesToManifest(const StoreModel& model, Manifest& manifest);

// The state of what `model` (one ps's) holds, read from a checkpoint that may have been saved with another number of
// ps. `with_slots`: the slots were restored too, which needs the same kind of rule. FailedPrecondition names the first
// variable that the checkpoint lacks or has in another shape or type.
struct RestoredPart {
  PartSnapshot snapshot;
  bool with_slots = false;
  std::string work = {};  // ps 0's: the checkpoint's WorkState; ReadPart doesn't set it
};
absl::StatusOr<RestoredPart> ReadPart(const CheckpointReader& checkpoint, const StoreModel& model);

// FailedPrecondition if the checkpoint isn't of this model: names the first variable that differs, and both shapes.
[[nodiscard]] absl::Status CheckModelOfCheckpoint(const Manifest& manifest, const std::vector<VariableSpec>& variables,
                                                  const std::string& path);

}  // namespace muster
