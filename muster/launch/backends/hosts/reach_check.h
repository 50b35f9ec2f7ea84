// Checks before a run that each of its hosts reaches every other one at the address that the tasks are told: on each
// host a listener on a reserved port, then a dialler to all others, both short tasks of `muster reach`. Used by the
// loop's thread.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/backends/hosts/host_agent.h"

namespace muster {

class ReachCheck final : public BackendEvents {
 public:
  // Begins at once. Borrows the agents, which are ready. `done` is called once, from the loop: Unavailable has a line
  // for each pair of hosts that doesn't work, with the addresses and what to do.
  ReachCheck(std::vector<HostAgent*> agents, const std::string& run_id, std::function<void(const absl::Status&)> done);

  // Returns whether a task is the check's own; its events belong here.
  static bool Owns(const TaskId& task) { return task.job == kListen || task.job == kDial; }

  // The hosts whose part isn't done yet.
  std::vector<std::string> awaited() const;

  void OnReserved(const TaskId& task, const std::vector<std::string>& addresses) override;
  void OnNotReserved(const TaskId&, const absl::Status& why) override;
  void OnStarted(const TaskId&, const LocalProcess&) override {}
  void OnNotStarted(const TaskId& task, const absl::Status& why) override;
  void OnOutput(const TaskId& task, OutputStream stream, std::string_view bytes) override;
  void OnExit(const TaskId& task, const ExitStatus& status) override;

 private:
  static constexpr char kListen[] = "reach-listen";
  static constexpr char kDial[] = "reach-dial";
  struct OfHost {
    HostAgent* agent = nullptr;
    std::string address;   // of its listener
    std::string listener;  // what it has written: "listening", then the host's own addresses
    std::string dialler;   // likewise: "ADDRESS WHY" for each that it can't reach
    bool listens = false;
    bool listener_ended = true;
    bool dialled = false;
  };

  void Run(const OfHost& host, const TaskId& task, std::vector<std::string> arguments);
  void DialAll();
  void EndListeners();
  // Calls `done` once nothing of the check runs any more.
  void FinishIfOver();
  void Fail(const std::string& why);
  std::string LineAbout(const OfHost& from, const std::string& line) const;

  const std::string run_id_;
  const std::function<void(const absl::Status&)> done_;
  std::vector<OfHost> hosts_;  // the index of a task is its host's
  std::vector<std::string> failures_;
  bool ending_ = false;
  bool told_ = false;
};

}  // namespace muster
