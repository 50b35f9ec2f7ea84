// Who trains with this ps: one row a worker task of the cluster (the chief is a worker). Answers who is alive, who
// holds the chief's lease, and when training has ended. A state machine without a clock: the caller says what time it
// is. Lives on the store's event loop.
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
  // A client that was not heard of for so long is taken for dead; it heartbeats four times as often.
  absl::Duration lease = absl::Seconds(10);
  // … for so long after its last connection broke. A process that dies closes its connections at once; the grace lets a
  // restarted one, or one whose link hiccuped, come back first.
  absl::Duration disconnect_grace = absl::Seconds(3);
  // How long the end waits for a task of the cluster that never joined (it would find nobody).
  absl::Duration late_join_grace = absl::Seconds(20);
  // Everyone left without the chief saying done: the ps gives up after this.
  absl::Duration abandoned_after = absl::Minutes(5);
};

class ClientTable {
 public:
  struct Client {
    std::string task;
    std::string where;
    uint64_t incarnation = 0;  // 0: never joined
    bool done = false;
    absl::Time last_heard = absl::InfinitePast();
    absl::Time disconnected_at = absl::InfiniteFuture();  // meaningful when connections is empty
    std::set<ConnectionId> connections;
    uint64_t pushes = 0;
    uint64_t non_finite = 0;       // dropped because they weren't finite
    uint64_t last_non_finite = 0;  // sequence number of the last of those
    std::string waiting_for;       // what it waits for now, for the status page
  };

  ClientTable(std::vector<std::string> tasks, LeaseOptions options);

  // Takes the row of request.task for a new life of it. NotFound: no such task in the cluster. AlreadyExists: another
  // process is that task and alive (try again when its lease may have run out).
  absl::StatusOr<int> Join(const JoinRequest& request, ConnectionId connection, absl::Time now);

  // What a restarted ps knows of a row from its arena: that life of the task has a whole lease, and may come back.
  void Restore(int client, uint64_t incarnation, std::string where, bool done, absl::Time now);
  void RestoreChief(int client, uint64_t epoch, uint64_t incarnation);

  // The chief's lease for `client`. FailedPrecondition names the living holder. A holder that is restarted, dead or
  // done loses it; each new holder gets the next epoch. A holder that asks again (its answer was lost) keeps its epoch.
  absl::StatusOr<uint64_t> ClaimChief(int client, absl::Time now);

  // Checks that a request comes from the living incarnation of a row and notes that it was heard of. Aborted: it
  // never joined here (the ps was restarted). FailedPrecondition: a newer process has taken the row.
  [[nodiscard]] absl::Status Hear(const Stamp& stamp, ConnectionId connection, absl::Time now);

  // FailedPrecondition unless `stamp` is the holder of the chief's lease with that epoch.
  [[nodiscard]] absl::Status CheckChief(const Stamp& stamp, uint64_t epoch) const;

  void Disconnect(ConnectionId connection, absl::Time now);
  // Of the chief: the late-join grace counts from here.
  void SetDone(int client, absl::Time now);

  bool Alive(const Client& client, absl::Time now) const;
  // Alive, and hasn't said done: somebody whom others may wait for.
  bool Present(const Client& client, absl::Time now) const { return !client.done && Alive(client, now); }
  // When the first of those who are present will be taken for dead if it stays silent; InfiniteFuture if nobody is.
  absl::Time NextDeath(absl::Time now) const;

  enum class Phase { kTraining, kEnded, kAbandoned };
  // Looks at everyone: kEnded when the chief is done and every other client is done, dead, or late for good.
  Phase Look(absl::Time now) const;
  // When Look may change its mind by the mere passing of time; InfiniteFuture if it can't.
  absl::Time NextLook(absl::Time now) const;
  // When the last of those who joined and haven't said done will be taken for dead if it stays silent; InfinitePast
  // when all have left.
  absl::Time LastLeaves(absl::Time now) const;
  // Who is still waited for before the end, for the log.
  std::vector<std::string> WaitedFor(absl::Time now) const;
  // Who hasn't said done, likewise.
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
  bool Gone(const Client& client, absl::Time now) const;

  const LeaseOptions options_;
  std::vector<Client> clients_;
  int chief_ = -1;
  uint64_t chief_epoch_ = 0;
  uint64_t chief_incarnation_ = 0;  // of the holder when it got the lease
  absl::Time chief_done_at_ = absl::InfiniteFuture();
  absl::Time last_heard_of_anyone_ = absl::InfinitePast();
};

}  // namespace muster
