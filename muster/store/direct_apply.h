// A worker's way to the variables on ps of its own host: it applies its updates itself, in their arenas, and counts
// them there. The same steps and numbers as through the ps (docs/store/direct_apply.md), without a message.
// Used by one thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/arena_guest.h"
#include "muster/store/arena_rows.h"
#include "muster/store/divided_round.h"
#include "muster/store/store_client.h"
#include "muster/store/work_range.h"

namespace muster {

class DirectApply {
 public:
  // The arena of the next ps, in order. `slices` as in the arena.
  void Add(std::unique_ptr<ArenaGuest> guest, int client, std::vector<SlicePiece> slices);
  ArenaGuest& guest(int ps) { return *places_[ps].guest; }
  // Of the values that this worker has of that ps.
  uint64_t pulled_version(int ps) const { return places_[ps].pulled_version; }

  // The processes of all ps are there.
  bool hosts_alive() const;
  bool ended();
  // With a synchronous gate: the round that ps 0 collects.
  uint64_t round();
  // … and one of this worker there; see DividedRound.
  DividedRound MakeRound(const DividedRound::Numbers& numbers);
  // What slice `slice` of ps `ps` is of the bound memory.
  const SlicePiece& piece(int ps, int slice) const { return places_[ps].slices[slice]; }
  // ps 0 has a path for the chief, who has to ask for it.
  bool load_requested();

  // Says on all ps that the update of that number is under way, before anything of it is applied.
  void Begin(uint64_t sequence);
  // A ps that is held for the cut of a checkpoint and doesn't let this update in.
  std::optional<int> HeldBackBy(uint64_t sequence);

  struct Push {
    uint64_t sequence = 0;
    uint64_t generation = 0;            // of the values that it was computed from
    const std::vector<double>* scales;  // one a variable; empty: 1 for all
    WorkRange work = {};
  };
  struct RowsPush {
    uint64_t sequence = 0;
    uint64_t generation = 0;
    double scale = 1;
  };
  // As StoreClient::PushPull, but for gates. What counts an update needs Begin, and no ps that holds it back. Aborted:
  // other values have been loaded; part of it may have been applied to the older ones.
  absl::StatusOr<StorePushResult> PushPull(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                           const StorePushOptions& options, const Push& push);

  // Rows of a table, slice `slice` of a ps. Aborted: other values than those of `generation`; then some rows may have
  // been updated, as by PushPull.
  [[nodiscard]] absl::Status GatherRows(int ps, int slice, const RowReads& reads, MutableByteSpan into);
  [[nodiscard]] absl::Status PushRows(int ps, int slice, const RowsPush& push, const RowGradients& gradients);

  // The arena's memory of a trainable variable that lies there in one piece.
  InPlaceMemory InPlace(size_t variable);
  // The end: what was given out by InPlace becomes memory of this process alone, with the values as they are now.
  void TakeAlong();

 private:
  struct Place {
    std::unique_ptr<ArenaGuest> guest;
    int client = 0;
    std::vector<SlicePiece> slices;
    ArenaRows rows;
    std::vector<const RuleSpec*> rules;  // of the slices, in the arena's model; null: not trainable
    uint64_t started_at = 0;             // updates counted when the push that is under way began
    uint64_t pulled_version = 0;         // of the values that the worker has: all of these updates are in them
    bool pushed = false;                 // by the push that is under way
    bool updated = false;                // … and it has changed trainable variables
  };
  // False: the generation is another.
  bool Apply(Place& place, const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient,
             const StorePushOptions& options, const Push& push, int64_t global_step);
  // What this worker had of the work queue from that ticket on is others' now.
  bool WorkReturnedTo(uint64_t ticket);
  bool Count(Place& place, const StorePushOptions& options, const Push& push, bool lead, StorePushResult& result);

  std::vector<Place> places_;
};

}  // namespace muster
