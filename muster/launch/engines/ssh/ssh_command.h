// The command line with which OpenSSH is run, and what its failures mean. It is the user's own ssh with the user's own
// configuration (agent, jump hosts, ControlMaster): only what a program in the background needs is set. Pure,
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/task/exit_status.h"

namespace muster {

struct SshSettings {
  std::string program = "ssh";
  std::string config;  // a file for `ssh -F`; empty: the user's own
  absl::Duration connect_timeout = absl::Seconds(10);
  bool terminal = false;  // a terminal there, for a person; otherwise bytes pass as they are
};

// Returns the words that run `command` on the host; `command` is text for the login shell of the user there.
std::vector<std::string> SshArguments(const SshSettings& settings, const std::string& host, const std::string& command);

// What ssh exits with when it has failed itself; a command there may exit with it, too.
inline constexpr int kFailureOfSsh = 255;

enum class SshFailure {
  kNone,         // ssh did what it was asked; a code other than 0 is the command's own
  kDropped,      // sshd closed the connection before the login, as it does beyond its MaxStartups; worth another try
  kUnknownName,  // the host's name can't be resolved
  kUnreachable,  // refused, timed out, no route
  kUnknownKey,   // the host's key isn't in known_hosts
  kChangedKey,   // the host has another key than known_hosts says
  kDenied,       // none of the user's keys is accepted
  kConnection,   // the connection broke later
  kOther,
};

// Says why ssh ended so. `errors` is what it wrote to stderr.
SshFailure WhySshFailed(const ExitStatus& status, std::string_view errors);

// Returns a sentence for the user: what is wrong and what to do about it, and ssh's own last words. `host` as given to
// ssh. Not for kNone.
std::string ExplainSshFailure(SshFailure failure, const std::string& host, std::string_view errors);

}  // namespace muster
