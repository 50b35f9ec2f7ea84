// `muster sweep`: ends what dead jobs have left on this host, and removes their folders. Started by `muster gc
// --hosts`, not by users: --help doesn't name it.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/time/time.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/receive_place.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/status_macros.h"
#include "muster/launch/agent_server/agent_folder.h"
#include "muster/launch/backends/local/run_processes.h"
#include "muster/launch/project/remove_folder.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

constexpr char kSweepDescription[] = "End what dead jobs have left on this host (run by muster gc --hosts)";

// Returns a line about the job.
absl::StatusOr<std::string> Sweep(const std::string& job, bool dry_run) {
  ASSIGN_OR_RETURN(AgentFolder folder, AgentFolder::Open(job));
  // No agent of it is just being started.
  RETURN_IF_ERROR(folder.LockStart(absl::Seconds(30)));
  // An agent has it, or the guard of one that still ends its tasks.
  if (!folder.Lock(absl::ZeroDuration()).ok()) return absl::StrCat("job ", job, " runs");
  if (dry_run) return absl::StrCat("would end what is left of job ", job);
  ASSIGN_OR_RETURN(const std::string agent_id, folder.AgentId());
  const int of_agent = agent_id.empty() ? 0 : KillProcessesOfAgent(agent_id);  // also those that hide their run
  const int ended = of_agent + KillProcessesOfRun(job);
  folder.Remove(/*all=*/true);
  if (const auto place = ReceivePlaceHere(); place.ok()) RETURN_IF_ERROR(RemoveFolder(place->work(job)));
  return absl::StrCat("job ", job, ": ended ", ended, ended == 1 ? " process" : " processes", ", removed its folders");
}

absl::Status SweepAll(bool dry_run) {
  ASSIGN_OR_RETURN(const std::vector<std::string> jobs, AgentFolder::Jobs());
  ASSIGN_OR_RETURN(const std::vector<std::string> own, AgentFolder::PlacesOf(OwnVariable(kRunIdVariable)));
  for (const std::string& job : jobs) {
    if (std::find(own.begin(), own.end(), job) != own.end()) continue;  // this very run
    ASSIGN_OR_RETURN(const std::string line, Sweep(job, dry_run));
    std::printf("%s\n", line.c_str());
  }
  return absl::OkStatus();
}

}  // namespace

void AddSweepCommand(CLI::App& app, int& exit_code) {
  auto dry_run = std::make_shared<bool>(false);
  CLI::App* command = app.add_subcommand("sweep", kSweepDescription);
  command->group("");  // not in --help
  command->add_flag("--dry-run", *dry_run, "Only show what would be ended");
  command->callback([dry_run, &exit_code] {
    const absl::Status swept = SweepAll(*dry_run);
    exit_code = swept.ok() ? 0 : UsageError("sweep", swept);
  });
}

}  // namespace muster
