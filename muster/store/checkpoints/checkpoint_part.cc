#include "muster/store/checkpoints/checkpoint_part.h"

#include <algorithm>
#include <cstring>

#include "absl/container/flat_hash_map.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr char kStepSlot[] = "t";

std::string TensorName(const StoreModel& model, const PlacedSlice& slice) {
  return TensorNameOf(model.variable(slice).name, slice);
}

bool Updated(const StoreModel& model, const PlacedSlice& slice) { return model.variable(slice).updated(); }

int64_t NumStripes(const PlacedSlice& slice) { return (slice.elements + kStripeElements - 1) / kStripeElements; }

DType SlotDTypeOf(const StoreModel& model, const PlacedSlice& slice) { return SlotDType(model.variable(slice).dtype); }

// Bytes of one slot.
uint64_t SlotBytesOf(const StoreModel& model, const PlacedSlice& slice) {
  return slice.elements * DTypeSize(SlotDTypeOf(model, slice));
}

std::string KindName(VariableKind kind) {
  switch (kind) {
    case VariableKind::kTrainable:
      return "trainable";
    case VariableKind::kFrozen:
      return "frozen";
    case VariableKind::kBuffer:
      return "buffer";
    case VariableKind::kRows:
      return "rows";
  }
  return "";
}

TensorFileMetadata PartMetadata() { return {{"producer", "muster"}}; }

// A tensor of a part's file.
struct PartTensor {
  enum Content { kValue, kSlot, kSteps };
  TensorSpec spec;
  Content content = kValue;
  size_t index = 0;    // of the slice, of the slot among all slots, or of the first stripe
  uint64_t first = 0;  // where a value or a slot begins in PartSnapshot::bytes
};

std::vector<PartTensor> TensorsOf(const StoreModel& model) {
  std::vector<PartTensor> tensors;
  size_t slots = 0;
  size_t stripes = 0;
  uint64_t value_at = 0;
  uint64_t slot_at = ValueBytes(model);
  for (size_t i = 0; i < model.slices.size(); ++i) {
    const PlacedSlice& slice = model.slices[i];
    const std::string name = TensorName(model, slice);
    tensors.push_back({{name, model.variable(slice).dtype, slice.shape}, PartTensor::kValue, i, value_at});
    value_at += slice.bytes;
    if (Updated(model, slice)) {
      for (const SlotSpec& slot : model.slots(slice)) {
        tensors.push_back({{absl::StrCat(name, "/", slot.name), SlotDTypeOf(model, slice), slice.shape},
                           PartTensor::kSlot,
                           slots++,
                           slot_at});
        slot_at += SlotBytesOf(model, slice);
      }
      tensors.push_back(
          {{absl::StrCat(name, "/", kStepSlot), DType::kInt64, {NumStripes(slice)}}, PartTensor::kSteps, stripes});
    }
    stripes += NumStripes(slice);
  }
  return tensors;
}

ByteSpan StepsOf(const PartTensor& tensor, const std::vector<uint64_t>& steps) {
  return AsBytes(steps.data() + tensor.index, tensor.spec.shape[0]);
}

ManifestRule RuleOfManifest(const RuleSpec& rule) { return {RuleName(rule.kind), Hyperparameters(rule)}; }

}  // namespace

std::string TensorNameOf(const std::string& variable, const PlacedSlice& slice) {
  return slice.num_shards == 1 ? variable : absl::StrCat(variable, "/part_", slice.shard);
}

uint64_t ValueBytes(const StoreModel& model, bool with_rows) {
  uint64_t total = 0;
  for (const PlacedSlice& slice : model.slices)
    if (with_rows || model.variable(slice).kind != VariableKind::kRows) total += slice.bytes;
  return total;
}

uint64_t SlotBytes(const StoreModel& model) {
  uint64_t total = 0;
  for (const PlacedSlice& slice : model.slices) total += model.slots(slice).size() * SlotBytesOf(model, slice);
  return total;
}

int64_t NumStripes(const StoreModel& model) {
  int64_t total = 0;
  for (const PlacedSlice& slice : model.slices) total += NumStripes(slice);
  return total;
}

PartView ViewAside(const Arena& arena) {
  PartView view;
  const auto& slices = arena.layout().slices();
  for (size_t i = 0; i < slices.size(); ++i) {
    view.values.push_back(arena.AsideValue(static_cast<int>(i)));
    for (size_t slot = 0; slot < slices[i].slot_offsets.size(); ++slot)
      view.slots.push_back(arena.AsideSlot(static_cast<int>(i), static_cast<int>(slot)));
  }
  view.steps = arena.AsideSteps();
  return view;
}

std::vector<std::byte> CopyAside(const Arena& arena, uint64_t first, uint64_t bytes) {
  const PartView view = ViewAside(arena);
  std::vector<std::byte> copy;
  copy.reserve(bytes);
  for (const auto* pieces : {&view.values, &view.slots}) {
    for (const ByteSpan piece : *pieces) {
      const uint64_t skipped = std::min<uint64_t>(first, piece.size());
      const ByteSpan wanted = piece.subspan(skipped).first(std::min<uint64_t>(piece.size() - skipped, bytes));
      copy.insert(copy.end(), wanted.begin(), wanted.end());
      first -= skipped;
      bytes -= wanted.size();
    }
  }
  return copy;
}

PartView ViewOf(const StoreModel& model, const PartSnapshot& snapshot) {
  PartView view{.steps = snapshot.steps};
  ByteSpan rest = snapshot.bytes;
  const auto take = [&rest](uint64_t bytes) {
    const ByteSpan piece = rest.first(bytes);
    rest = rest.subspan(bytes);
    return piece;
  };
  for (const PlacedSlice& slice : model.slices) view.values.push_back(take(slice.bytes));
  for (const PlacedSlice& slice : model.slices)
    for (size_t slot = model.slots(slice).size(); slot > 0; --slot)
      view.slots.push_back(take(SlotBytesOf(model, slice)));
  return view;
}

absl::StatusOr<FileSummary> WritePart(FileSystem& files, const std::string& path, const StoreModel& model,
                                      const PartView& part) {
  std::vector<TensorView> tensors;
  for (PartTensor& tensor : TensorsOf(model)) {
    const ByteSpan bytes = tensor.content == PartTensor::kValue  ? part.values[tensor.index]
                           : tensor.content == PartTensor::kSlot ? part.slots[tensor.index]
                                                                 : StepsOf(tensor, part.steps);
    tensors.push_back({std::move(tensor.spec.name), tensor.spec.dtype, std::move(tensor.spec.shape), bytes});
  }
  return WriteTensorFile(files, path, tensors, PartMetadata());
}

absl::StatusOr<FileSummary> WritePartInPieces(FileSystem& files, const std::string& path, const StoreModel& model,
                                              const std::vector<uint64_t>& steps, uint64_t memory,
                                              absl::FunctionRef<absl::Status(std::span<const PartPiece>)> read) {
  if (steps.size() != static_cast<size_t>(NumStripes(model)))
    return absl::DataLossError(
        absl::StrCat("a part of ", NumStripes(model), " stripes came with ", steps.size(), " step counters"));
  std::vector<TensorSpec> specs;
  absl::flat_hash_map<std::string, PartTensor> by_name;
  for (PartTensor& tensor : TensorsOf(model)) {
    specs.push_back(tensor.spec);
    by_name.emplace(specs.back().name, std::move(tensor));
  }
  ASSIGN_OR_RETURN(const auto writer, TensorFileWriter::Create(files, path, std::move(specs), PartMetadata()));
  std::vector<std::byte> buffer(std::min(memory, ValueBytes(model) + SlotBytes(model)));
  MutableByteSpan room = buffer;
  std::vector<PartPiece> pieces;
  std::vector<ByteSpan> next;  // in the order of the file
  const auto flush = [&]() -> absl::Status {
    if (!pieces.empty()) RETURN_IF_ERROR(read(pieces));
    for (const ByteSpan bytes : next) RETURN_IF_ERROR(writer->Append(bytes));
    pieces.clear();
    next.clear();
    room = buffer;
    return absl::OkStatus();
  };
  for (const TensorInfo& info : writer->tensors()) {
    const PartTensor& tensor = by_name.at(info.name);
    if (tensor.content == PartTensor::kSteps) {
      next.push_back(StepsOf(tensor, steps));
      continue;
    }
    for (uint64_t done = 0; done < info.bytes;) {
      if (room.empty() || pieces.size() == kMostPieces) RETURN_IF_ERROR(flush());
      const MutableByteSpan into = room.first(std::min<uint64_t>(room.size(), info.bytes - done));
      pieces.push_back({tensor.first + done, into});
      next.push_back(into);
      room = room.subspan(into.size());
      done += into.size();
    }
  }
  RETURN_IF_ERROR(flush());
  return writer->Finish();
}

void AddVariablesToManifest(const StoreModel& model, Manifest& manifest) {
  manifest.rule = RuleOfManifest(model.optimizer.rule);
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
  for (const PlacedSlice& placed : model.slices) {
    ManifestVariable& variable = manifest.variables[placed.variable];
    const std::string name = TensorName(model, placed);
    variable.slices.push_back({part, name, placed.offset, placed.shape, placed.row_step});
    std::sort(variable.slices.begin(), variable.slices.end(), by_offset);
    if (!Updated(model, placed)) continue;
    for (const SlotSpec& slot : model.slots(placed))
      add_slot(variable, slot.name, SlotDTypeOf(model, placed), 1,
               {part, absl::StrCat(name, "/", slot.name), placed.offset, placed.shape, placed.row_step});
    add_slot(variable, kStepSlot, DType::kInt64, kStripeElements,
             {part, absl::StrCat(name, "/", kStepSlot), placed.offset, placed.shape, placed.row_step});
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

namespace {

// Whether slots can be restored. The state of another rule is useless: they are restored only if everything that the
// rules keep was saved, with the same names and types, and by the same default rule.
bool HasSlots(const Manifest& manifest, const StoreModel& model) {
  if (manifest.rule.name != RuleName(model.optimizer.rule.kind)) return false;
  for (const PlacedSlice& slice : model.slices) {
    const ManifestVariable* variable = manifest.Find(model.variable(slice).name);
    if (variable == nullptr) return false;
    for (const SlotSpec& wanted : model.slots(slice)) {
      const bool saved = std::any_of(variable->slots.begin(), variable->slots.end(), [&](const ManifestSlot& slot) {
        return slot.name == wanted.name && slot.dtype == SlotDTypeOf(model, slice) && slot.stride == 1;
      });
      if (!saved) return false;
    }
  }
  return true;
}

// Reads a slice by `read` (elements of the variable from one on, as many as there is room for): at once or, if it has
// every n-th row, out of consecutive rows.
absl::Status ReadSlice(const PlacedSlice& slice, const VariableSpec& variable, MutableByteSpan into,
                       absl::FunctionRef<absl::Status(int64_t, MutableByteSpan)> read) {
  if (slice.row_step == 1 || slice.elements == 0) return read(slice.offset, into);
  constexpr size_t kPieceBytes = 4 << 20;
  const int64_t width = variable.row_elements();
  const size_t row_bytes = into.size() / slice.shape[0];
  const int64_t at_once = static_cast<int64_t>(std::max<size_t>(1, kPieceBytes / (row_bytes * slice.row_step)));
  std::vector<std::byte> piece;
  for (int64_t row = 0; row < slice.shape[0]; row += at_once) {
    const int64_t rows = std::min(at_once, slice.shape[0] - row);
    piece.resize(((rows - 1) * slice.row_step + 1) * row_bytes);  // from the first row to the last
    RETURN_IF_ERROR(read(slice.offset + row * slice.row_step * width, piece));
    for (int64_t i = 0; i < rows; ++i)
      std::memcpy(into.data() + (row + i) * row_bytes, piece.data() + i * slice.row_step * row_bytes, row_bytes);
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<RestoredPart> ReadPart(const CheckpointReader& checkpoint, const StoreModel& model) {
  RestoredPart part;
  part.with_slots = HasSlots(checkpoint.manifest(), model);
  part.snapshot.bytes.resize(ValueBytes(model) + (part.with_slots ? SlotBytes(model) : 0));
  MutableByteSpan rest = part.snapshot.bytes;
  const auto take = [&rest](uint64_t bytes) {
    const MutableByteSpan piece = rest.first(bytes);
    rest = rest.subspan(bytes);
    return piece;
  };
  for (const PlacedSlice& slice : model.slices)
    RETURN_IF_ERROR(
        ReadSlice(slice, model.variable(slice), take(slice.bytes), [&](int64_t first, MutableByteSpan into) {
          const int64_t count = into.size() / DTypeSize(model.variable(slice).dtype);
          return checkpoint.ReadVariableRange(model.variable(slice).name, first, count, into);
        }));
  if (!part.with_slots) return part;
  for (const PlacedSlice& slice : model.slices) {
    const std::string& name = model.variable(slice).name;
    for (const SlotSpec& slot : model.slots(slice))
      RETURN_IF_ERROR(ReadSlice(slice, model.variable(slice), take(SlotBytesOf(model, slice)),
                                [&](int64_t first, MutableByteSpan into) {
                                  const int64_t count = into.size() / DTypeSize(SlotDTypeOf(model, slice));
                                  return checkpoint.ReadSlotRange(name, slot.name, first, count, into);
                                }));
    // A table has one counter, which stripes that weren't touched lately don't show.
    const bool table = model.variable(slice).kind == VariableKind::kRows;
    int64_t t = 0;
    if (table) {
      ASSIGN_OR_RETURN(t, checkpoint.ReadCounter(name, kStepSlot, 0, model.variable(slice).elements()));
    }
    for (int64_t stripe = 0; stripe < NumStripes(slice); ++stripe) {
      const int64_t from = stripe * kStripeElements;
      if (!table && Updated(model, slice)) {
        ASSIGN_OR_RETURN(t, checkpoint.ReadCounter(name, kStepSlot, slice.offset + from,
                                                   std::min(kStripeElements, slice.elements - from)));
      }
      part.snapshot.steps.push_back(static_cast<uint64_t>(t));
    }
  }
  return part;
}

}  // namespace muster
