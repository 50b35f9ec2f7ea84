// A worker's access to variables on ps of its own host: it applies its updates itself in their arenas, and counts them
// there. Steps and numbers are the same as through the ps (docs/store/direct_apply.md), but without a
// message. Used by one thread.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"
#include "muster/store/arena/arena_rows.h"
#include "muster/store/direct/arena_attachment.h"
#include "muster/store/direct/divided_round.h"
#include "muster/store/messages/store_push.h"
#include "muster/store/messages/work_range.h"
#include "muster/store/model/model_binding.h"

namespace muster {

class DirectApply {
 public:
  // Adds the arena of the next ps, in order. `slices` as in the arena.
  void Add(std::unique_ptr<ArenaAttachment> attachment, int client, std::vector<SlicePiece> slices);
  ArenaAttachment& attachment(int ps) { return *places_[ps].attachment; }
  // Version of that ps's values that this worker has.
  uint64_t pulled_version(int ps) const { return places_[ps].pulled_version; }
  void SetPulledVersion(int ps, uint64_t version) { places_[ps].pulled_version = version; }

  // Whether the processes of all ps are alive.
  bool hosts_alive() const;
  bool ended();
  // With a synchronous gate: the round that ps 0 collects.
  uint64_t round();
  // Makes one of this worker's contributions to that gate; see DividedRound.
  DividedRound MakeRound(const DividedRound::Numbers& numbers);
  // The part of the bound memory that slice `slice` of ps `ps` corresponds to.
  const SlicePiece& piece(int ps, int slice) const { return places_[ps].slices[slice]; }
  // Whether a ps has taken this worker for lost: nothing of it counts there before it has joined again.
  bool fenced();
  // Whether ps 0 has a checkpoint path that the chief must ask for.
  bool load_requested();

  // Announces on all ps that the update of that number is under way, before any of it is applied.
  void Begin(uint64_t sequence);
  // Returns a ps, if any, that is held for a checkpoint's cut and doesn't let this update in.
  std::optional<int> HeldBackBy(uint64_t sequence);
  // Returns a ps, if any, that is cut off from the other hosts and takes no updates of rows either.
  std::optional<int> CutOffPs();

  struct Push {
    uint64_t sequence = 0;
    uint64_t generation = 0;            // of the values that it was computed from
    const std::vector<double>* scales;  // one per variable; empty: 1 for all
    WorkRange work = {};
  };
  struct RowsPush {
    uint64_t sequence = 0;
    uint64_t generation = 0;
    double scale = 1;
  };
  // As StoreClient::PushPull, but without gates. An update that is counted needs Begin first, and no ps that holds it
  // back. Aborted: other values were loaded; part of it may have been applied to the older ones. Also if fenced.
  absl::StatusOr<StorePushResult> PushPull(const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient,
                                           const StorePushOptions& options, const Push& push);

  // Read and update rows of a table, slice `slice` of a ps. Aborted: the values aren't of that generation; some rows
  // may have been updated, as by PushPull.
  [[nodiscard]] absl::Status GatherRows(int ps, int slice, const RowReads& reads, MutableByteSpan into);
  [[nodiscard]] absl::Status PushRows(int ps, int slice, const RowsPush& push, const RowGradients& gradients);

  // Returns the arena's memory of a trainable variable that lies there in one piece.
  InPlaceMemory InPlace(size_t variable);
  // Ends the use of the arenas: what InPlace gave out becomes this process's own memory, with its current values.
  void TakeAlong();

 private:
  struct Place {
    std::unique_ptr<ArenaAttachment> attachment;
    int client = 0;
    std::vector<SlicePiece> slices;
    ArenaRows rows;
    std::vector<const RuleSpec*> rules;  // one per slice, in the arena's model; null: not trainable
    uint64_t started_at = 0;             // updates counted when the current push began
    uint64_t pulled_version = 0;         // of the worker's values: they include all of these updates
    bool pushed = false;                 // by the current push
    bool updated = false;                // the current push has changed trainable variables
  };
  // False: the generation is another.
  bool Apply(Place& place, const ModelBinding& binding, absl::FunctionRef<ByteSpan(size_t)> gradient,
             const StorePushOptions& options, const Push& push, int64_t global_step);
  // Whether this worker's units of the work queue from that ticket on were given to others.
  bool WorkReturnedTo(uint64_t ticket);
  bool Count(Place& place, const StorePushOptions& options, const Push& push, bool lead, StorePushResult& result);

  std::vector<Place> places_;
};

}  // namespace muster
