// Commands about experiments whose supervisor is on another host: `muster logs gpu1:4 -f` runs `muster logs 4 -f`
// there, over one ssh, with this build of muster. Blocking; the process must have no other thread.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// An experiment, run or task as it is named here ("gpu1:4", "me@gpu1:4.worker.2") or, without a name, all of a host
// ("gpu1:").
struct RemoteName {
  std::string host;
  std::string name;  // there; empty: none
};
std::optional<RemoteName> ParseRemoteName(std::string_view word);

struct RemoteCommand {
  std::string host;
  std::vector<std::string> words;  // after "muster"
  std::string ssh_config = "";     // a file for `ssh -F`; empty: the user's own
};

// Returns what `arguments` (after "muster") ask for on another host; nullopt: nothing. `takes_value`: whether the next
// word after this one is its value. InvalidArgument: a command that can't be run there, names of two hosts or of a host
// and of this machine, or a host without an experiment where that would end or start one.
absl::StatusOr<std::optional<RemoteCommand>> RemoteCommandIn(
    const std::vector<std::string>& arguments, const std::function<bool(const std::string& word)>& takes_value);

struct RemoteEnd {
  int exit_code = 0;         // the command's
  bool interrupted = false;  // by Ctrl-C, which ends only this end of it if it has no terminal there
};
// Runs it with this process's own stdout and stderr, and with its terminal if it has one in the foreground; otherwise
// its stdin is empty. Copies muster there first if need be. InvalidArgument: a word that shells read differently.
// Unavailable: ssh has failed, and has said why on stderr.
absl::StatusOr<RemoteEnd> RunRemoteCommand(const RemoteCommand& command);

}  // namespace muster
