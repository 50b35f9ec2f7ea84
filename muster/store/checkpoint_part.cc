#include "muster/store/checkpoint_part.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr char kStepSlot[] = "t";

// "fc.weight", or "fc.weight/part_1" when the variable is partitioned (TensorFlow's word for a slice).
std::string TensorName(const StoreModel& model, const PlacedSlice& slice) {
  const std::string& name = model.variable(slice).name;
  return slice.num_shards == 1 ? name : absl::StrCat(name, "/part_", slice.shard);
}

bool Trainable(const StoreModel& model, const PlacedSlice& slice) {
  return model.variable(slice).kind == VariableKind::kTrainable;
}

int64_t NumStripes(const PlacedSlice& slice) { return (slice.elements + kStripeElements - 1) / kStripeElements; }

std::vector<SlotSpec> SlotsOf(const StoreModel& model) {
  const auto rule = MakeUpdateRule(model.rule);
  return rule.ok() ? (*rule)->slots() : std::vector<SlotSpec>();
}

std::string KindName(VariableKind kind) {
  switch (kind) {
    case VariableKind::kTrainable:
      return "trainable";
    case VariableKind::kFrozen:
      return "frozen";
    case VariableKind::kBuffer:
      return "buffer";
  }
  return "";
}

ManifestRule RuleOfManifest(const RuleSpec& rule) { return {RuleName(rule.kind), Hyperparameters(rule)}; }

}  // namespace

uint64_t ValueBytes(const StoreModel& model) {
  uint64_t total = 0;
  for (const PlacedSlice& slice : model.slices) total += slice.bytes;
  return total;
}

uint64_t SlotBytes(const StoreModel& model) {
  uint64_t total = 0;
  for (const PlacedSlice& slice : model.slices)
    if (Trainable(model, slice)) total += slice.bytes;
  return total * SlotsOf(model).size();
}

PartSnapshot TakeSnapshot(Arena& arena) {
  PartSnapshot snapshot;
  snapshot.bytes.resize(ValueBytes(arena.model()) + SlotBytes(arena.model()));
  MutableByteSpan rest = snapshot.bytes;
  const auto& slices = arena.layout().slices();
  for (size_t i = 0; i < slices.size(); ++i) {
    arena.Read(i, rest.first(slices[i].bytes));
    rest = rest.subspan(slices[i].bytes);
  }
  for (size_t i = 0; i < slices.size(); ++i) {
    for (size_t slot = 0; slot < slices[i].slot_offsets.size(); ++slot) {
      arena.ReadSlot(i, slot, rest.first(slices[i].bytes));
      rest = rest.subspan(slices[i].bytes);
    }
  }
  snapshot.steps = arena.ReadSteps();
  return snapshot;
}

absl::StatusOr<FileSummary> WritePart(FileSystem& files, const std::string& path, const StoreModel& model,
                                      const PartSnapshot& snapshot) {
  const std::vector<SlotSpec> slots = SlotsOf(model);
  std::vector<TensorView> tensors;
  ByteSpan rest = snapshot.bytes;
  const auto take = [&rest](uint64_t bytes) {
    const ByteSpan piece = rest.first(bytes);
    rest = rest.subspan(bytes);
    return piece;
  };
  for (const PlacedSlice& slice : model.slices)
    tensors.push_back({TensorName(model, slice), model.variable(slice).dtype, slice.shape, take(slice.bytes)});
  size_t stripe = 0;
  for (const PlacedSlice& slice : model.slices) {
    const std::string name = TensorName(model, slice);
    if (Trainable(model, slice)) {
      for (const SlotSpec& slot : slots)
        tensors.push_back(
            {absl::StrCat(name, "/", slot.name), model.variable(slice).dtype, slice.shape, take(slice.bytes)});
      tensors.push_back({absl::StrCat(name, "/", kStepSlot),
                         DType::kInt64,
                         {NumStripes(slice)},
                         AsBytes(snapshot.steps.data() + stripe, NumStripes(slice))});
    }
    stripe += NumStripes(slice);
  }
  return WriteTensorFile(files, path, tensors, {{"producer", "muster"}});
}

void AddVariablesToManifest(const StoreModel& model, Manifest& manifest) {
  manifest.rule = RuleOfManifest(model.rule);
  for (const VariableSpec& variable : model.variables)
    manifest.variables.push_back({variable.name, variable.dtype, variable.shape, KindName(variable.kind), {}, {}});
}

void AddPartToManifest(const StoreModel& model, int part, Manifest& manifest) {
  const auto add_slot = [](ManifestVariable& variable, const std::string& name, DType dtype, int64_t stride,
                           ManifestSlice slice) {
    const auto found = std::find_if(variable.slots.begin(), variable.slots.end(),
                                    [&](const ManifestSlot& slot) { return slot.name == name; });
    ManifestSlot& slot =
        found != variable.slots.end() ? *found : variable.slots.emplace_back(ManifestSlot{name, dtype, stride, {}});
    slot.slices.push_back(std::move(slice));
  };
  const auto by_offset = [](const ManifestSlice& a, const ManifestSlice& b) { return a.offset < b.offset; };
  const std::vector<SlotSpec> slots = SlotsOf(model);
  for (const PlacedSlice& placed : model.slices) {
    ManifestVariable& variable = manifest.variables[placed.variable];
    const std::string name = TensorName(model, placed);
    variable.slices.push_back({part, name, placed.offset, placed.shape});
    std::sort(variable.slices.begin(), variable.slices.end(), by_offset);
    if (!Trainable(model, placed)) continue;
    for (const SlotSpec& slot : slots)
      add_slot(variable, slot.name, variable.dtype, 1,
               {part, absl::StrCat(name, "/", slot.name), placed.offset, placed.shape});
    add_slot(variable, kStepSlot, DType::kInt64, kStripeElements,
             {part, absl::StrCat(name, "/", kStepSlot), placed.offset, placed.shape});
    for (ManifestSlot& slot : variable.slots) std::sort(slot.slices.begin(), slot.slices.end(), by_offset);
    std::sort(variable.slots.begin(), variable.slots.end(),
              [](const ManifestSlot& a, const ManifestSlot& b) { return a.name < b.name; });
  }
}

absl::Status CheckModelOfCheckpoint(const Manifest& manifest, const std::vector<VariableSpec>& variables,
                                    const std::string& path) {
  for (const VariableSpec& variable : variables) {
    const ManifestVariable* saved = manifest.Find(variable.name);
    if (saved == nullptr)
      return absl::FailedPreconditionError(absl::StrCat("checkpoint ", path,
                                                        " is of another model: it has no variable '", variable.name,
                                                        "'; give another model_dir, or remove it"));
    if (saved->dtype != variable.dtype || saved->shape != variable.shape)
      return absl::FailedPreconditionError(
          absl::StrCat("checkpoint ", path, " is of another model: variable '", variable.name, "' is ",
                       DTypeName(saved->dtype), "[", absl::StrJoin(saved->shape, ","), "] there and ",
                       DescribeType(variable), " here; give another model_dir, or remove it"));
  }
  for (const ManifestVariable& saved : manifest.variables) {
    const bool known = std::any_of(variables.begin(), variables.end(),
                                   [&](const VariableSpec& variable) { return variable.name == saved.name; });
    if (!known)
      return absl::FailedPreconditionError(absl::StrCat("checkpoint ", path,
                                                        " is of another model: it has a variable '", saved.name,
                                                        "' that this model lacks; give another model_dir"));
  }
  return absl::OkStatus();
}

absl::StatusOr<RestoredPart> ReadPart(const CheckpointReader& checkpoint, const StoreModel& model) {
  RestoredPart part;
  part.with_slots = checkpoint.manifest().rule.name == RuleName(model.rule.kind);
  part.snapshot.bytes.resize(ValueBytes(model) + (part.with_slots ? SlotBytes(model) : 0));
  MutableByteSpan rest = part.snapshot.bytes;
  const auto take = [&rest](uint64_t bytes) {
    const MutableByteSpan piece = rest.first(bytes);
    rest = rest.subspan(bytes);
    return piece;
  };
  for (const PlacedSlice& slice : model.slices)
    RETURN_IF_ERROR(
        checkpoint.ReadVariableRange(model.variable(slice).name, slice.offset, slice.elements, take(slice.bytes)));
  if (!part.with_slots) return part;
  const std::vector<SlotSpec> slots = SlotsOf(model);
  for (const PlacedSlice& slice : model.slices) {
    const std::string& name = model.variable(slice).name;
    if (Trainable(model, slice))
      for (const SlotSpec& slot : slots)
        RETURN_IF_ERROR(checkpoint.ReadSlotRange(name, slot.name, slice.offset, slice.elements, take(slice.bytes)));
    for (int64_t stripe = 0; stripe < NumStripes(slice); ++stripe) {
      const int64_t from = stripe * kStripeElements;
      int64_t t = 0;
      if (Trainable(model, slice)) {
        ASSIGN_OR_RETURN(t, checkpoint.ReadCounter(name, kStepSlot, slice.offset + from,
                                                   std::min(kStripeElements, slice.elements - from)));
      }
      part.snapshot.steps.push_back(static_cast<uint64_t>(t));
    }
  }
  return part;
}

}  // namespace muster
