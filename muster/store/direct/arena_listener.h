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
  // Closes all connections, so that the workers see at once that the ps is gone.
  ~ArenaListener();
  ArenaListener(const ArenaListener&) = delete;
  ArenaListener& operator=(const ArenaListener&) = delete;

  // The name of the socket.
  const std::string& name() const { return name_; }

  // Issues a ticket with which one process of this incarnation of a client may attach. Until it is used, further calls
  // return the same one, because the request may come twice; a ticket of an earlier incarnation becomes invalid. The
  // process that shows it gets `memory_fd` (a copy is kept until then). Returns "" if no descriptors are left.
  std::string IssueTicket(int client, uint64_t incarnation, int memory_fd);
  // Returns the process that attached with that ticket, if it is the last one that did so for this client.
  std::optional<ProcessIdentity> AttachedProcess(int client, const std::string& ticket) const;
  // How often the thread has woken up, for tests.
  int64_t turns() const { return turns_; }
  // Whether that client's last process was this one and has closed its connection: it writes no more.
  bool HasLeft(int client, const ProcessIdentity& process) const;

 private:
  struct Client {
    std::string ticket;  // not used yet; empty: none
    uint64_t incarnation = 0;
    int memory_fd = -1;  // given to the process that shows `ticket`
    // The last process that attached.
    std::string used_ticket;
    ProcessIdentity process;
    int connection = -1;  // -1: closed
  };

  ArenaListener(std::string name, int listener, int stop);
  void Serve();
  void Accept();
  // True: the process has received the descriptor, and stays connected as long as it lives.
  bool Receive(int connection);
  void Close(int connection);
  // Uses up `ticket` and returns the descriptor for the process that showed it; -1: the ticket is invalid.
  int Redeem(const std::string& ticket, const ProcessIdentity& process, int connection);

  const std::string name_;
  const int listener_;
  const int stop_;                // an eventfd
  std::vector<int> connections_;  // thread_ only
  bool accepts_later_ = false;    // thread_ only: no descriptors are left
  std::atomic<int64_t> turns_{0};
  mutable Mutex mutex_;
  std::map<int, Client> clients_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster
