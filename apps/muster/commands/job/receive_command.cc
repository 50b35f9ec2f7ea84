// `muster receive`: takes the code of a run on this host, over its stdin and stdout. `muster run --copy` and `muster
// train` run it on each; internal.
#include <sys/stat.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <string>

#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/receive_place.h"
#include "apps/muster/commands/job/standard_streams.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/launch/agent_server/agent_folder.h"
#include "muster/launch/project/tree_receiver.h"

namespace muster {
namespace {

constexpr char kReceiveDescription[] = "Take the code of a run on this host (run by muster on each host of a run)";

// A job whose agent was killed may get another one, which works in the same folder.
constexpr absl::Duration kKilledAgentKept = absl::Hours(24);

// An agent, or the guard that ends the tasks of a dead one, holds the lock of its folder.
bool AgentLives(const std::string& place) {
  auto folder = AgentFolder::Open(place);
  struct stat info;
  if (!folder.ok()) return true;
  if (lstat(folder->PathOf("").c_str(), &info) != 0) return false;
  if (absl::TimeFromTimespec(info.st_mtim) > RealClock().Now() - kKilledAgentKept) return true;
  return !folder->Lock(absl::ZeroDuration()).ok();
}

bool JobLives(const std::string& job) {
  const auto places = AgentFolder::PlacesOf(job);
  return !places.ok() || std::any_of(places->begin(), places->end(), AgentLives);
}

absl::Status Receive() {
  ASSIGN_OR_RETURN(const ReceivePlace place, ReceivePlaceHere());
  SweepReceived(place, RealClock().Now(), JobLives);
  TreeReceiver receiver(place);
  while (true) {
    RETURN_IF_ERROR(WriteToStdout(receiver.Output()));
    ASSIGN_OR_RETURN(const std::string bytes, ReadFromStdin());
    // Without a folder, too: the host may see the tree itself.
    if (bytes.empty()) return absl::OkStatus();
    const absl::Status taken = receiver.Take(bytes);
    if (taken.ok()) continue;
    RETURN_IF_ERROR(WriteToStdout(receiver.Output()));
    return taken;
  }
}

}  // namespace

void AddReceiveCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("receive", kReceiveDescription);
  command->group("");  // not in --help
  command->callback([&exit_code] {
    const absl::Status done = Receive();
    exit_code = done.ok() ? 0 : UsageError("receive", done);
  });
}

}  // namespace muster
