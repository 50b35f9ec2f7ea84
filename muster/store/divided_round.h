// A worker's part in one round of the synchronous gate on ps of its own host: it publishes its gradient in their
// arenas, and when a round has its contributors applies its share of their mean (docs/store/divided_apply.md).
// Nothing here waits for others: who does calls Advance again when the bell has rung. Used by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/store/arena_rounds.h"
#include "muster/store/work_range.h"

namespace muster {

class DividedRound {
 public:
  // One a ps, in order. The arenas must outlive the round.
  struct Place {
    Arena* arena = nullptr;
    int client = 0;
  };
  struct Numbers {
    uint64_t sequence = 0;
    uint64_t generation = 0;
    uint64_t local_step = 0;
    uint32_t minibatches = 0;
    WorkRange work = {};
  };
  DividedRound(const std::vector<Place>& places, const Numbers& numbers);

  // What is contributed; asked slice by slice of each ps.
  struct Gradient {
    absl::FunctionRef<ByteSpan(int ps, int slice)> bytes;  // empty: nothing for this slice
    absl::FunctionRef<double(int ps, int slice)> scale;    // of a gradient
  };
  // Goes as far as it can without the others: contributes what hasn't been contributed, fires what is to be fired. True
  // when there is nothing left to wait for. `gradient` is the same in every call.
  bool Advance(const Gradient& gradient);

  // What Advance may have found out: training has ended (for this round never gets its contributors, too); other values
  // were loaded.
  bool ended() const { return ended_; }
  bool other_values() const { return other_values_; }
  // ps 0 has not taken it: it came too late, or an earlier life of this worker is in the round.
  bool dropped() const { return dropped_; }

  // ps 0's, to be taken before an Advance that may have to wait.
  uint32_t rings() const;
  // True: it has rung since.
  bool Wait(uint32_t rings, absl::Duration limit);

 private:
  enum class Stage {
    kEntering,   // nothing of it is on this ps
    kPublished,  // the gradient is there
    kWaiting,    // it is a contribution, or that of an earlier life is
    kOver,
  };
  struct Part {
    Arena* arena;
    ArenaRounds rounds;
    ArenaRounds::Contribution contribution;
    Stage stage = Stage::kEntering;
  };
  void Enter(size_t ps, const Gradient& gradient);
  void Publish(size_t ps, const Gradient& gradient);
  void Commit(size_t ps, const Gradient& gradient);
  void Await(Part& part);
  // What an attempt to enter or to commit has led to; `next` if it was open.
  void Note(size_t ps, ArenaRounds::Standing standing, Stage next);

  std::vector<Part> parts_;
  bool ended_ = false;
  bool other_values_ = false;
  bool dropped_ = false;
};

}  // namespace muster
