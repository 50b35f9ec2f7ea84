// What a test may do inside the store: die at a point in the middle of an update, or make the store commit a deliberate
// error and see whether the checks find it. Production code has none.
#pragma once

#include <cstdint>

namespace muster {

// Where an update, a recovery or a count can be interrupted. In the order in which an update passes them.
enum class ArenaPoint : uint8_t {
  kBeforeLock,
  kLocked,
  kHeaderSaved,    // the undo slot has the header, but isn't valid
  kUndoValid,      // valid, no block saved
  kBlockSaved,     // a block is in the undo slot, but isn't counted
  kBlockCounted,   // counted, not changed
  kBlockChanged,   // changed
  kHeaderWritten,  // the stripe's header too; not committed
  kCommitted,      // the undo slot isn't valid any more
  kUnlocked,
  kAcknowledging,  // every stripe is done, nothing is counted yet
  kJournalled,     // the counters are in the journal
  kCounted,        // … and in their place
  kFiring,         // a synchronous gate has begun to fire
  kFired,          // … on every stripe; the round is still the same
  kPublishing,     // divided apply: some slice of a gradient is in the arena
  kPublished,      // … all of it, but no contribution yet
  kOwnerDied,      // recovery: the lock was a dead one's
  kBlockRestored,
  kHeaderRestored,
  kUndoDropped,
  kRecovered,  // the lock is usable again
};
constexpr int kArenaPoints = 22;

// Errors that the tests must be able to find.
enum class PlantedBug : uint8_t {
  kSkipRestore,            // a dead owner's stripe is used as it is
  kIgnoreSequence,         // a retried push is applied again
  kCommitBeforeHeader,     // the undo slot is dropped before the header is written
  kSkipOwnRecovery,        // whoever attaches doesn't look at its own undo slot
  kCountTwice,             // a retried count is counted again
  kForgetClients,          // a restarted ps doesn't take the clients' numbers over
  kNoUndo,                 // nothing is saved before it is changed (what that costs can be measured so)
  kCountContributorTwice,  // whoever pushes twice in a round of the synchronous gate is counted twice
  kFireEarly,              // … fires with one contributor fewer than it needs
  kForgetAnswers,          // what a client was told of its last exchange is lost with the process that told it
  kFireTwice,              // … fires stripes that have fired in this round already
  kContributeLate,         // … takes a gradient that came too late into the next round
  kTrustEveryShare,        // divided apply: nobody looks after the stripes of others
  kMarkWithoutHold,        // a ps marks for a checkpoint as soon as it is asked, and goes on training until then
};

class ArenaProbe {
 public:
  virtual ~ArenaProbe() = default;
  // May end the process (or the simulated one, by an exception).
  virtual void At(ArenaPoint point) = 0;
  virtual bool Has(PlantedBug bug) const = 0;
  // True while an exception from At ends a simulated process: like a real one it unlocks nothing.
  virtual bool dying() const = 0;
};

}  // namespace muster
