// The work queue of a job (docs/work_queue.md): the rows of epoch after epoch in units, each of which goes to one
// worker and, should that be lost or give it up, to another, until the update made of it is counted. A state machine
// without a clock: the caller says whose updates have come how far, and who is gone.
//
// Thread-safe: in a process alone, a thread that makes batches ready takes units while the store's loop saves.
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

// InvalidArgument: nothing that could be shared out.
[[nodiscard]] absl::Status ValidateWork(const WorkSpec& spec);
// "1000 rows in units of 32, 3 epochs".
std::string DescribeWork(const WorkSpec& spec);

class WorkQueue {
 public:
  explicit WorkQueue(size_t clients) : holders_(clients) {}

  // Tickets of a client, each the last of those for which it holds; the arena has them.
  struct Progress {
    uint64_t counted = 0;  // done: counted in global_step, or contributed to a round
    uint64_t fired = 0;    // … and that can't be undone by a checkpoint: the round has fired
    uint64_t applied = 0;  // in an update that the ps has, counted or not
  };
  void Note(int client, const Progress& progress);

  // What the client has and isn't done goes to the front. Returns how many units that are.
  size_t Return(int client);
  // … and so do those with these tickets, of which it says that nothing comes.
  void GiveUp(int client, const std::vector<uint64_t>& tickets);
  bool Holds(int client) const;            // anything
  uint64_t Incarnation(int client) const;  // that has asked last; 0: none
  uint64_t LastTicket(int client) const;   // of all its lives

  // The next unit for who asks; the same again for the same request. Errors: InvalidArgument, this isn't what is
  // shared out; ResourceExhausted, it has too many; FailedPrecondition, a late copy of an older request.
  absl::StatusOr<TakeWorkReply> Take(const TakeWorkRequest& request);

  // As checkpoints and the ps's memory keep it; nothing: nobody has asked for work.
  std::optional<WorkState> Save() const;
  // Other values have been loaded, whose state this is (none: they are initial ones). What clients have is void. False:
  // nothing has changed, for nothing had been done yet.
  bool Load(const std::optional<WorkState>& state);
  // As Save gave it in an earlier life of the ps: who had something still has it.
  void Restore(const WorkState& state);

  struct View {
    WorkSpec spec;
    int64_t epoch = 0;
    int64_t next = 0;     // place of it that comes next
    size_t returned = 0;  // units that come before that
    struct Hand {
      int client = 0;
      size_t units = 0;  // that aren't done
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
    bool waits = false;  // it was told to, and has not asked since
    Progress progress;
    std::deque<Entry> units;  // by ticket; not fired yet

    size_t left() const;   // of them, those that aren't counted
    size_t ahead() const;  // … and whose step isn't over either
  };

  [[nodiscard]] absl::Status Adopt(const WorkSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Fit(const WorkSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Begin(const WorkSpec& spec) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  size_t ReturnAll(Holder& holder) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // Those of the client's that aren't counted and whose ticket `gone` is.
  template <typename Gone>
  size_t Free(Holder& holder, Gone gone) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // So few units are left that this client is to use up what it has first, or others would have none.
  bool HasItsShare(const Holder& holder) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  std::optional<WorkUnit> Next() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  // There is nothing to hand out: whether that may change for this client.
  WorkAnswer WaitOrEnd(size_t client) const ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  mutable Mutex mutex_;
  std::optional<WorkSpec> wanted_ ABSL_GUARDED_BY(mutex_);  // by the workers; nothing: nobody has asked
  WorkSpec spec_ ABSL_GUARDED_BY(mutex_);                   // of what follows; without a name: there is none yet
  int64_t epoch_ ABSL_GUARDED_BY(mutex_) = 0;
  int64_t next_ ABSL_GUARDED_BY(mutex_) = 0;
  Units free_ ABSL_GUARDED_BY(mutex_);  // that have come back
  std::vector<Holder> holders_ ABSL_GUARDED_BY(mutex_);
  bool touched_ ABSL_GUARDED_BY(mutex_) = false;  // something was done, or loaded
};

}  // namespace muster
