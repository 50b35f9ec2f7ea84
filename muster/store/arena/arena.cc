#include "muster/store/arena/arena.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/status_macros.h"
#include "muster/optim/kernels/add_gradient.h"
#include "muster/optim/kernels/value_math.h"
#include "muster/store/arena/arena_locks.h"
#include "muster/store/arena/arena_rows.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/arena/stripe_lock.h"
#include "muster/store/messages/model_fields.h"
#include "muster/store/model/row_initializer.h"
#include "muster/transport/messages/codec.h"

namespace muster {
Arena::Arena(ArenaLayout layout, StoreModel model, std::vector<SliceRule> rules, std::shared_ptr<ArenaMemory> memory,
             ArenaProbe* probe)
    : layout_(std::move(layout)),
      model_(std::move(model)),
      rules_(std::move(rules)),
      memory_(std::move(memory)),
      base_(memory_->data()),
      probe_(probe) {}

absl::StatusOr<std::unique_ptr<Arena>> Arena::Create(const StoreModel& model, int num_clients,
                                                     std::shared_ptr<ArenaMemory> memory, ArenaProbe* probe) {
  ASSIGN_OR_RETURN(ArenaLayout layout, ArenaLayout::Make(model, num_clients));
  ASSIGN_OR_RETURN(std::vector<SliceRule> rules, MakeSliceRules(model));
  if (!memory) {
    ASSIGN_OR_RETURN(memory, ArenaMemory::Create());
  }
  const std::string description = Encode(model);
  RETURN_IF_ERROR(memory->Reset(layout.total_bytes() + description.size(), layout.gradients_bytes()));
  std::memcpy(memory->data() + layout.total_bytes(), description.data(), description.size());
  auto arena = std::unique_ptr<Arena>(new Arena(layout, model, std::move(rules), std::move(memory), probe));
  arena->header() = {.version = kArenaVersion,
                     .num_clients = static_cast<uint32_t>(num_clients),
                     .layout_hash = layout.hash(),
                     .total_bytes = layout.total_bytes(),
                     .model_offset = layout.total_bytes(),
                     .model_bytes = description.size(),
                     .state = ArenaState::kLoading,
                     .chief = {.client = -1}};
  Locks(*arena).TakeOver();
  arena->InitializeStripes();
  Publish(arena->header().magic, kArenaMagic);
  return arena;
}

absl::StatusOr<std::unique_ptr<Arena>> Arena::Attach(std::shared_ptr<ArenaMemory> memory, int num_clients,
                                                     ArenaProbe* probe) {
  const uint64_t size = memory->size();
  const auto& header = *reinterpret_cast<const ArenaHeader*>(memory->data());
  if (size < sizeof(ArenaHeader) || header.magic != kArenaMagic || header.state != ArenaState::kReady)
    return absl::NotFoundError("the memory holds no model");
  const auto other = [](const std::string& what) {
    return absl::FailedPreconditionError(
        absl::StrCat("the memory that this ps was given holds the arena of another job: ", what,
                     "; start the ps with memory of its own"));
  };
  if (header.version != kArenaVersion) return other(absl::StrCat("version ", header.version, ", not ", kArenaVersion));
  if (header.num_clients != static_cast<uint32_t>(num_clients))
    return other(absl::StrCat("for ", header.num_clients, " workers, not ", num_clients));
  if (header.model_bytes > size || header.model_offset > size - header.model_bytes) return other("it is too short");
  StoreModel model;
  RETURN_IF_ERROR(Decode(
      std::string(reinterpret_cast<const char*>(memory->data()) + header.model_offset, header.model_bytes), model));
  ASSIGN_OR_RETURN(ArenaLayout layout, ArenaLayout::Make(model, num_clients));
  ASSIGN_OR_RETURN(std::vector<SliceRule> rules, MakeSliceRules(model));
  if (layout.hash() != header.layout_hash || layout.total_bytes() != header.total_bytes || layout.total_bytes() > size)
    return other("its layout does not fit the model that it names");
  return std::unique_ptr<Arena>(
      new Arena(std::move(layout), std::move(model), std::move(rules), std::move(memory), probe));
}

void Arena::InitializeStripes() {
  pthread_mutexattr_t attributes;
  pthread_mutexattr_init(&attributes);
  pthread_mutexattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_mutexattr_setrobust(&attributes, PTHREAD_MUTEX_ROBUST);
  for (int64_t i = 0; i < layout_.num_stripes(); ++i) pthread_mutex_init(&stripe(i).mutex, &attributes);
  pthread_mutex_init(&header().count_mutex, &attributes);
  pthread_mutexattr_destroy(&attributes);
}

void Arena::InitializeSlot(int64_t stripe_index, int slot, MutableByteSpan bytes) {
  const int slice = layout_.SliceOf(stripe_index);
  SetAll(SlotDType(model_.variable(model_.slices[slice]).dtype), bytes,
         rules_[slice].rule->slots()[slot].initial_value);
}

MutableByteSpan Arena::RawValue(int slice) {
  return {base_ + layout_.slices()[slice].value_offset, layout_.slices()[slice].bytes};
}

MutableByteSpan Arena::RawSlot(int slice, int slot) {
  return {base_ + layout_.slices()[slice].slot_offsets[slot], layout_.slices()[slice].slot_bytes()};
}

StripeParts Arena::PartsOf(int64_t stripe_index, StripeContent content) {
  const int slice_index = layout_.SliceOf(stripe_index);
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  const size_t from = (stripe_index - slice.first_stripe) * kStripeElements;
  StripeParts parts{.elements = std::min<size_t>(kStripeElements, slice.elements - from)};
  if (content != StripeContent::kAccumulator) {
    parts.Add(RawValue(slice_index), from, slice.element_size);
    for (size_t slot = 0; slot < slice.slot_offsets.size(); ++slot)
      parts.Add(RawSlot(slice_index, static_cast<int>(slot)), from, slice.slot_element_size);
  }
  if (content != StripeContent::kState)
    parts.Add({base_ + slice.accumulator_offset, slice.slot_bytes()}, from, slice.slot_element_size);
  return parts;
}

void Arena::SaveHeader(int64_t stripe_index, StripeContent content, UndoHeader& slot) {
  if (header().one_process != 0 || Has(PlantedBug::kNoUndo)) return;
  std::memcpy(slot.saved_header(), &stripe(stripe_index).updates, header_bytes());
  slot.stripe = stripe_index;
  slot.content = content;
  At(ArenaPoint::kHeaderSaved);
  Publish<uint64_t>(slot.valid, 1);
  At(ArenaPoint::kUndoValid);
}

void Arena::SaveBlock(const StripeParts& parts, size_t block, UndoHeader& slot) {
  if (header().one_process != 0 || Has(PlantedBug::kNoUndo)) return;
  std::byte* into = reinterpret_cast<std::byte*>(&slot) + layout_.undo_header_bytes() + parts.undo_offset(block);
  for (size_t part = 0; part < parts.count; ++part) {
    const MutableByteSpan bytes = parts.block(part, block);
    std::memcpy(into, bytes.data(), bytes.size());
    into += bytes.size();
  }
  At(ArenaPoint::kBlockSaved);
  Publish<uint64_t>(slot.valid, 2 + block);
  At(ArenaPoint::kBlockCounted);
}

void Arena::ApplyBlock(int slice, const StripeParts& parts, size_t block, ByteSpan bytes,
                       const UpdateRule::Step& step) {
  std::array<MutableByteSpan, StripeParts::kMaxParts> slots;
  for (size_t part = 1; part < parts.count; ++part) slots[part - 1] = parts.block(part, block);
  rules_[slice].rule->Apply(model_.variable_of(slice).dtype, parts.block(0, block),
                            std::span(slots).first(parts.count - 1), bytes, step);
}

void Arena::UpdateStripe(int64_t stripe_index, const Push& push, const StripeParts& parts, ByteSpan bytes) {
  StripeHeader& head = stripe(stripe_index);
  UndoHeader& slot = undo(push.client);
  const int slice = layout_.SliceOf(stripe_index);
  const bool trainable = rules_[slice].rule != nullptr;
  UpdateRule::Step step{.learning_rate = push.learning_rate, .t = head.t + 1, .gradient_scale = push.gradient_scale};
  if (trainable) step.clip_value = ClipValue(rule(slice).clip);
  if (push.change != nullptr) step.gradient_scale = 1;  // already multiplied in by Changed
  const WireForm sent(push.sent_as, model_.variable_of(slice));
  std::array<std::byte, kUndoBlockElements * sizeof(double)> changed;
  alignas(float) std::array<std::byte, kUndoBlockElements * sizeof(float)> widened;
  if (head.mark < Observe(header().mark)) SaveAside(stripe_index);
  SaveHeader(stripe_index, StripeContent::kState, slot);
  for (size_t block = 0; block < parts.num_blocks(); ++block) {
    SaveBlock(parts, block, slot);
    const MutableByteSpan value = parts.block(0, block);
    ByteSpan change = sent.Part(bytes, value.data() - parts.parts[0].data(), value.size());
    change = sent.Widened(change, widened);
    if (trainable && push.change != nullptr)
      change =
          push.Changed(model_.variable_of(slice).dtype, value.data() - RawValue(slice).data(), value, change, changed);
    if (trainable) {
      ApplyBlock(slice, parts, block, change, step);
    } else {
      std::memcpy(value.data(), change.data(), change.size());
    }
    At(ArenaPoint::kBlockChanged);
  }
  if (Has(PlantedBug::kCommitBeforeHeader)) {
    Publish<uint64_t>(slot.valid, 0);
    At(ArenaPoint::kCommitted);
  }
  ++head.updates;
  if (trainable) ++head.t;
  head.last_sequence()[push.client] = push.sequence;
  At(ArenaPoint::kHeaderWritten);
  Publish<uint64_t>(slot.valid, 0);  // this is the commit
  At(ArenaPoint::kCommitted);
}

bool Arena::Apply(int slice_index, const Push& push, ByteSpan bytes, MutableByteSpan pulled, StripeRange range) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  const WireForm sent(push.sent_as, model_.variable_of(slice_index));
  const WireForm wanted(push.pulled_as, model_.variable_of(slice_index));
  MUSTER_CHECK(bytes.size() == sent.bytes(slice.bytes_of(range)));
  const int64_t first = slice.first_stripe + range.first;
  const int64_t count = std::min(range.count, slice.num_stripes - range.first);
  size_t from = 0;
  for (int64_t i = first; i < first + count; ++i) {
    const StripeParts parts = PartsOf(i);
    const MutableByteSpan value = parts.parts[0];
    {
      StripeLock lock(*this, i);
      if (Observe(header().generation) != push.generation) return false;
      if (stripe(i).last_sequence()[push.client] < push.sequence || Has(PlantedBug::kIgnoreSequence))
        UpdateStripe(i, push, parts, sent.Part(bytes, from, value.size()));
      if (!pulled.empty()) wanted.Write(value, wanted.Part(pulled, from, value.size()));
    }
    At(ArenaPoint::kUnlocked);
    from += value.size();
  }
  return true;
}

bool Arena::Accumulate(int slice_index, const Push& push, ByteSpan gradient) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  const WireForm sent(push.sent_as, model_.variable_of(slice_index));
  MUSTER_CHECK(slice.accumulator_offset != 0 && gradient.size() == sent.bytes(slice.bytes));
  const size_t stripe_bytes = sent.bytes(kStripeElements * slice.element_size);
  for (int64_t i = slice.first_stripe; i < slice.first_stripe + slice.num_stripes; ++i) {
    const ByteSpan part = gradient.first(std::min(stripe_bytes, gradient.size()));
    gradient = gradient.subspan(part.size());
    {
      StripeLock lock(*this, i);
      if (Observe(header().generation) != push.generation) return false;
      if (stripe(i).last_sequence()[push.client] < push.sequence || Has(PlantedBug::kIgnoreSequence))
        AccumulateStripe(i, push, part);
    }
    At(ArenaPoint::kUnlocked);
  }
  return true;
}

// Under the stripe's lock. Value and slots stay as they are, so nothing must be saved aside for a checkpoint.
void Arena::AccumulateStripe(int64_t stripe_index, const Push& push, ByteSpan gradient) {
  StripeHeader& head = stripe(stripe_index);
  UndoHeader& slot = undo(push.client);
  const DType dtype = WireForm(push.sent_as, model_.variable_of(layout_.SliceOf(stripe_index))).type();
  const StripeParts parts = PartsOf(stripe_index, StripeContent::kAccumulator);
  SaveHeader(stripe_index, StripeContent::kAccumulator, slot);
  for (size_t block = 0; block < parts.num_blocks(); ++block) {
    SaveBlock(parts, block, slot);
    AddGradient(dtype, parts.block(0, block), gradient.subspan(block * kUndoBlockElements * DTypeSize(dtype)),
                push.gradient_scale);
    At(ArenaPoint::kBlockChanged);
  }
  uint64_t& last = head.last_sequence()[push.client];
  if (last > client(push.client).numbers.last_applied) ++GateOf(head).abandoned;
  last = push.sequence;
  ++GateOf(head).gradients;
  At(ArenaPoint::kHeaderWritten);
  Publish<uint64_t>(slot.valid, 0);  // this is the commit
  At(ArenaPoint::kCommitted);
}

uint64_t Arena::ForgetUnfinished(StripeHeader& head) {
  uint64_t unfinished = 0;
  for (int i = 0; i < layout_.num_clients(); ++i) {
    uint64_t& last = head.last_sequence()[i];
    if (last <= client(i).numbers.last_applied) continue;
    last = client(i).numbers.last_applied;
    ++unfinished;
  }
  return unfinished;
}

// Under the stripe's lock, and only while values are loaded: needs no undo.
void Arena::EmptyAccumulator(int64_t stripe_index) {
  const MutableByteSpan sum = PartsOf(stripe_index, StripeContent::kAccumulator).parts[0];
  std::memset(sum.data(), 0, sum.size());
  ForgetUnfinished(stripe(stripe_index));
  GateOf(stripe(stripe_index)) = {.fired = header().gate.round, .gradients = 0, .abandoned = 0};
}

// Under the stripe's lock, whose owner has died: every valid undo slot of this stripe was left behind by it.
void Arena::RestoreStripe(int64_t stripe_index) {
  for (int writer = 0; writer < layout_.num_writers(); ++writer) {
    UndoHeader& slot = undo(writer);
    if (Observe(slot.valid) != 0 && slot.stripe == static_cast<uint64_t>(stripe_index)) RestoreFrom(slot);
  }
}

// May be interrupted and repeated: what is restored stays saved until the slot is dropped.
void Arena::RestoreFrom(UndoHeader& slot) {
  const bool rows = slot.content == StripeContent::kRows;
  if (rows) ArenaRows(*this).RestorePieces(slot);
  const StripeParts parts = PartsOf(static_cast<int64_t>(slot.stripe), slot.content);
  for (size_t block = 0; !rows && block + 1 < slot.valid; ++block) {
    const std::byte* from =
        reinterpret_cast<const std::byte*>(&slot) + layout_.undo_header_bytes() + parts.undo_offset(block);
    for (size_t part = 0; part < parts.count; ++part) {
      const MutableByteSpan bytes = parts.block(part, block);
      std::memcpy(bytes.data(), from, bytes.size());
      from += bytes.size();
    }
    At(ArenaPoint::kBlockRestored);
  }
  std::memcpy(&stripe(static_cast<int64_t>(slot.stripe)).updates, slot.saved_header(), header_bytes());
  At(ArenaPoint::kHeaderRestored);
  Publish<uint64_t>(slot.valid, 0);
  At(ArenaPoint::kUndoDropped);
}

void Arena::RecoverWriter(int writer) {
  if (model_.exchanges && Has(PlantedBug::kForgetAnswers)) {
    const uint64_t answers = layout_.exchange_offset(writer, layout_.slices()[0].value_offset);
    std::memset(
        base_ + answers, 0,
        layout_.slices().back().value_offset + layout_.slices().back().bytes - layout_.slices()[0].value_offset);
  }
  UndoHeader& slot = undo(writer);
  if (Observe(slot.valid) == 0 || Has(PlantedBug::kSkipOwnRecovery)) return;
  const uint64_t stripe_index = slot.stripe;
  StripeLock lock(*this, static_cast<int64_t>(stripe_index));  // restores it if its owner died with the lock
  // If the slot has moved on to another stripe, a living process moved it.
  if (Observe(slot.valid) != 0 && slot.stripe == stripe_index) RestoreFrom(slot);
}

void Arena::Count(const Counted& counted) { CountLock(*this).Commit(counted); }

uint64_t Arena::Mark() {
  const uint64_t mark = header().mark + 1;
  Publish(header().mark, mark);
  return mark;
}

// Under the stripe's lock. If it is interrupted, the next process repeats it: nothing has been changed since.
void Arena::SaveAside(int64_t stripe_index) {
  const StripeParts parts = PartsOf(stripe_index);
  for (size_t part = 0; part < parts.count; ++part) {
    const MutableByteSpan bytes = parts.parts[part];
    std::memcpy(base_ + layout_.aside_offset(bytes.data() - base_), bytes.data(), bytes.size());
  }
  std::memcpy(base_ + layout_.aside_step_offset(stripe_index), &stripe(stripe_index).t, sizeof(uint64_t));
  Publish(stripe(stripe_index).mark, Observe(header().mark));
}

bool Arena::FinishMark(uint64_t mark) {
  for (int64_t i = 0; i < layout_.num_stripes(); ++i) {
    if (Observe(header().mark) != mark) return false;
    StripeLock lock(*this, i);
    if (stripe(i).mark < mark) SaveAside(i);
  }
  return Observe(header().mark) == mark;
}

ByteSpan Arena::AsideValue(int slice) const {
  return {base_ + layout_.aside_offset(layout_.slices()[slice].value_offset), layout_.slices()[slice].bytes};
}

ByteSpan Arena::AsideSlot(int slice, int slot) const {
  return {base_ + layout_.aside_offset(layout_.slices()[slice].slot_offsets[slot]),
          layout_.slices()[slice].slot_bytes()};
}

std::vector<uint64_t> Arena::AsideSteps() const {
  std::vector<uint64_t> steps(layout_.num_stripes());
  if (!steps.empty()) std::memcpy(steps.data(), base_ + layout_.aside_step_offset(0), steps.size() * sizeof(uint64_t));
  return steps;
}

void Arena::DiscardAside() {
  const uint64_t mark = Observe(header().mark);
  for (int64_t i = 0; i < layout_.num_stripes(); ++i) {
    if (Observe(stripe(i).mark) >= mark) continue;
    StripeLock lock(*this, i);
    Publish(stripe(i).mark, mark);
  }
  memory_->Discard(layout_.aside_begin(), layout_.aside_bytes());
}

std::vector<uint64_t> Arena::HighestSequences(bool of_tables) {
  std::vector<uint64_t> highest(layout_.num_clients());
  for (int i = 0; i < layout_.num_clients(); ++i)
    highest[i] = std::max(client(i).numbers.last_applied, client(i).numbers.last_counted);
  for (size_t slice = 0; slice < model_.slices.size(); ++slice) {
    if (!of_tables && model_.variable(model_.slices[slice]).kind == VariableKind::kRows) continue;
    const int64_t first = layout_.slices()[slice].first_stripe;
    for (int64_t i = first; i < first + layout_.slices()[slice].num_stripes; ++i) {
      StripeLock lock(*this, i);
      for (size_t who = 0; who < highest.size(); ++who)
        highest[who] = std::max(highest[who], stripe(i).last_sequence()[who]);
    }
  }
  return highest;
}

bool Arena::HasApplied(int slice_index, int client, uint64_t sequence) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  for (int64_t i = slice.first_stripe; i < slice.first_stripe + slice.num_stripes; ++i)
    if (Observe(stripe(i).last_sequence()[client]) < sequence) return false;
  return true;
}

void Arena::Read(int slice_index, MutableByteSpan into, WirePrecision as) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  const WireForm wanted(as, model_.variable_of(slice_index));
  for (int64_t i = slice.first_stripe; i < slice.first_stripe + slice.num_stripes; ++i) {
    const MutableByteSpan value = PartsOf(i).parts[0];
    StripeLock lock(*this, i);
    wanted.Write(value, into.first(wanted.bytes(value.size())));
    into = into.subspan(wanted.bytes(value.size()));
  }
}

void Arena::ReadSlot(int slice_index, int slot, MutableByteSpan into) {
  const ArenaLayout::Slice& slice = layout_.slices()[slice_index];
  for (int64_t i = slice.first_stripe; i < slice.first_stripe + slice.num_stripes; ++i) {
    const MutableByteSpan bytes = PartsOf(i).parts[1 + slot];
    StripeLock lock(*this, i);
    std::memcpy(into.data(), bytes.data(), bytes.size());
    into = into.subspan(bytes.size());
  }
}

void Arena::Load(const Contents& contents) {
  Publish(header().state, ArenaState::kLoading);
  Publish(header().generation, contents.generation);  // from here on nobody can apply gradients of older values
  const uint64_t mark = Mark();                       // a checkpoint under way would mix old and new
  CountLock(*this).Restart(contents.global_step, contents.minibatches);
  for (int i = 0; i < layout_.num_clients(); ++i) client(i).numbers.contributed = 0;
  KeepWork(contents.work);
  ByteSpan values = contents.values;
  ByteSpan slots = contents.slots;
  for (size_t index = 0; index < model_.slices.size(); ++index) {
    const ArenaLayout::Slice& slice = layout_.slices()[index];
    const PlacedSlice& placed = model_.slices[index];
    const bool anew = !contents.with_rows && model_.variable(placed).kind == VariableKind::kRows;
    for (int64_t i = slice.first_stripe; i < slice.first_stripe + slice.num_stripes; ++i) {
      const StripeParts parts = PartsOf(i);
      const size_t from = (i - slice.first_stripe) * kStripeElements;
      StripeLock lock(*this, i);
      if (anew) {
        InitializeRows(model_.variable(placed), placed, static_cast<int64_t>(from), parts.parts[0]);
      } else {
        std::memcpy(parts.parts[0].data(), values.data() + from * slice.element_size, parts.parts[0].size());
      }
      for (size_t slot = 0; slot + 1 < parts.count; ++slot) {
        const MutableByteSpan into = parts.parts[1 + slot];
        if (slots.empty()) {
          InitializeSlot(i, static_cast<int>(slot), into);
        } else {
          std::memcpy(into.data(), slots.data() + slot * slice.slot_bytes() + from * slice.slot_element_size,
                      into.size());
        }
      }
      if (slice.accumulator_offset != 0) EmptyAccumulator(i);
      stripe(i).mark = mark;
      stripe(i).t = contents.steps.empty() ? 0 : contents.steps[i];
    }
    if (!anew) values = values.subspan(slice.bytes);
    if (!slots.empty()) slots = slots.subspan(slice.slot_offsets.size() * slice.slot_bytes());
  }
  Publish(header().state, ArenaState::kReady);
}

bool Arena::KeepWork(absl::string_view bytes) {
  uint64_t& kept = header().work_kept;
  if (bytes.empty() || bytes.size() + sizeof(uint64_t) > layout_.work_bytes()) {
    Publish<uint64_t>(kept, 0);
    return bytes.empty();
  }
  const uint64_t place = kept == 1 ? 2 : 1;
  std::byte* const at = base_ + layout_.work_offset(static_cast<int>(place - 1));
  const uint64_t size = bytes.size();
  std::memcpy(at, &size, sizeof size);
  std::memcpy(at + sizeof size, bytes.data(), bytes.size());
  Publish(kept, place);
  return true;
}

std::string Arena::KeptWork() {
  const uint64_t place = header().work_kept;
  if (place != 1 && place != 2) return {};
  const std::byte* const at = base_ + layout_.work_offset(static_cast<int>(place - 1));
  uint64_t size = 0;
  std::memcpy(&size, at, sizeof size);
  return {reinterpret_cast<const char*>(at) + sizeof size,
          std::min<uint64_t>(size, layout_.work_bytes() - sizeof size)};
}

std::vector<uint64_t> Arena::ReadSteps() {
  std::vector<uint64_t> steps(layout_.num_stripes());
  for (int64_t i = 0; i < layout_.num_stripes(); ++i) {
    StripeLock lock(*this, i);
    steps[i] = stripe(i).t;
  }
  return steps;
}

}  // namespace muster
