// What an agent says of the use of its host by its tasks: CPU time and memory from /proc, GPUs from nvidia-smi. That
// program may take a second or hang, so it runs beside the agent, and the newest answer counts until the next one. Not
// thread-safe; used by the loop's thread.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/base/clock.h"
#include "muster/launch/agent/entries.h"
#include "muster/launch/agent_server/backend_executor.h"
#include "muster/launch/system/fd_loop.h"
#include "muster/launch/system/piped_program.h"
#include "muster/launch/watch/gpu_usage.h"

namespace muster {

class UsageReport {
 public:
  // nvidia-smi costs a second of CPU time where no other program keeps the driver loaded.
  static constexpr absl::Duration kGpusEvery = absl::Seconds(5);
  // After that, an answer isn't waited for any more.
  static constexpr absl::Duration kGpusWithin = absl::Seconds(4);

  // `environment`: of the agent, in whose PATH nvidia-smi is searched. Borrows `loop` and `clock`, which must outlive
  // it.
  UsageReport(std::vector<std::string> environment, FdLoop& loop, const Clock& clock)
      : environment_(std::move(environment)), loop_(loop), clock_(clock) {}
  ~UsageReport();
  UsageReport(const UsageReport&) = delete;
  UsageReport& operator=(const UsageReport&) = delete;

  // Returns what the launches use now; those whose processes have gone are missing. Reads /proc, and has GPUs read if
  // one of the launches has some.
  UsageEntry Read(const std::vector<RunningLaunch>& launches);

 private:
  void AskForGpus();
  void OnAnswer();
  void KillQuery();
  void EndQuery();

  const std::vector<std::string> environment_;
  FdLoop& loop_;
  const Clock& clock_;

  std::optional<PipedProgram> query_;  // nvidia-smi, while it runs
  bool killed_ = false;                // it hasn't ended yet, and no other one is started before
  std::string answer_;                 // what it has said
  absl::Time asked_ = absl::InfinitePast();
  std::vector<GpuUsage> gpus_;
};

}  // namespace muster
