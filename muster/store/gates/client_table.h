// The clients that train with this ps: one row per worker task of the cluster (the chief is a worker). Answers which
// are alive, which holds the chief's lease, and when training has ended. A state machine without a clock: the caller
// passes the time. Lives on the store's event loop.
#pragma once

#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/store/messages/messages.h"
#include "muster/transport/listener.h"

namespace muster {

struct LeaseOptions {
  // A client that was silent, or heard nothing, for this long counts as dead; it heartbeats four times as often.
  absl::Duration lease = absl::Seconds(3);
  // A client on another host also counts as dead this long after its last connection broke: its link may have hiccuped.
  // One on this host is dead at once: a death closes its connections, and hardly anything else does (a tunnel may,
  // which looks like this host; it costs that client a round). The end of training waits this long for either, since a
  // restarted process would find no ps.
  absl::Duration disconnect_grace = absl::Seconds(3);
  // A client that alone keeps others waiting in an elastic round, though it is heard, is excluded after this time, or
  // after `kStallSteps` of its own steps if that is longer, until it pushes again. 0: never.
  absl::Duration stall_limit = absl::Seconds(10);
  static constexpr int kStallSteps = 5;
  // How long the end waits for a task of the cluster that never joined (and would find no ps if it came later).
  absl::Duration late_join_grace = absl::Seconds(20);
  // How long after everyone has left, without the chief saying done, the ps gives up.
  absl::Duration abandoned_after = absl::Minutes(5);
};

class ClientTable {
 public:
  // How long a ps that was late reads before it judges who is dead.
  static constexpr absl::Duration kReadFirst = absl::Seconds(1);

  struct Client {
    std::string task;
    std::string where;
    uint64_t incarnation = 0;  // 0: never joined
    uint64_t life = 0;         // the highest that its processes have named (JoinRequest); 0: none has
    bool done = false;
    absl::Time last_heard = absl::InfinitePast();
    absl::Time disconnected_at = absl::InfiniteFuture();  // meaningful when connections is empty
    std::set<ConnectionId> connections;
    uint64_t pushes = 0;
    uint64_t non_finite = 0, last_non_finite = 0;  // dropped because they weren't finite; number of the last of them
    std::string waiting_for;                       // what it waits for now, for the status page
    // What its newest heartbeat said.
    uint64_t heard = 0, steps = 0;  // see HeartbeatRequest
    absl::Duration step;
    std::string busy;
    absl::Time answered_at = absl::InfiniteFuture();  // the first beat that it may still not have heard the answer of
    absl::Time deaf_since = absl::InfiniteFuture();   // it has beaten again without having heard that answer
    absl::Time spared_until = absl::InfinitePast();   // the ps was late: not dead before
    std::string excluded;                             // why rounds go on without it; empty: they don't
    bool on_this_host = false;                        // its last connection came from here
  };

  ClientTable(std::vector<std::string> tasks, LeaseOptions options);

  // Gives the row of request.task to a new life of it, at once if its launcher started that later. NotFound: the
  // cluster has no such task. AlreadyExists: another living process is that task (try again when its lease may have run
  // out). FailedPrecondition: its launcher has started it once more since.
  absl::StatusOr<int> Join(const JoinRequest& request, ConnectionId connection, absl::Time now);

  // Restores a row that a restarted ps finds in its arena: that life of the task gets a whole lease, and may come back.
  void Restore(int client, uint64_t incarnation, std::string where, bool done, absl::Time now);
  void RestoreChief(int client, uint64_t epoch, uint64_t incarnation);

  // Gives `client` the chief's lease. FailedPrecondition names the living holder. A holder that is restarted, dead or
  // done loses it; each new holder gets the next epoch. A holder that asks again (its answer was lost) keeps its epoch.
  absl::StatusOr<uint64_t> ClaimChief(int client, absl::Time now);

  // A connection from a process of this host was opened.
  void NoteOnThisHost(ConnectionId connection) { on_this_host_.insert(connection); }

  // Takes what the heartbeat of a client that was heard says of it, when it is answered.
  void TakeBeat(const HeartbeatRequest& message, absl::Time now);

  // Lets rounds go on without a client that is heard, until Readmit, Join or a new life.
  void Exclude(int client, std::string why) { clients_[client].excluded = std::move(why); }
  void Readmit(int client) { clients_[client].excluded.clear(); }

  // The ps means to look at its clients at `when`; call OnTurn at the beginning of whatever it does. Returns by how
  // much it is late, because it was stopped or waited for a lock: what its clients sent meanwhile is unread. No client
  // that was alive then is dead before kReadFirst has passed.
  void Plan(absl::Time when) { planned_ = when; }
  absl::Duration OnTurn(absl::Time now);

  // Checks that a request comes from the living incarnation of a row, and renews its lease. Aborted: it never joined
  // here (the ps was restarted). FailedPrecondition: a newer process has taken the row.
  [[nodiscard]] absl::Status Hear(const Stamp& stamp, ConnectionId connection, absl::Time now);

  // FailedPrecondition unless `stamp` is the holder of the chief's lease with that epoch.
  [[nodiscard]] absl::Status CheckChief(const Stamp& stamp, uint64_t epoch) const;

  void Disconnect(ConnectionId connection, absl::Time now);
  // For the chief, the late-join grace starts here.
  void SetDone(int client, absl::Time now);

  // Its lease runs.
  bool Heard(const Client& client, absl::Time now) const { return now < DeadAt(client); }
  // It has been without a lease for so long that it must join before it writes in the arena: one whose connections only
  // hiccuped need not.
  bool Lost(const Client& client, absl::Time now) const { return now >= DeadAt(client, options_.disconnect_grace); }
  // Heard, and not excluded.
  bool Alive(const Client& client, absl::Time now) const { return client.excluded.empty() && Heard(client, now); }
  // Alive, and hasn't said done: others may wait for it.
  bool Present(const Client& client, absl::Time now) const { return !client.done && Alive(client, now); }
  // Returns when the first present client will count as dead if it stays silent; InfiniteFuture if none is present.
  absl::Time NextDeath(absl::Time now) const;

  enum class Phase { kTraining, kEnded, kAbandoned };
  // Looks at all clients: kEnded when the chief is done and every other client is done, dead, or too late to join.
  Phase PhaseAt(absl::Time now) const;
  // Returns when PhaseAt may change its result by the mere passing of time; InfiniteFuture if it can't.
  absl::Time NextChange(absl::Time now) const;
  // Returns when the last client that joined and hasn't said done will count as dead if it stays silent; InfinitePast
  // when all have left.
  absl::Time LastLeaves(absl::Time now) const;
  // Names the clients that the end still waits for, for the log.
  std::vector<std::string> WaitedFor(absl::Time now) const;
  // Names the clients that haven't said done, likewise.
  std::vector<std::string> NotDone() const;

  Client& client(int index) { return clients_[index]; }
  const std::vector<Client>& clients() const { return clients_; }
  int chief() const { return chief_; }  // -1: nobody yet
  uint64_t chief_epoch() const { return chief_epoch_; }
  uint64_t chief_incarnation() const { return chief_incarnation_; }
  bool chief_done() const { return chief_ >= 0 && clients_[chief_].done; }
  const LeaseOptions& options() const { return options_; }

 private:
  absl::Time DeadAt(const Client& client) const;
  absl::Time DeadAt(const Client& client, absl::Duration disconnect_grace) const;
  // When the end of training stops waiting for it.
  absl::Time GoneAt(const Client& client) const;
  bool Gone(const Client& client, absl::Time now) const;

  const LeaseOptions options_;
  std::vector<Client> clients_;
  std::set<ConnectionId> on_this_host_;  // open connections from processes of this host
  absl::Time planned_ = absl::InfiniteFuture();
  int chief_ = -1;
  uint64_t chief_epoch_ = 0;
  uint64_t chief_incarnation_ = 0;  // of the holder when it got the lease
  absl::Time chief_done_at_ = absl::InfiniteFuture();
  absl::Time last_heard_of_anyone_ = absl::InfinitePast();
};

}  // namespace muster
