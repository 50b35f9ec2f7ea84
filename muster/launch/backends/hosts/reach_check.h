// Checks before a run that each of its hosts reaches every other one at the address that the tasks are told: on each
// host a listener on a reserved port, then a dialler to all others, both short tasks of `muster reach`. A host that the
// run can do without and that fails is left out, and the check goes on among the others. Used by the loop's thread.
#pragma once

#include <functional>
#include <map>
#include <set>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/backends/hosts/host_agent.h"

namespace muster {

class ReachCheck final : public BackendEvents {
 public:
  // Begins at once. Borrows the agents, which are ready. `optional`: names of hosts that may be left out. `done` is
  // called once, from the loop: Unavailable has a line for each pair of needed hosts that doesn't work, with the
  // addresses and what to do.
  ReachCheck(const std::vector<HostAgent*>& agents, const std::set<std::string>& optional, const std::string& run_id,
             std::function<void(const absl::Status&)> done);

  // Returns whether a task is the check's own; its events belong here.
  static bool Owns(const TaskId& task) { return task.job == kListen || task.job == kDial; }
  // Returns the hosts that are left out so far, and why.
  const std::map<std::string, std::string>& left_out() const { return left_out_; }
  // Returns whether the check goes on only because optional hosts haven't answered.
  bool AwaitsOnlyOptional() const;
  // Leaves these out. `done` may be called.
  void LeaveOutAwaited(const std::string& why);

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
    bool optional = false;
    bool listens = false;
    bool listener_ended = true;
    bool dialled = false;
  };
  enum class Step { kListen, kDial, kEnd };

  void Run(const OfHost& host, const TaskId& task, std::vector<std::string> arguments);
  bool IsLeftOut(const OfHost& host) const { return left_out_.contains(host.agent->name()); }
  // Returns whether the host has done its part of this step, or is left out.
  bool IsThrough(const OfHost& host) const;
  // Begins the next step, or calls `done`, if all hosts are through this one.
  void GoOn();
  void DialAll();
  void EndListeners();
  // The host fails the check; an optional one is left out.
  void Blame(const OfHost& host, const std::string& why);
  // Likewise, and nothing more is checked if the host is needed.
  void Fail(const OfHost& host, const std::string& why);
  void TakeUnreached(const OfHost& from, const std::string& line);
  static std::string LineAbout(const OfHost& from, const OfHost& to, const std::string& why);

  const std::string run_id_;
  const std::function<void(const absl::Status&)> done_;
  std::vector<OfHost> hosts_;          // the index of a task is its host's
  std::vector<std::string> failures_;  // of needed hosts
  std::map<std::string, std::string> left_out_;
  Step step_ = Step::kListen;
  bool told_ = false;
};

}  // namespace muster
