// What a ps holds: variables, slots, stripe headers, client records and counters in one ArenaMemory, laid out by
// ArenaLayout. Reads and updates go stripe by stripe under the stripe's process-shared mutex, so any number of threads
// and of processes that map it may use one arena at once. Counters and clients' numbers change under a CountLock.
//
// A process may be killed between any two instructions: a stripe, with its header, is then restored to its state before
// or after the update by the next process that locks it (docs/store/arena.md).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/bytes.h"
#include "muster/optim/update_rule.h"
#include "muster/store/arena/arena_format.h"
#include "muster/store/arena/arena_layout.h"
#include "muster/store/arena/arena_memory.h"
#include "muster/store/arena/arena_probe.h"
#include "muster/store/arena/arena_push.h"
#include "muster/store/arena/arena_rules.h"
#include "muster/store/arena/stripe_parts.h"

namespace muster {

// The changes when a push is finished; see CountJournal.
struct ArenaCount {
  int client = -1;  // -1: no client's numbers change
  ClientNumbers numbers{};
  ArenaCounters counters{};
  GateCounters gate{};
  uint64_t firing = 0;  // the new ArenaHeader::firing
};

// The values that Load writes into an arena.
struct ArenaContents {
  uint64_t generation = 0;  // higher than the previous one
  int64_t global_step = 0;
  int64_t minibatches = 0;
  ByteSpan values;                  // all slices in order
  ByteSpan slots;                   // each trainable slice's slots in order; empty: slots start afresh
  std::span<const uint64_t> steps;  // with slots: the rule's step counter of each stripe
  // Whether `values` includes tables of rows; if not, they start from their initializers.
  bool with_rows = true;
  absl::string_view work = {};  // the work queue's state to keep with them
};

class Arena {
 public:
  // Creates an arena in `memory`, whatever that held (null: in memory of its own), all zeros and in state kLoading;
  // Load must follow. ResourceExhausted says how many bytes were needed. `probe` may be null, and must outlive the
  // arena.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(const StoreModel& model, int num_clients,
                                                       std::shared_ptr<ArenaMemory> memory = nullptr,
                                                       ArenaProbe* probe = nullptr);
  // Attaches to the arena that `memory` holds, left there by a dead process or in use by another. NotFound: there is
  // none, or its loading was never finished. FailedPrecondition: it has another version or number of clients.
  static absl::StatusOr<std::unique_ptr<Arena>> Attach(std::shared_ptr<ArenaMemory> memory, int num_clients,
                                                       ArenaProbe* probe = nullptr);

  const ArenaLayout& layout() const { return layout_; }
  const StoreModel& model() const { return model_; }
  // Only for a slice that is updated.
  const RuleSpec& rule(int slice) const { return rules_[slice].spec; }
  const ArenaMemory& memory() const { return *memory_; }
  const std::shared_ptr<ArenaMemory>& shared_memory() const { return memory_; }
  ArenaHeader& header() { return *reinterpret_cast<ArenaHeader*>(base_); }
  ClientRecord& client(int client) { return *reinterpret_cast<ClientRecord*>(base_ + layout_.client_offset(client)); }

  // Undoes whatever a dead process left half done on behalf of `writer`. A process calls it first for each client that
  // it will write for: an undo slot is reused only when it is empty.
  void RecoverWriter(int writer);

  using Push = ArenaPush;

  // Trainable slice: value ← rule(value, slots, gradient). Buffer: value ← bytes. `bytes` has the length of those
  // stripes at the precision push.sent_as. If `pulled` isn't empty, each stripe is written there after its update (at
  // push.pulled_as), while it is still in the cache. False: other values were loaded meanwhile, and the rest of the
  // push was not applied.
  bool Apply(int slice, const Push& push, ByteSpan bytes, MutableByteSpan pulled, StripeRange range = {});

  // For the synchronous gate, whose rounds are in arena_rounds.h. Trainable slice: accumulator ← accumulator +
  // gradient, once for each push number of a client. False: as Apply.
  bool Accumulate(int slice, const Push& push, ByteSpan gradient);
  // Returns, by client, the highest push number that any stripe (also of tables) has seen, even of unfinished pushes.
  std::vector<uint64_t> HighestSequences(bool of_tables = true);

  // Whether all stripes of the slice have seen that push number of the client, or a later one.
  bool HasApplied(int slice, int client, uint64_t sequence);

  // Copies the slice out at the precision `as`; each stripe is of one moment.
  void Read(int slice, MutableByteSpan into, WirePrecision as = WirePrecision::kFull);
  // Copies slot `slot` of a trainable slice out, likewise.
  void ReadSlot(int slice, int slot, MutableByteSpan into);

  using Counted = ArenaCount;
  class CountLock;  // count_lock.h
  class Locks;      // arena_locks.h
  // Changes the counters and a client's numbers, together or not at all. Only the ps process calls it, for models that
  // no direct worker counts for.
  void Count(const Counted& counted);

  // Sets a checkpoint's mark: from now on, any process that changes a stripe first saves it aside. Returns the mark's
  // number. Only the ps process calls it; it ends an earlier mark.
  uint64_t Mark();
  // Saves the stripes aside that nobody has saved yet; any thread may call it. Afterwards AsideValue and the others
  // return the state at the mark, until the next mark. False: another mark was set meanwhile.
  bool FinishMark(uint64_t mark);
  ByteSpan AsideValue(int slice) const;
  ByteSpan AsideSlot(int slice, int slot) const;
  std::vector<uint64_t> AsideSteps() const;
  // Ends the mark, finished or not, and frees the aside memory, which then reads as zeros. Only for the ps process.
  void DiscardAside();
  using Contents = ArenaContents;
  // Replaces all values, for example from a checkpoint. The state is kLoading until it returns; gradients computed with
  // older values can't be applied any more. Only the ps process calls it; the lengths must be right.
  void Load(const Contents& contents);
  // Stores the work queue's state, replacing it as a whole, for a ps that is restarted on this memory (KeptWork). Only
  // the ps process calls it. False: there is no room for it, and a restarted ps finds none.
  bool KeepWork(absl::string_view bytes);
  std::string KeptWork();
  // Returns the rule's step counter of every stripe, in order.
  std::vector<uint64_t> ReadSteps();

 private:
  class StripeLock;        // stripe_lock.h
  friend class ArenaRows;  // the same for single rows
  friend class ArenaRounds;
  Arena(ArenaLayout layout, StoreModel model, std::vector<SliceRule> rules, std::shared_ptr<ArenaMemory> memory,
        ArenaProbe* probe);

  StripeHeader& stripe(int64_t index) { return *reinterpret_cast<StripeHeader*>(base_ + layout_.stripe_offset(index)); }
  UndoHeader& undo(int writer) { return *reinterpret_cast<UndoHeader*>(base_ + layout_.undo_offset(writer)); }
  size_t header_bytes() const { return sizeof(StripeHeader) - offsetof(StripeHeader, updates) + client_bytes(); }
  size_t client_bytes() const { return layout_.stripe_tail_bytes(); }
  StripeGate& GateOf(StripeHeader& head) {
    return *reinterpret_cast<StripeGate*>(head.last_sequence() + layout_.num_clients());
  }
  StripeParts PartsOf(int64_t stripe, StripeContent content = StripeContent::kState);
  void InitializeStripes();
  MutableByteSpan RawValue(int slice);
  MutableByteSpan RawSlot(int slice, int slot);
  void InitializeSlot(int64_t stripe, int slot, MutableByteSpan bytes);
  // Under the stripe's lock.
  void UpdateStripe(int64_t stripe, const Push& push, const StripeParts& parts, ByteSpan bytes);
  void AccumulateStripe(int64_t stripe, const Push& push, ByteSpan gradient);
  // Removes from the stripe the numbers of pushes that were begun and never finished. Returns how many there were.
  uint64_t ForgetUnfinished(StripeHeader& head);
  void EmptyAccumulator(int64_t stripe);
  void SaveHeader(int64_t stripe, StripeContent content, UndoHeader& slot);
  void SaveBlock(const StripeParts& parts, size_t block, UndoHeader& slot);
  void ApplyBlock(int slice, const StripeParts& parts, size_t block, ByteSpan bytes, const UpdateRule::Step& step);
  void RestoreStripe(int64_t stripe);
  void RestoreFrom(UndoHeader& slot);
  void SaveAside(int64_t stripe);
  void At(ArenaPoint point) {
    if (probe_ != nullptr) probe_->At(point);
  }
  bool Has(PlantedBug bug) const { return probe_ != nullptr && probe_->Has(bug); }

  const ArenaLayout layout_;
  const StoreModel model_;
  const std::vector<SliceRule> rules_;
  const std::shared_ptr<ArenaMemory> memory_;
  std::byte* const base_;
  ArenaProbe* const probe_;
};

}  // namespace muster
