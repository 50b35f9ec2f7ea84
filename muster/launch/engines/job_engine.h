// An engine that holds whole experiments: a job of it runs a script, which starts the experiment's supervisor among the
// hosts that the job has got. It is asked by commands anywhere, so it never has to reach a host itself. Calls block, at
// most for seconds. Not thread-safe.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/hosts/host_setting.h"

namespace muster {

// What the tasks on a host of a job need together. Unset: no task states it, and the engine's own default counts.
struct HostNeeds {
  std::optional<double> cpus;
  std::optional<int64_t> mem_bytes;
  int gpus = 0;

  bool operator==(const HostNeeds&) const = default;
};

// What a user asks an engine for, as far as others must know it.
struct JobTerms {
  int hosts = 1;                             // at least
  std::optional<absl::Duration> time_limit;  // nullopt: the engine's own
  int max_requeues = 0;                      // how often the run goes on in another job when its job's time is over
  bool chains = true;                        // a job can wait for the ends of others
  bool signal_cancels = false;               // SIGTERM to the script means that somebody has ended the job
  // How often it is submitted when there is no room for all of it; nullopt: until there is.
  std::optional<int> start_tries;
  absl::Duration start_pause = absl::Seconds(30);  // before the second time; then more and more
};

// A run that is to be in a job.
struct JobRequest {
  std::string experiment;  // its id
  std::string project;
  HostSetting setting;       // what the user asks this engine for
  HostNeeds needs;           // of each host
  int least_hosts = 0;       // with so many the run can begin; 0: only with all
  absl::Duration notice;     // so long before its end the script is to be told
  std::string after;         // the jobs after whose ends it may begin, "17:19"; "": at any time
  std::string muster;        // the program's file, as the hosts see it
  std::string home;          // MUSTER_HOME
  std::string folder;        // the run's own, in which the script runs
  std::string output_file;   // what the script prints, one attempt behind the other
  std::string over_file;     // Home::job_over, by which the script knows that the supervisor hasn't died; what the
                             // script itself writes there is why it can't start one
  std::string waits_file;    // Home::job_waits, where the script says why it waits
  std::string notice_file;   // made when the engine announces the end of the job's time
  mode_t users_umask = 022;  // muster's own files have another one
};

enum class JobPhase {
  kWaits,    // for hosts
  kRuns,     // or ends just now
  kEnded,    // and the engine remembers how
  kUnknown,  // the engine knows no such job, or not any more
};

struct JobNews {
  JobPhase phase = JobPhase::kUnknown;
  std::string text;        // in the engine's words: "PENDING (Resources)", "NODE_FAIL"; empty if it is unknown
  bool cancelled = false;  // somebody has ended it
  bool stuck = false;      // it waits for what waiting alone doesn't bring, as an option to change
  bool hopeless = false;   // likewise, and nothing is even tried again
  bool ending = false;     // the engine ends it just now, for `reason`
  std::string reason;  // why it waits or ends, or what it has lost, in the engine's words: "Resources"; empty: unknown
  bool time_over = false;  // because its time is over
  // It has ended for what its engine or its hosts did: another attempt may go on. `text` may be empty.
  bool taken_away = false;
  // The host that couldn't open the script's output file, so that nothing of the script was run; "": it isn't that.
  std::string opened_nothing = "";
  std::string lasting = "";  // what of `text` is worth saying again when it has changed; empty: all of it
  // The script's, as a shell has it: 137 if it was killed. nullopt: it hasn't ended, or the engine doesn't say it.
  std::optional<int> exit_code = std::nullopt;
  bool in_part = false;   // it waits for some of its hosts, while its supervisor runs
  std::string late = "";  // why it is to be given back: it has only a part of its hosts, for too long; empty: it isn't
};

enum class JobEnd {
  kAsk,       // SIGTERM to the script
  kCancel,    // all that the job has
  kGiveBack,  // the same at once: it hasn't begun
};

// The job in which this process is.
struct OwnJob {
  std::string id;
  std::vector<std::string> hosts;  // by name, in the engine's order; at least one
  int restarts = 0;                // how often the engine has begun it anew
  std::string submitted_from;      // the host, as it calls itself; empty: unknown
  std::string run = "";            // the id that the run must have, as its agents know it already; empty: any
  std::string says = "";           // a line for the user about these hosts; empty: there is nothing to say
};

class JobEngine {
 public:
  virtual ~JobEngine() = default;
  virtual std::string name() const = 0;   // "slurm"
  virtual std::string title() const = 0;  // what a user reads: "Slurm"
  // Returns where the engine is, for MakeJobEngine to make it again; "": this machine knows.
  virtual std::string at() const { return ""; }
  virtual JobTerms TermsOf(const HostSetting& setting) const = 0;
  // Returns what Submit takes, for users to read, too: a script that runs the run's supervisor (`muster supervise
  // ID --in_job NAME`), again if it is killed.
  virtual std::string Script(const JobRequest& request) const = 0;
  // Returns the id that Submit will return for this script; "": only Submit finds it out.
  virtual std::string IdIn(const std::string& /*script*/) const { return ""; }
  // Returns the same script for another job, for engines in whose scripts the job's name stands.
  virtual std::string ScriptAnew(const std::string& script_text) const { return script_text; }
  // Returns the job's id. InvalidArgument has the engine's refusal, word for word. ResourceExhausted: so has this, and
  // it may take the job later. NotFound: there is no such engine, here or where it should answer.
  // Unavailable: it can't be asked, and may have taken it.
  // `after`: the jobs after whose ends it may begin, "17:19", in place of what the script says; "": as the script says.
  virtual absl::StatusOr<std::string> Submit(const std::string& script, const std::string& after) = 0;
  // Returns the engine's own words about whether and when it would begin this script; submits nothing.
  // InvalidArgument has its refusal. NotFound, Unavailable: it can't be asked.
  virtual absl::StatusOr<std::string> WouldTake(const std::string& script_text) = 0;
  // Returns news of each of these jobs. An error: the engine can't be asked now.
  virtual absl::StatusOr<std::map<std::string, JobNews>> Look(const std::vector<std::string>& ids) = 0;
  // OK also for a job that has ended.
  [[nodiscard]] virtual absl::Status End(const std::string& id, JobEnd how) = 0;
  // NotFound: it is in none. InvalidArgument: what the engine says about it can't be.
  virtual absl::StatusOr<OwnJob> Own() = 0;
  // Ends what an earlier life of its supervisor has left in the job, and waits for that a little. For its own
  // supervisor, before it starts anything. Returns whether surely nothing is left.
  virtual bool EndLeftSteps(const std::string& id) = 0;
  // Ends the job and has it wait and begin once more, under the same id. For its own supervisor.
  [[nodiscard]] virtual absl::Status Requeue(const std::string& id) = 0;
  // Lets a job that was requeued begin as soon as there are hosts. Has no effect on others.
  virtual void Hasten(const std::string& id) = 0;
  // Lets a job that waits for the end of other jobs begin without them.
  [[nodiscard]] virtual absl::Status Free(const std::string& id) = 0;
  // Returns how often the engine has begun the job anew, as OwnJob::restarts will say in it; nullopt: it can't be
  // asked.
  virtual std::optional<int> Restarts(const std::string& id) = 0;
  // Returns when the engine will end the job; nullopt: never, or it doesn't say.
  virtual std::optional<absl::Time> EndTime(const std::string& id) = 0;
  // Runs muster with these arguments beside the job's supervisor, with `input` on its stdin. Returns what it prints.
  // Blocks for seconds. Unimplemented: the supervisor shares the experiment's folder with everybody who asks.
  virtual absl::StatusOr<std::string> Ask(const std::string& /*id*/, const std::vector<std::string>& /*arguments*/,
                                          const std::string& /*input*/) {
    return absl::UnimplementedError("");
  }
};

}  // namespace muster
