// A worker's part in one round of the synchronous gate on ps of its own host: publishes its gradient in their arenas
// and, when a round has its contributors, applies its share of their mean (docs/store/divided_apply.md).
// Never waits for others: the caller calls Advance again when the bell has rung. Used by one thread.
#pragma once

#include <cstdint>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/time/time.h"
#include "muster/store/arena/arena_rounds.h"
#include "muster/store/messages/work_range.h"

namespace muster {

class DividedRound {
 public:
  // One per ps, in order. The arenas must outlive the round.
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

  // The worker's contribution, asked for slice by slice on each ps.
  struct Gradient {
    absl::FunctionRef<ByteSpan(int ps, int slice)> bytes;  // empty: nothing for this slice
    absl::FunctionRef<double(int ps, int slice)> scale;    // the gradient's factor
  };
  // Goes as far as it can without the others: contributes what hasn't been contributed, fires what is due. True:
  // nothing is left to wait for. `gradient` must be the same in every call.
  bool Advance(const Gradient& gradient);

  // Found out by Advance: training has ended (or this round can never get its contributors); other values were loaded.
  bool ended() const { return ended_; }
  bool other_values() const { return other_values_; }
  // ps 0 didn't take it: it came too late, or an earlier life of this worker is in the round.
  bool dropped() const { return dropped_; }

  // How often ps 0's bell has rung. Read it before an Advance that may have to wait.
  uint32_t rings() const;
  // Waits for ps 0's bell. True: it has rung since `rings`.
  bool Wait(uint32_t rings, absl::Duration limit);

 private:
  enum class Stage {
    kEntering,   // this ps has nothing of it
    kPublished,  // the gradient is there
    kWaiting,    // it is a contribution, or an earlier life's is
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
  // Notes the result of an attempt to enter or to commit; the stage becomes `next` if the round was open.
  void Note(size_t ps, ArenaRounds::Standing standing, Stage next);

  std::vector<Part> parts_;
  bool ended_ = false;
  bool other_values_ = false;
  bool dropped_ = false;
};

}  // namespace muster
