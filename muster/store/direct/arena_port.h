// Where the workers on a ps's own host get its arena: a unix socket through which it gives away a descriptor of its
// memory. Who arrives there is on this host, whatever names the hosts have; he must run as the same user, and show the
// ticket that the ps has given him over the channel that proved the job's token. The socket is in the abstract
// namespace, so nothing is left behind, whoever dies how.
//
// Has a thread of its own, for it must answer while the event loop is at work (and when a worker in the same process is
// the one that drives it). Thread-safe.
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

class ArenaPort {
 public:
  // Unavailable: the system gives no socket.
  static absl::StatusOr<std::unique_ptr<ArenaPort>> Open();
  // … and then there is a warning in the log, and no port.
  static std::unique_ptr<ArenaPort> OpenOrWarn();
  // Closes every visitor's connection: they see at once that the ps is gone.
  ~ArenaPort();
  ArenaPort(const ArenaPort&) = delete;
  ArenaPort& operator=(const ArenaPort&) = delete;

  // Of the socket.
  const std::string& name() const { return name_; }

  // A ticket for one visit of this client of the ps, in that incarnation. As long as it wasn't used it is the same, for
  // the request may come twice; one of an earlier incarnation is worth nothing any more. Its bearer is given
  // `memory_fd` (a copy is kept until then). Empty: no descriptors are left.
  std::string Admit(int client, uint64_t incarnation, int memory_fd);
  // The process that came with that ticket and has the memory, if it was the last that did.
  std::optional<ProcessIdentity> Visitor(int client, const std::string& ticket) const;
  // How often its thread has woken, for tests of when it does.
  int64_t turns() const { return turns_; }
  // The last visitor of that client was this process, and has closed its connection: it writes no more.
  bool HasLeft(int client, const ProcessIdentity& process) const;

 private:
  struct Client {
    std::string ticket;  // not used yet; empty: there is none
    uint64_t incarnation = 0;
    int memory_fd = -1;  // for its bearer
    // The last visitor.
    std::string used_ticket;
    ProcessIdentity bearer;
    int connection = -1;  // -1: closed
  };

  ArenaPort(std::string name, int listener, int stop);
  void Serve();
  void Accept();
  // True: `visitor` has got what he came for, and stays connected for as long as he lives.
  bool Receive(int visitor);
  void Close(int visitor);
  // The descriptor for the bearer of `ticket`, which is then used; -1: it is none.
  int Redeem(const std::string& ticket, const ProcessIdentity& bearer, int connection);

  const std::string name_;
  const int listener_;
  const int stop_;              // an eventfd
  std::vector<int> visitors_;   // thread_ only
  bool accepts_later_ = false;  // likewise: no descriptors are left
  std::atomic<int64_t> turns_{0};
  mutable Mutex mutex_;
  std::map<int, Client> clients_ ABSL_GUARDED_BY(mutex_);
  std::thread thread_;  // last: it uses all of the above
};

}  // namespace muster
