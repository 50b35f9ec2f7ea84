#include "muster/store/arena/arena_layout.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/fnv1a.h"
#include "muster/base/status_macros.h"
#include "muster/store/arena/arena_format.h"
#include "muster/store/messages/work_messages.h"

namespace muster {
namespace {

constexpr uint64_t kPage = 4096;
// Room for the work queue's state: returned units from more workers than there are, and what each client may have.
constexpr uint64_t kWorkBytes = 64 << 10;
constexpr uint64_t kWorkBytesOfClient = 64 * kMostWorkInHand + 128;

uint64_t Align(uint64_t offset, uint64_t to) { return (offset + to - 1) / to * to; }

std::string Describe(const StoreModel& model, int num_clients) {
  std::string text = absl::StrCat("arena ", kArenaVersion, " clients ", num_clients, " stripe ", kStripeElements);
  if (model.gated()) absl::StrAppend(&text, " gate");
  if (model.exchanges) absl::StrAppend(&text, " exchange");
  for (const PlacedSlice& slice : model.slices) {
    const VariableSpec& variable = model.variable(slice);
    absl::StrAppend(&text, "\n", variable.name, " ", DescribeType(variable), " kind ", static_cast<int>(variable.kind),
                    " from ", slice.offset, " count ", slice.elements, " step ", slice.row_step);
    for (const SlotSpec& slot : model.slots(slice)) absl::StrAppend(&text, " slot ", slot.name);
  }
  return text;
}

// Rows that lie in a stripe: whole ones, and at each end one that a neighbouring stripe shares.
uint64_t MaxRowPieces(int64_t row_elements) { return kStripeElements / row_elements + 2; }

}  // namespace

int ArenaLayout::SliceOf(int64_t stripe) const {
  const auto after = std::upper_bound(slices_.begin(), slices_.end(), stripe,
                                      [](int64_t s, const Slice& slice) { return s < slice.first_stripe; });
  // Slices without elements have no stripes and the same first stripe as the next slice: the last one has the stripe.
  return static_cast<int>(after - slices_.begin()) - 1;
}

uint64_t ArenaLayout::client_offset(int client) const {
  return Align(sizeof(ArenaHeader), kCacheLine) + client * Align(sizeof(ClientRecord), kCacheLine);
}

uint64_t ArenaLayout::PlaceAccumulators(const StoreModel& model, uint64_t offset, uint64_t& largest_stripe) {
  for (size_t i = 0; i < slices_.size(); ++i) {
    Slice& slice = slices_[i];
    if (model.variable(model.slices[i]).kind != VariableKind::kTrainable) continue;
    slice.accumulator_offset = offset;
    offset = Align(offset + slice.slot_bytes(), kCacheLine);
    largest_stripe = std::max<uint64_t>(largest_stripe, std::min(slice.elements, kStripeElements) *
                                                            (slice.bytes_per_element() + slice.slot_element_size));
  }
  return offset;
}

uint64_t ArenaLayout::PlaceGradients(uint64_t offset) {
  gradients_offset_ = offset;
  if (!gated_) return offset;
  uint64_t end = Align(sizeof(GradientHeader) + slices_.size() * sizeof(PublishedSlice), kPage);
  for (Slice& slice : slices_) {
    if (slice.accumulator_offset == 0) continue;
    slice.gradient_offset = end;
    end = Align(end + slice.bytes, kCacheLine);
  }
  gradients_stride_ = Align(end, kPage);
  return offset + gradients_bytes();
}

absl::StatusOr<ArenaLayout> ArenaLayout::Make(const StoreModel& model, int num_clients) {
  RETURN_IF_ERROR(ValidateModel(model));
  ArenaLayout layout;
  layout.num_clients_ = num_clients;
  layout.gated_ = model.gated();
  layout.work_offset_ = Align(layout.client_offset(num_clients), kPage);
  layout.work_bytes_ = Align(kWorkBytes + num_clients * kWorkBytesOfClient, kPage);
  layout.stripes_offset_ = layout.work_offset(2);
  layout.stripe_stride_ = Align(sizeof(StripeHeader) + layout.stripe_tail_bytes(), kCacheLine);
  for (const PlacedSlice& placed : model.slices) {
    Slice slice;
    slice.first_stripe = layout.num_stripes_;
    slice.num_stripes = (placed.elements + kStripeElements - 1) / kStripeElements;
    slice.element_size = DTypeSize(model.variable(placed).dtype);
    slice.slot_element_size = DTypeSize(SlotDType(model.variable(placed).dtype));
    slice.elements = placed.elements;
    slice.bytes = placed.bytes;
    layout.num_stripes_ += slice.num_stripes;
    layout.slices_.push_back(std::move(slice));
  }
  uint64_t offset = Align(layout.stripe_offset(layout.num_stripes_), kPage);
  layout.values_offset_ = offset;
  for (Slice& slice : layout.slices_) {
    slice.value_offset = offset;
    offset = Align(offset + slice.bytes, kCacheLine);
    layout.value_bytes_ += slice.bytes;
  }
  offset = Align(offset, kPage);
  if (model.exchanges) layout.exchange_stride_ = offset - layout.values_offset_;
  uint64_t largest_stripe = 0;
  for (size_t i = 0; i < layout.slices_.size(); ++i) {
    Slice& slice = layout.slices_[i];
    for (size_t slot = model.slots(model.slices[i]).size(); slot > 0; --slot) {
      slice.slot_offsets.push_back(offset);
      offset = Align(offset + slice.slot_bytes(), kCacheLine);
      layout.slot_bytes_ += slice.slot_bytes();
    }
    uint64_t stripe = std::min(slice.elements, kStripeElements) * slice.bytes_per_element();
    const VariableSpec& variable = model.variable(model.slices[i]);
    if (variable.kind == VariableKind::kRows) stripe += MaxRowPieces(variable.row_elements()) * sizeof(uint64_t);
    largest_stripe = std::max(largest_stripe, stripe);
  }
  const uint64_t state_end = offset;
  if (layout.gated_) offset = layout.PlaceAccumulators(model, Align(offset, kPage), largest_stripe);
  layout.undo_offset_ = Align(offset, kPage);
  layout.undo_header_bytes_ = Align(sizeof(UndoHeader) + layout.stripe_stride_, kPage);
  layout.undo_stride_ = layout.undo_header_bytes_ + Align(largest_stripe, kPage);
  layout.exchange_offset_ = layout.undo_offset(layout.num_writers());
  layout.aside_offset_ = layout.PlaceGradients(layout.exchange_offset_ + num_clients * layout.exchange_stride_);
  layout.aside_steps_offset_ = Align(layout.aside_offset(state_end), kPage);
  layout.total_bytes_ = Align(layout.aside_step_offset(layout.num_stripes_), kPage);
  layout.hash_ = Fnv1a(Describe(model, num_clients));
  return layout;
}

}  // namespace muster
