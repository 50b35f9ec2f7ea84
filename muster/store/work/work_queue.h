// The work queue of a job (docs/work_queue.md): the rows of epoch after epoch in units. Each unit goes to one worker,
// and to another if the first is lost or gives it up, until the update made of it is counted. A state machine without a
// clock: the caller says how far each client's updates have come, and which clients are gone.
//
// Thread-safe: in a process alone, a thread that prepares batches takes units while the store's loop saves.
#pragma once

#include <cstdint>
#include <deque>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/data/work_source.h"
#include "muster/store/messages/work_messages.h"

namespace muster {

// InvalidArgument: such work can't be shared out.
[[nodiscard]] absl::Status ValidateWork(const WorkSpec& spec);
// "1000 rows in units of 32, 3 epochs".
std::string DescribeWork(const WorkSpec& spec);

class WorkQueue {
 public:
  explicit WorkQueue(size_t clients) : holders_(clients) {}

  // Tickets of a client, each the last for which this holds; kept in the arena.
  struct Progress {
    uint64_t counted = 0;  // its update is counted in global_step, or contributed to a round
    uint64_t fired = 0;    // and can't be undone by a checkpoint: the round has fired
    uint64_t applied = 0;  // its update is on the ps, counted or not
  };
  void Note(int client, const Progress& progress);

  // Puts what the client has and hasn't done at the front. Returns how many units that are.
  size_t Return(int client);
  // Likewise for units with these tickets, which the client says it gives up.
  void GiveUp(int client, const std::vector<uint64_t>& tickets);
  bool Holds(int client) const;            // any unit
  uint64_t Incarnation(int client) const;  // of its last request; 0: none
  uint64_t LastTicket(int client) const;   // of all its lives

  // Returns the next unit for the sender; the same again for the same request. InvalidArgument: other work is shared
  // out; ResourceExhausted: it has too many units; FailedPrecondition: a late copy of an older request.
  absl::StatusOr<TakeWorkReply> Take(const TakeWorkRequest& request);

  // Returns the state for checkpoints and the ps's memory; nothing if no client has asked for work.
  std::optional<WorkState> Save() const;
  // Other values were loaded, with this state (none: they are initial ones). The clients' units are void. False:
  // nothing has changed, because nothing had been done yet.
  bool Load(const std::optional<WorkState>& state);
  // Restores what Save returned in an earlier life of the ps: clients still have their units.
  void Restore(const WorkState& state);

  struct View {
    WorkSpec spec;
    int64_t epoch = 0;
    int64_t next = 0;     // the place in it that comes next
    size_t returned = 0;  // returned units, which come before that
    struct Hand {
      int client = 0;
      size_t units = 0;  // not done yet
      bool waits = false;
    };
    std::vector<Hand> hands;
  };
  std::optional<View> Describe() const;

 private:
  struct Earlier {
    bool operator()(const WorkUnit& a, const WorkUnit& b) const {
      return a.epoch != b.epoch ? a.epoch < b.epoch : a.begin < b.begin;
    }
  };
  using Units = std::set<WorkUnit, Earlier>;
  struct Entry {
    uint64_t ticket = 0;
    WorkUnit unit;
  };
  struct Holder {
    uint64_t incarnation = 0;
    uint64_t newest = 0;
    uint64_t given = 0;
    uint64_t last = 0;
    uint64_t over = 0;
    bool waits = false;  // it was told to wait, and hasn't asked since
    Progress progress;
    std::deque<Entry> units;  // by ticket; not fired yet

    size_t left() const;   // units that aren't counted
    size_t ahead() const;  // units that aren't counted and whose step isn't over
  };

  [[nodiscard]] absl::Status Adopt(const WorkSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fit(const WorkSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(const WorkSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t ReturnAll(Holder& holder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Takes back the client's uncounted units whose ticket `gone` accepts.
  template <typename Gone>
  size_t Free(Holder& holder, Gone gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Whether so few units are left that this client must use up its own first, lest others have none.
  bool HasItsShare(const Holder& holder) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<WorkUnit> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // There is nothing to hand out: returns whether that may change for this client.
  WorkAnswer WaitOrEnd(size_t client) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::optional<WorkSpec> wanted_ ABSL_GUARDED_BY(mutex_);  // by the workers; nothing: no worker has asked
  WorkSpec spec_ ABSL_GUARDED_BY(mutex_);                   // of the members below; without a name: there is none yet
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  Units free_ ABSL_GUARDED_BY(mutex_);  // units that came back
  std::vector<Holder> holders_ ABSL_GUARDED_BY(mutex_);
  bool touched_ ABSL_GUARDED_BY(mutex_) = false;  // something was done, or loaded
};

}  // namespace muster
