// Brings up agents on many hosts, a few at a time, and reports on all of them together: a user wants to know of every
// host that can't be used, not of the first. Single-threaded, on an FdLoop.
#pragma once

#include <map>
#include <memory>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/clock.h"
#include "muster/launch/engines/ssh/host_contact.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

class HostContacts {
 public:
  static constexpr size_t kAtOnce = 8;

  // Borrows all but `hosts`; they must outlive it.
  HostContacts(std::vector<std::string> hosts, const ContactOptions& options, FdLoop& loop, const Clock& clock);

  bool done() const { return results_.size() == hosts_.size(); }
  // When OnTime has something to do; InfiniteFuture if never. The loop must wait no longer than until then.
  absl::Time deadline() const;
  // Must be called at deadline() and after each round of the loop.
  void OnTime();

  // Once done: every host's stream. Unavailable with a line for each host that has none, in the order of the hosts; the
  // streams of the others end then.
  absl::StatusOr<std::map<std::string, AgentStream>> Take();

 private:
  void DialMore();

  // Constant after construction.
  const std::vector<std::string> hosts_;
  const ContactOptions& options_;
  FdLoop& loop_;
  const Clock& clock_;

  size_t next_ = 0;  // of hosts_
  std::vector<std::unique_ptr<HostContact>> contacts_;
  std::map<std::string, absl::StatusOr<AgentStream>> results_;
};

}  // namespace muster
