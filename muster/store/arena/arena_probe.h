// Lets a test act inside the store: die at a point in the middle of an update, or make the store commit a deliberate
// error to see whether the checks find it. Production code has none.
#pragma once

#include <cstdint>

namespace muster {

// The points at which an update, a recovery or a count can be interrupted, in the order in which an update passes them.
enum class ArenaPoint : uint8_t {
  kBeforeLock,
  kLocked,
  kHeaderSaved,    // the undo slot has the header, but isn't valid
  kUndoValid,      // valid, no block saved
  kBlockSaved,     // a block is in the undo slot, but isn't counted
  kBlockCounted,   // the block is counted, but not changed
  kBlockChanged,   // the block is changed
  kHeaderWritten,  // the stripe's header is written too, but not committed
  kCommitted,      // the undo slot isn't valid any more
  kUnlocked,
  kAcknowledging,  // every stripe is done, nothing is counted yet
  kJournalled,     // the counters are in the journal
  kCounted,        // the counters are in their place
  kFiring,         // a synchronous gate has begun to fire
  kFired,          // every stripe has fired; the round is still the same
  kPublishing,     // divided apply: some slice of a gradient is in the arena
  kPublished,      // all of the gradient is there, but it is no contribution yet
  kOwnerDied,      // recovery: the lock's holder had died
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
  kSkipOwnRecovery,        // a process that attaches doesn't look at its own undo slot
  kCountTwice,             // a retried count is counted again
  kForgetClients,          // a restarted ps doesn't take over the clients' numbers
  kNoUndo,                 // nothing is saved before it is changed (also shows what saving costs)
  kCountContributorTwice,  // a client that pushes twice in a round of the synchronous gate is counted twice
  kFireEarly,              // the gate fires with one contributor fewer than it needs
  kForgetAnswers,          // the answer to a client's last exchange is lost with the process that gave it
  kFireTwice,              // the gate fires stripes that have already fired in this round
  kContributeLate,         // the gate takes a gradient that came too late into the next round
  kTrustEveryShare,        // divided apply: nobody finishes the stripes of others
  kMarkWithoutHold,        // a ps marks for a checkpoint as soon as it is asked, and trains on until then
  kForgetExclusion,        // a worker that is heard but hangs keeps an elastic round waiting for ever
};

class ArenaProbe {
 public:
  virtual ~ArenaProbe() = default;
  // May end the process (or the simulated one, by an exception).
  virtual void At(ArenaPoint point) = 0;
  virtual bool Has(PlantedBug bug) const = 0;
  // True while an exception from At ends a simulated process, which like a real one unlocks nothing.
  virtual bool dying() const = 0;
};

}  // namespace muster
