// The memory of a ps: variables, slots, stripe headers, client records and counters in one memfd, laid out by
// ArenaLayout. Reads and updates go stripe by stripe under the stripe's process-shared mutex, so any number of threads
// (and processes that map it) may use one arena at once; the counters of the header belong to the ps process.
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/optim/update_rule.h"
#include "muster/store/arena_format.h"
#include "muster/store/arena_layout.h"

namespace muster {

class Arena {
 public:
  // A new one, zeroed, its slots at the rule's initial values. ResourceExhausted says how many bytes were needed.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(const StoreModel& model, int num_clients);
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  const ArenaLayout& layout() const { return layout_; }
  const StoreModel& model() const { return model_; }
  ArenaHeader& header() { return *reinterpret_cast<ArenaHeader*>(base_); }
  ClientRecord& client(int client) { return *reinterpret_cast<ClientRecord*>(base_ + layout_.client_offset(client)); }

  struct Push {
    int client = 0;
    uint64_t sequence = 0;  // a stripe that has seen this number already is left as it is
    double learning_rate = 0;
  };

  // Trainable slice: value ← rule(value, slots, gradient). Buffer: value ← bytes. `bytes` is as long as the slice.
  // With a non-empty `pulled`, the slice's bytes after the update are copied there, stripe by stripe while they are
  // warm.
  void Apply(int slice, const Push& push, ByteSpan bytes, MutableByteSpan pulled);

  // Copies the slice out; each stripe is of one moment.
  void Read(int slice, MutableByteSpan into);
  // Slot `slot` of a trainable slice, likewise.
  void ReadSlot(int slice, int slot, MutableByteSpan into);

  // Initialisation: overwrites value, slot, step counter; nobody else may use the arena meanwhile.
  MutableByteSpan RawValue(int slice);
  MutableByteSpan RawSlot(int slice, int slot);
  // The rule's step counter of every stripe, in order.
  void SetSteps(const std::vector<uint64_t>& steps);
  std::vector<uint64_t> ReadSteps();

 private:
  class StripeLock;
  Arena(ArenaLayout layout, StoreModel model, std::unique_ptr<UpdateRule> rule, int fd, std::byte* base);

  StripeHeader& stripe(int64_t index) { return *reinterpret_cast<StripeHeader*>(base_ + layout_.stripe_offset(index)); }
  void InitializeStripes();
  void InitializeSlots();

  const ArenaLayout layout_;
  const StoreModel model_;
  const std::unique_ptr<UpdateRule> rule_;
  const int fd_;
  std::byte* const base_;
};

}  // namespace muster
