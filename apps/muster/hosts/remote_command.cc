#include "apps/muster/hosts/remote_command.h"

#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/hosts/host_command.h"
#include "apps/muster/hosts/host_flags.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/launch/engines/ssh/first_contact.h"
#include "muster/launch/engines/ssh/ssh_command.h"

namespace muster {
namespace {

constexpr std::array kForwarded = {"logs", "status", "kill", "show", "results", "monitor", "rerun", "ls"};
constexpr int kFailureOfSsh = 255;

volatile sig_atomic_t interrupted = 0;
volatile sig_atomic_t ssh_pid = 0;  // while it runs

// Passes it on, for a sender who has interrupted this process alone.
void OnInterrupt(int) {
  interrupted = 1;
  if (ssh_pid > 0) kill(ssh_pid, SIGINT);
}

bool IsOfHostName(unsigned char letter) {
  return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == '_' || letter == '@';
}

// Runs ssh to its end.
absl::StatusOr<int> Ssh(const std::vector<std::string>& words) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  struct sigaction noted = {}, before = {};
  noted.sa_handler = OnInterrupt;
  sigaction(SIGINT, &noted, &before);
  const pid_t pid = fork();
  if (pid == 0) {
    signal(SIGINT, SIG_DFL);
    execvp(pointers[0], pointers.data());
    _exit(127);
  }
  ssh_pid = pid;
  if (interrupted != 0) OnInterrupt(SIGINT);
  int status = 0;
  const bool waited = pid > 0 && Uninterrupted([&] { return waitpid(pid, &status, 0); }) == pid;
  const int error = errno;
  ssh_pid = 0;
  sigaction(SIGINT, &before, nullptr);
  if (!waited) return absl::ErrnoToStatus(error, "cannot start ssh");
  if (WIFSIGNALED(status)) return 128 + WTERMSIG(status);
  return WEXITSTATUS(status);
}

absl::Status CopyMuster(const std::string& host, const std::string& ssh_config) {
  ASSIGN_OR_RETURN(HostPlan plan, HostPlanOf({.ssh_config = ssh_config}, {{.name = host}}));
  ASSIGN_OR_RETURN(const HostAnswer answer,
                   RunOnHost({.plan = std::move(plan), .host = host, .words = {"muster", "version"}}));
  if (answer.exit_code == 0) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("muster doesn't run on ", host, ": ", answer.stderr_text));
}

}  // namespace

std::optional<RemoteName> ParseRemoteName(std::string_view word) {
  const size_t colon = word.find(':');
  if (colon == 0 || colon == std::string_view::npos || word[0] == '-') return std::nullopt;
  const std::string_view host = word.substr(0, colon), name = word.substr(colon + 1);
  if (!std::all_of(host.begin(), host.end(), IsOfHostName)) return std::nullopt;
  if (!name.empty() && std::isdigit(static_cast<unsigned char>(name[0])) == 0) return std::nullopt;
  return RemoteName{.host = std::string(host), .name = std::string(name)};
}

absl::StatusOr<std::optional<RemoteCommand>> RemoteCommandIn(
    const std::vector<std::string>& arguments, const std::function<bool(const std::string& word)>& takes_value) {
  // Other commands have words of this form that mean others: addresses.
  if (arguments.empty()) return std::nullopt;
  const std::string& first = arguments[0];
  const bool forwarded = std::find(kForwarded.begin(), kForwarded.end(), first) != kForwarded.end();
  if (!forwarded && first != "tensorboard") return std::nullopt;
  RemoteCommand command;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool is_value = i > 1 && takes_value(arguments[i - 1]);
    const std::optional<RemoteName> named = i == 0 || is_value ? std::nullopt : ParseRemoteName(word);
    if (!named.has_value()) {
      command.words.push_back(word);
      continue;
    }
    if (!command.host.empty() && command.host != named->host)
      return absl::InvalidArgumentError(
          absl::StrCat(command.host, " and ", named->host, ": accepted are experiments of one host at a time"));
    command.host = named->host;
    if (!named->name.empty()) command.words.push_back(named->name);
  }
  if (command.host.empty()) return std::nullopt;
  if (forwarded) return command;
  return absl::InvalidArgumentError(absl::StrCat("`", first, "` runs on the experiment's own host (ssh ", command.host,
                                                 "); accepted for another host's: ", absl::StrJoin(kForwarded, ", ")));
}

absl::StatusOr<RemoteEnd> RunRemoteCommand(const RemoteCommand& command, const std::string& ssh_config) {
  ASSIGN_OR_RETURN(const std::string program, PosixFileSystem().ReadFile("/proc/self/exe"));
  const SshSettings settings = {.config = ssh_config,
                                .terminal = isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1};
  const std::vector<std::string> words =
      SshArguments(settings, command.host, OwnCommandThere(MusterFileOf(program), command.words));
  interrupted = 0;
  ASSIGN_OR_RETURN(int code, Ssh(words));
  if (code == kNoMusterThere) {
    RETURN_IF_ERROR(CopyMuster(command.host, ssh_config));
    ASSIGN_OR_RETURN(code, Ssh(words));
  }
  if (interrupted != 0) return RemoteEnd{.exit_code = 128 + SIGINT, .interrupted = true};
  if (code == kFailureOfSsh) return absl::UnavailableError(absl::StrCat(command.host, " can't be used by ssh"));
  return RemoteEnd{.exit_code = code};
}

}  // namespace muster
