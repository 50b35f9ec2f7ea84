// The hosts that a run holds by the engine `command`, from the first word of `acquire` to the end of `release`. A file
// in MUSTER_HOME/held says how to give them back, and the process that holds them has its lock: when it was killed, the
// next command gives them back (GiveBackLeft). So `release` runs once, however the run ends; it runs again only where
// it has failed, or was killed itself. Used by one thread.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/base/files/file_system.h"
#include "muster/launch/engines/command/acquired_hosts.h"
#include "muster/launch/engines/command/command_run.h"
#include "muster/launch/hosts/command_setting.h"
#include "muster/launch/system/fd_loop.h"

namespace muster {

struct HeldOrder {
  std::string folder;  // MUSTER_HOME/held; made if it is missing
  std::string who;     // for messages: "experiment 4", "muster run (process 17)"
  CommandSetting setting;
  CommandValues values;                  // of acquire
  std::vector<std::string> environment;  // "NAME=VALUE", of acquire and release
  // Takes what release says in the destructor.
  std::function<void(const std::string& line)> say_at_end = [](const std::string&) {};
};

struct HeldCalls {
  std::function<void(const std::string& line)> say;   // takes a line for the user
  std::function<void(const std::string& why)> waits;  // takes why it waits, "" once it doesn't
  std::function<absl::Time()> deadline;               // of on_time
  // Called in each round of the loop while hosts are waited for; an error ends the waiting, and becomes Acquire's.
  std::function<absl::Status()> on_time;
};

class HeldHosts {
 public:
  // Gets the hosts: blocks until `acquire` has ended, running the loop. Gives back what it got before an error:
  // InvalidArgument, the hosts were refused, or what it prints is nothing of ours; DeadlineExceeded, its time is over;
  // Unavailable, it failed or ended with too few hosts; those of starting it and of the folder. `loop` and `clock` are
  // used during the call only.
  static absl::StatusOr<std::unique_ptr<HeldHosts>> Acquire(const HeldOrder& order, const HeldCalls& calls,
                                                            FdLoop& loop, const Clock& clock);
  ~HeldHosts();  // gives back unless GiveBack was called
  HeldHosts(const HeldHosts&) = delete;
  HeldHosts& operator=(const HeldHosts&) = delete;

  const std::vector<Host>& hosts() const { return acquired_.hosts; }
  // Returns what the engine needs.
  CommandHosts ForEngine() const;
  // Runs `release`. Blocks, at most for its time limit. `say` takes lines for the user.
  void GiveBack(const std::function<void(const std::string& line)>& say);

 private:
  HeldHosts(const HeldOrder& order, const Clock& clock);
  [[nodiscard]] absl::Status Begin();
  [[nodiscard]] absl::Status Await(const HeldCalls& calls, FdLoop& loop);
  // Runs `acquire` once. Unavailable from `retry_exit` alone: nothing is held, and it may be asked again.
  struct Try {
    absl::Status went;
    bool again = false;
  };
  absl::StatusOr<Try> TryOnce(const HeldCalls& calls, FdLoop& loop, absl::Time until);
  [[nodiscard]] absl::Status TakeLine(std::string_view line, const HeldCalls& calls);
  Try Judge(const CommandEnd& end) const;
  [[nodiscard]] absl::Status WriteFile() const;

  // Constant after construction.
  const HeldOrder order_;
  const Clock& clock_;
  const std::string mark_;  // MUSTER_RUN_ID of acquire, and the file's name

  std::unique_ptr<FileLock> lock_;
  AcquiredHosts acquired_;
  bool asked_ = false;       // acquire was started
  bool given_back_ = false;  // or nothing is held yet
};

// Gives back what processes that were killed have held on this machine. Blocks while it does. `end_left` ends the
// processes with this MUSTER_RUN_ID. Returns lines for the user. A file that isn't this user's alone is left.
std::vector<std::string> GiveBackLeft(const std::string& folder, const std::vector<std::string>& environment,
                                      const std::function<void(const std::string& run_id)>& end_left,
                                      const Clock& clock);

}  // namespace muster
