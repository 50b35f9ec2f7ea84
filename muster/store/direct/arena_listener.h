// Gives a ps's arena to workers on the same host: a unix socket that hands out a descriptor of the arena's memory. A
// process that connects is on this host, whatever names the hosts have; it must run as the same user and show the
// ticket that the ps gave it over the channel that proved the job's token. The socket is in the abstract namespace, so
// that nothing is left behind however a process dies.
//
// Has its own thread because it must answer while the event loop is busy (also when a worker in the same process drives
// that loop). Thread-safe.
#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/mutex.h"
#include "muster/base/os/process_identity.h"

namespace muster {

class ArenaListener {
 public:
  // Unavailable: the system gives no socket.
  static absl::StatusOr<std::unique_ptr<ArenaListener>> Open();
  // As Open, but on an error logs a warning and returns null.
  static std::unique_ptr<ArenaListener> OpenOrWarn();
  // Closes every visitor's connection, so that they see at once that the ps is gone.
  ~ArenaListener();
  ArenaListener(const ArenaListener&) = delete;
  ArenaListener& operator=(const ArenaListener&) = delete;

  // The name of the socket.
  const std::string& name() const { return name_; }

  // Issues a ticket for one visit of this incarnation of a client. Until it is used, further calls return the same one,
  // because the request may come twice; a ticket of an earlier incarnation becomes invalid. The process that shows it
  // is given `memory_fd` (a copy is kept until then). Returns "" if no descriptors are left.
  std::string Admit(int client, uint64_t incarnation, int memory_fd);
  // Returns the process that used that ticket and has the memory, if it was the client's last visitor.
  std::optional<ProcessIdentity> Visitor(int client, const std::string& ticket) const;
  // How often the thread has woken up, for tests.
  int64_t turns() const { return turns_; }
  // Whether the last visitor of that client was this process and has closed its connection: it writes no more.
  bool HasLeft(int client, const ProcessIdentity& process) const;

 private:
  struct Client {
    std::string ticket;  // not used yet; empty: none
    uint64_t incarnation = 0;
    int memory_fd = -1;  // given to the process that shows `ticket`
    // The last visitor.
    std::string used_ticket;
    ProcessIdentity bearer;
    int connection = -1;  // -1: closed
  };

  ArenaListener(std::string name, int listener, int stop);
  void Serve();
  void Accept();
  // True: `visitor` has received the descriptor, and stays connected as long as it lives.
  bool Receive(int visitor);
  void Close(int visitor);
  // Uses up `ticket` and returns the descriptor for the process that showed it; -1: the ticket is invalid.
  int Redeem(const std::string& ticket, const ProcessIdentity& bearer, int connection);

  const std::string name_;
  const int listener_;
  const int stop_;              // an eventfd
  std::vector<int> visitors_;   // thread_ only
  bool accepts_later_ = false;  // thread_ only: no descriptors are left
  std::atomic<int64_t> turns_{0};
  mutable Mutex mutex_;
  std::map<int, Client> clients_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster
