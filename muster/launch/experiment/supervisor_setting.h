// What a supervisor hands on to the programs that it starts: never stored, only in the memory of processes.
#pragma once

#include <sys/types.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/backends/backend.h"
#include "muster/launch/experiment/handover.h"
#include "muster/launch/hosts/host_list.h"

namespace muster {

// What becomes of the supervisor's job, whose processes have been signalled.
struct EndingOfJob {
  enum class What {
    kNotice,     // nothing but the signal is known, which sites send before a job's time is over
    kCancelled,  // by somebody; `reason` is what follows that word, ": …", or nothing
    kEnded,      // by the engine, for `reason`
    kBegunAnew,  // the engine ends it, and begins it once more
    kUnknown,    // the engine can't be asked
  };
  What what = What::kNotice;
  std::string reason = "";
};

// The job of an engine in which the supervisor is, as far as the run is concerned (launch/jobs).
struct JobLimits {
  std::string name;                                   // "job 17 of Slurm"
  std::string run_id = "";                            // of the run, as its agents know it already; "": any
  std::vector<Host> hosts;                            // those of the job
  std::function<absl::Time()> end_at = nullptr;       // asks when the run has to begin to end; InfiniteFuture: never
  std::string notice_file;                            // exists once the engine has said that the job ends soon
  bool goes_on = false;                               // in another job, if this one's time is over
  std::function<bool()> was_killed = nullptr;         // asks whether somebody has asked for the run's end
  std::function<EndingOfJob()> why_ending = nullptr;  // asks the engine what becomes of the job just now
  // Comes from the supervisor before, which was killed: this one goes on with its tasks. The number is its own.
  std::optional<Handover> left = std::nullopt;
  // Why the run begins once more although no supervisor has said that: the one before was killed. "": it doesn't.
  std::string begins_again = "";
  std::string says = "";  // a line for the user about the job's hosts; "": there is nothing to say
};

struct SupervisorSetting {
  std::string engine = kThisMachine;  // where the tasks run: see MakeBackend
  std::string muster_command;         // this program
  // "NAME=VALUE": that of the shell which started the experiment. The variables that the registry keeps win over it.
  std::vector<std::string> environment;
  mode_t users_umask = 022;  // of the shell: for the tasks and OUTPUT_DIR
  std::optional<JobLimits> job;
};

// Returns the user's environment without variables that would make a task part of another run.
std::vector<std::string> OutsideVariables(std::vector<std::string> environment);
// Returns the machine's GPUs, or only those that `visible`, the user's own CUDA_VISIBLE_DEVICES, names by number.
std::vector<int> GpusOfMachine(const std::string& visible);

}  // namespace muster
