// What a ps holds: variables, slots, stripe headers, client records and counters in one ArenaMemory, laid out by
// ArenaLayout. Reads and updates go stripe by stripe under the stripe's process-shared mutex, so any number of threads
// and of processes that map it may use one arena at once. Counters and clients' numbers change under a CountLock.
//
// Any of them may be killed between any two instructions: a stripe is then as it was before the update or as it is
// after it, with its header, and whoever comes next sees to it (docs/store/arena.md).
#pragma once

#include <memory>
#include <span>
#include <string>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "absl/strings/string_view.h"
#include "muster/base/bytes.h"
#include "muster/optim/update_rule.h"
#include "muster/store/arena_format.h"
#include "muster/store/arena_layout.h"
#include "muster/store/arena_memory.h"
#include "muster/store/arena_probe.h"
#include "muster/store/arena_push.h"
#include "muster/store/arena_rules.h"
#include "muster/store/stripe_parts.h"

namespace muster {

// What changes when a push is done with; see CountJournal.
struct ArenaCount {
  int client = -1;  // -1: nobody's numbers change
  ClientNumbers numbers{};
  ArenaCounters counters{};
  GateCounters gate{};
  uint64_t firing = 0;  // ArenaHeader::firing from then on
};

// What Load brings.
struct ArenaContents {
  uint64_t generation = 0;  // higher than the one before
  int64_t global_step = 0;
  int64_t minibatches = 0;
  ByteSpan values;                  // of the slices in order
  ByteSpan slots;                   // of each trainable slice its slots in order; empty: they begin anew
  std::span<const uint64_t> steps;  // with slots: the rule's step counter of each stripe
  // `values` has those of tables of rows too; false: they begin as their initializers say.
  bool with_rows = true;
  absl::string_view work = {};  // what is to be kept of the work queue with them
};

class Arena {
 public:
  // A new one in `memory`, whatever that held (null: in memory of its own), in the state kLoading: all zeros, to be
  // followed by Load. ResourceExhausted says how many bytes were needed. `probe` may be null, and must outlive the
  // arena.
  static absl::StatusOr<std::unique_ptr<Arena>> Create(const StoreModel& model, int num_clients,
                                                       std::shared_ptr<ArenaMemory> memory = nullptr,
                                                       ArenaProbe* probe = nullptr);
  // The one that `memory` holds, left there by a process that is gone, or in use by another. NotFound: it holds none,
  // or one whose loading was never finished. FailedPrecondition: one of another version or number of clients.
  static absl::StatusOr<std::unique_ptr<Arena>> Attach(std::shared_ptr<ArenaMemory> memory, int num_clients,
                                                       ArenaProbe* probe = nullptr);

  const ArenaLayout& layout() const { return layout_; }
  const StoreModel& model() const { return model_; }
  // Of a slice that is updated.
  const RuleSpec& rule(int slice) const { return rules_[slice].spec; }
  const ArenaMemory& memory() const { return *memory_; }
  const std::shared_ptr<ArenaMemory>& shared_memory() const { return memory_; }
  ArenaHeader& header() { return *reinterpret_cast<ArenaHeader*>(base_); }
  ClientRecord& client(int client) { return *reinterpret_cast<ClientRecord*>(base_ + layout_.client_offset(client)); }

  // Whatever a dead process left half done on behalf of `writer` is undone. The first thing a process does for each
  // client that it will write for: an undo slot is used again only when it is empty.
  void RecoverWriter(int writer);

  using Push = ArenaPush;

  // Trainable slice: value ← rule(value, slots, gradient). Buffer: value ← bytes. `bytes` is as long as those stripes,
  // as they travel (push.sent_as). With a non-empty `pulled`, they are written there after the update (push.pulled_as),
  // one by one while they are warm. False: other values have been loaded since, and the rest of the push was not
  // applied.
  bool Apply(int slice, const Push& push, ByteSpan bytes, MutableByteSpan pulled, StripeRange range = {});

  // The synchronous gate, whose rounds are ArenaRounds' (arena_rounds.h). Trainable slice: accumulator ← accumulator +
  // gradient, once for each number of a client. False: as Apply.
  bool Accumulate(int slice, const Push& push, ByteSpan gradient);
  // By client: the highest number of a push that any stripe (of tables too) has seen, be it never finished.
  std::vector<uint64_t> HighestSequences(bool of_tables = true);

  // Whether all stripes of the slice have seen that number of the client, or a later one.
  bool HasApplied(int slice, int client, uint64_t sequence);

  // Writes the slice out as it travels; each stripe is of one moment.
  void Read(int slice, MutableByteSpan into, WirePrecision as = WirePrecision::kFull);
  // Slot `slot` of a trainable slice, likewise.
  void ReadSlot(int slice, int slot, MutableByteSpan into);

  using Counted = ArenaCount;
  class CountLock;  // count_lock.h
  // The counters and numbers of a client, changed together or not at all. By the ps process only, for models that no
  // direct worker counts for.
  void Count(const Counted& counted);

  // A checkpoint's mark: from now on whoever changes a stripe first saves it aside. Returns the mark's number. By the
  // ps process only; ends an earlier mark.
  uint64_t Mark();
  // Saves those stripes aside that nobody has saved yet; any thread. After it AsideValue and the others hold the state
  // at the mark, until the next one. False: another mark has come meanwhile.
  bool FinishMark(uint64_t mark);
  ByteSpan AsideValue(int slice) const;
  ByteSpan AsideSlot(int slice, int slot) const;
  std::vector<uint64_t> AsideSteps() const;
  // Ends the mark, finished or not, and gives its memory back: what was aside reads as zeros. By the ps process only.
  void DiscardAside();

  using Contents = ArenaContents;
  // Other values for all that it holds, from a checkpoint say. In the state kLoading until it returns; who has computed
  // with older values can't apply them any more. By the ps process only; the lengths must be right.
  void Load(const Contents& contents);
  // What a ps that is started on this memory finds of its work queue; replaced as a whole, by the ps process only.
  // False: there is no room for it, and none is found.
  bool KeepWork(absl::string_view bytes);
  std::string KeptWork();
  // The rule's step counter of every stripe, in order.
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
  // Of this stripe's numbers those of pushes that were begun and never finished. Returns how many there were.
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
