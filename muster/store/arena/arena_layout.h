// Where everything lies in a ps's arena: offsets computed from the model, the rule's slots and the number of clients.
// The arena itself holds no pointers, so any process that computes the same layout (see the hash in its header) can map
// it. A value, no thread safety needed.
//
//   header | client records | work queue | stripe headers | values | slots | accumulators | undo slots, one a writer |
//   exchanges | gradients, one a client | aside | model
//
// A stripe is kStripeElements elements of one slice with their slots; it never spans slices. A writer is a client (or
// the ps on its behalf), or the synchronous gate. `aside` mirrors values, slots and the stripes' step counters as they
// were at a checkpoint's mark; its pages exist only while a checkpoint is written. docs/store/arena.md has the
// bytes.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/store/arena/arena_format.h"
#include "muster/store/model/model.h"
#include "muster/store/model/stripe_range.h"

namespace muster {

constexpr int64_t kStripeElements = 16 << 10;
// An update saves and changes a stripe in blocks of this many elements: a saved block, with the slots of a rule like
// Adam, is still in the first-level cache when it is changed.
constexpr int64_t kUndoBlockElements = 1 << 10;
// Alignment of the arena's parts, in bytes.
constexpr uint64_t kCacheLine = 64;

class ArenaLayout {
 public:
  // Returns InvalidArgument as ValidateModel does, whose limits also keep every offset far below 64 bits.
  static absl::StatusOr<ArenaLayout> Make(const StoreModel& model, int num_clients);

  struct Slice {
    int64_t first_stripe = 0;
    int64_t num_stripes = 0;
    uint64_t value_offset = 0;           // in the arena; 64-byte aligned
    std::vector<uint64_t> slot_offsets;  // one per slot of its rule; none if it isn't trainable
    // As wide as a slot; 0: none, because there is no synchronous gate or the slice isn't trainable.
    uint64_t accumulator_offset = 0;
    uint64_t gradient_offset = 0;  // within a client's gradients; only with a synchronous gate, and if trainable
    size_t element_size = 0;
    size_t slot_element_size = 0;  // SlotDType
    int64_t elements = 0;
    uint64_t bytes = 0;

    uint64_t slot_bytes() const { return elements * slot_element_size; }  // of one slot
    // Bytes of value and slots together.
    size_t bytes_per_element() const { return element_size + slot_offsets.size() * slot_element_size; }
    // Bytes of the value in those stripes, which must exist.
    uint64_t bytes_of(StripeRange range) const {
      const int64_t from = range.first * kStripeElements;
      const int64_t most = elements - from;
      const int64_t asked = range.count >= num_stripes ? most : range.count * kStripeElements;
      return static_cast<uint64_t>(std::min(asked, most)) * element_size;
    }
  };

  const std::vector<Slice>& slices() const { return slices_; }
  int num_clients() const { return num_clients_; }
  // Writers that may be in the middle of an update: the clients, then the synchronous gate if there is one.
  int num_writers() const { return num_clients_ + (gated_ ? 1 : 0); }
  // Bytes after a stripe's StripeHeader: the numbers of the clients, and its StripeGate.
  size_t stripe_tail_bytes() const { return num_clients_ * sizeof(uint64_t) + (gated_ ? sizeof(StripeGate) : 0); }
  int64_t num_stripes() const { return num_stripes_; }

  uint64_t client_offset(int client) const;
  // One of the two places for the ps's copy of the work queue's state: its length in bytes as u64, then the bytes.
  uint64_t work_offset(int place) const { return work_offset_ + place * work_bytes_; }
  uint64_t work_bytes() const { return work_bytes_; }
  uint64_t stripe_offset(int64_t stripe) const { return stripes_offset_ + stripe * stripe_stride_; }
  uint64_t undo_offset(int writer) const { return undo_offset_ + writer * undo_stride_; }
  // Bytes from the start of an undo slot to its saved blocks.
  uint64_t undo_header_bytes() const { return undo_header_bytes_; }
  // Where the aside copy of the byte at `offset` (of a value or a slot) lies.
  uint64_t aside_offset(uint64_t offset) const { return aside_offset_ + (offset - values_offset_); }
  // Where the aside copy of the stripe's step counter lies.
  uint64_t aside_step_offset(int64_t stripe) const { return aside_steps_offset_ + stripe * sizeof(uint64_t); }
  // Where the result of a client's last exchange for the byte at `offset` (of a value) lies. Only with exchanges.
  uint64_t exchange_offset(int client, uint64_t offset) const {
    return exchange_offset_ + client * exchange_stride_ + (offset - values_offset_);
  }
  // With a synchronous gate: where a client's GradientHeader lies, and its gradient of a trainable slice.
  uint64_t gradients_offset(int client) const { return gradients_offset_ + client * gradients_stride_; }
  uint64_t gradient_offset(int client, int slice) const {
    return gradients_offset(client) + slices_[slice].gradient_offset;
  }
  // Bytes of all clients' gradients. Only those of workers on the ps's host are ever touched.
  uint64_t gradients_bytes() const { return num_clients_ * gradients_stride_; }
  uint64_t aside_begin() const { return aside_offset_; }
  uint64_t aside_bytes() const { return total_bytes_ - aside_offset_; }
  // Without the model's description, which follows.
  uint64_t total_bytes() const { return total_bytes_; }
  // Returns the slice that a stripe belongs to.
  int SliceOf(int64_t stripe) const;
  // Bytes of all values (without slots).
  uint64_t value_bytes() const { return value_bytes_; }
  uint64_t slot_bytes() const { return slot_bytes_; }
  // Arenas with the same hash have everything at the same place and with the same meaning.
  uint64_t hash() const { return hash_; }

 private:
  // Places the accumulators from `offset` on and returns where they end. Adds them to `largest_stripe`, in bytes.
  uint64_t PlaceAccumulators(const StoreModel& model, uint64_t offset, uint64_t& largest_stripe);
  // Places all clients' gradients from `offset` on and returns where they end.
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
