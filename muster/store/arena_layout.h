// Where everything lies in a ps's arena: offsets computed from the model, the rule's slots and the number of clients.
// The arena itself holds no pointers, so any process that computes the same layout (the hash in its header says so) can
// map it. A value, no thread safety needed.
//
//   header | client records | work queue | stripe headers | values | slots | accumulators | undo slots, one a writer |
//   exchanges | gradients, one a client | aside | model
//
// A stripe is kStripeElements elements of one slice with their slots; it never spans slices. A writer is a client (or
// the ps on its behalf), or the synchronous gate. `aside` mirrors values and slots, and the stripes' step counters, as
// they were at a checkpoint's mark; its pages exist only while a checkpoint is written. docs/store/arena.md has the
// bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/store/arena_format.h"
#include "muster/store/model.h"
#include "muster/store/stripe_range.h"

namespace muster {

constexpr int64_t kStripeElements = 16 << 10;
// An update saves and changes a stripe in blocks of so many elements: what is saved, with the slots of a rule like
// Adam, is still in the first-level cache when it is changed.
constexpr int64_t kUndoBlockElements = 1 << 10;
// What parts of the arena are aligned to, bytes.
constexpr uint64_t kCacheLine = 64;

class ArenaLayout {
 public:
  // InvalidArgument as ValidateModel, whose limits also keep every offset far below 64 bits.
  static absl::StatusOr<ArenaLayout> Make(const StoreModel& model, int num_clients);

  struct Slice {
    int64_t first_stripe = 0;
    int64_t num_stripes = 0;
    uint64_t value_offset = 0;           // in the arena; 64-byte aligned
    std::vector<uint64_t> slot_offsets;  // one a slot of its rule; none for what isn't trainable
    // As wide as a slot; 0: none, for there is no synchronous gate, or it isn't trainable.
    uint64_t accumulator_offset = 0;
    uint64_t gradient_offset = 0;  // in a client's gradients; with a synchronous gate, and trainable
    size_t element_size = 0;
    size_t slot_element_size = 0;  // SlotDType
    int64_t elements = 0;
    uint64_t bytes = 0;

    uint64_t slot_bytes() const { return elements * slot_element_size; }  // of one slot
    // Of value and slots together.
    size_t bytes_per_element() const { return element_size + slot_offsets.size() * slot_element_size; }
    // Of the value, in those stripes, which must be there.
    uint64_t bytes_of(StripeRange range) const {
      const int64_t from = range.first * kStripeElements;
      const int64_t most = elements - from;
      const int64_t asked = range.count >= num_stripes ? most : range.count * kStripeElements;
      return static_cast<uint64_t>(std::min(asked, most)) * element_size;
    }
  };

  const std::vector<Slice>& slices() const { return slices_; }
  int num_clients() const { return num_clients_; }
  // Who may be in the middle of an update: the clients, and behind them the synchronous gate if there is one.
  int num_writers() const { return num_clients_ + (gated_ ? 1 : 0); }
  // Behind a stripe's StripeHeader: the numbers of the clients, and its StripeGate.
  size_t stripe_tail_bytes() const { return num_clients_ * sizeof(uint64_t) + (gated_ ? sizeof(StripeGate) : 0); }
  int64_t num_stripes() const { return num_stripes_; }

  uint64_t client_offset(int client) const;
  // One of the two places for what the ps keeps of the work queue: u64 bytes, and these.
  uint64_t work_offset(int place) const { return work_offset_ + place * work_bytes_; }
  uint64_t work_bytes() const { return work_bytes_; }
  uint64_t stripe_offset(int64_t stripe) const { return stripes_offset_ + stripe * stripe_stride_; }
  uint64_t undo_offset(int writer) const { return undo_offset_ + writer * undo_stride_; }
  uint64_t undo_stride() const { return undo_stride_; }
  // From an undo slot's begin to its saved blocks.
  uint64_t undo_header_bytes() const { return undo_header_bytes_; }
  // Where the copy at a checkpoint's mark of the byte at `offset` (of a value or a slot) lies.
  uint64_t aside_offset(uint64_t offset) const { return aside_offset_ + (offset - values_offset_); }
  // … and that of the stripe's step counter.
  uint64_t aside_step_offset(int64_t stripe) const { return aside_steps_offset_ + stripe * sizeof(uint64_t); }
  // Where, for a client, what its last exchange made of the byte at `offset` (of a value) lies. With exchanges only.
  uint64_t exchange_offset(int client, uint64_t offset) const {
    return exchange_offset_ + client * exchange_stride_ + (offset - values_offset_);
  }
  // With a synchronous gate: where a client's GradientHeader lies, and its gradient of a trainable slice.
  uint64_t gradients_offset(int client) const { return gradients_offset_ + client * gradients_stride_; }
  uint64_t gradient_offset(int client, int slice) const {
    return gradients_offset(client) + slices_[slice].gradient_offset;
  }
  // Of all clients' gradients. Only workers on the ps's host touch theirs.
  uint64_t gradients_bytes() const { return num_clients_ * gradients_stride_; }
  uint64_t aside_begin() const { return aside_offset_; }
  uint64_t aside_bytes() const { return total_bytes_ - aside_offset_; }
  // Without the model's description, which comes behind it.
  uint64_t total_bytes() const { return total_bytes_; }
  // The slice that a stripe belongs to.
  int SliceOf(int64_t stripe) const;
  // Of values (slots not counted).
  uint64_t value_bytes() const { return value_bytes_; }
  uint64_t slot_bytes() const { return slot_bytes_; }
  // Two arenas with the same hash have everything at the same place and of the same meaning.
  uint64_t hash() const { return hash_; }

 private:
  // From `offset` on; returns where they end. The largest stripe, in bytes, gets larger by them.
  uint64_t PlaceAccumulators(const StoreModel& model, uint64_t offset, uint64_t& largest_stripe);
  // Of all clients, from `offset` on; returns where they end.
  uint64_t PlaceGradients(uint64_t offset);

  std::vector<Slice> slices_;
  int num_clients_ = 0;
  bool gated_ = false;
  int64_t num_stripes_ = 0;
  uint64_t work_offset_ = 0;
  uint64_t work_bytes_ = 0;
  uint64_t stripe_stride_ = 0;
  uint64_t stripes_offset_ = 0;
  uint64_t values_offset_ = 0;
  uint64_t undo_offset_ = 0;
  uint64_t undo_header_bytes_ = 0;
  uint64_t undo_stride_ = 0;
  uint64_t exchange_offset_ = 0;
  uint64_t exchange_stride_ = 0;
  uint64_t gradients_offset_ = 0;
  uint64_t gradients_stride_ = 0;
  uint64_t aside_offset_ = 0;
  uint64_t aside_steps_offset_ = 0;
  uint64_t total_bytes_ = 0;
  uint64_t value_bytes_ = 0;
  uint64_t slot_bytes_ = 0;
  uint64_t hash_ = 0;
};

}  // namespace muster
