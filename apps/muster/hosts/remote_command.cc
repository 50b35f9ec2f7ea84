#include "apps/muster/hosts/remote_command.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cerrno>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_replace.h"
#include "apps/muster/hosts/host_command.h"
#include "apps/muster/hosts/host_flags.h"
#include "apps/muster/terminal/shown_host.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/engines/contact/first_contact.h"
#include "muster/launch/engines/ssh/ssh_command.h"

namespace muster {
namespace {

constexpr std::array kForwarded = {"logs", "status", "kill", "show", "results", "monitor", "rerun", "ls"};
constexpr int kNotExecuted = 127;
constexpr char kSshConfigFlag[] = "--ssh_config";

// Returns the file of --ssh_config, which is for the way there, and takes it off the words.
absl::StatusOr<std::string> TakeSshConfig(std::vector<std::string>& words) {
  for (auto word = words.begin(); word != words.end(); ++word) {
    const std::string flag = absl::StrReplaceAll(word->substr(0, word->find('=')), {{"ssh-config", "ssh_config"}});
    if (flag != kSshConfigFlag) continue;
    const bool has_value = word->find('=') != std::string::npos;
    if (!has_value && word + 1 == words.end())
      return absl::InvalidArgumentError(absl::StrCat(kSshConfigFlag, ": which file?"));
    const std::string file = has_value ? word->substr(word->find('=') + 1) : *(word + 1);
    words.erase(word, word + (has_value ? 1 : 2));
    return file;
  }
  return "";
}

// A host without an experiment means its last one, or all, where a command only shows.
absl::Status CheckNames(const RemoteCommand& command, const std::string& bare, bool names_none) {
  const std::string& first = command.words[0];
  if (!bare.empty())
    return absl::InvalidArgumentError(absl::StrCat(bare, " is an experiment of this machine, beside one of ",
                                                   command.host, "; accepted: ", command.host, ":", bare,
                                                   ", or two commands"));
  const bool all = std::find(command.words.begin(), command.words.end(), "--all") != command.words.end();
  if (names_none && (first == "rerun" || (first == "kill" && !all)))
    return absl::InvalidArgumentError(
        absl::StrCat("which experiment of ", command.host, "? accepted: ", command.host, ":ID"));
  const auto is_page = [](const std::string& word) { return word.starts_with("--html"); };
  if (std::any_of(command.words.begin(), command.words.end(), is_page))
    return absl::InvalidArgumentError(absl::StrCat("--html writes a file, which would be ", command.host,
                                                   "'s; accepted without it, or there: ssh ", command.host));
  return absl::OkStatus();
}

volatile sig_atomic_t interrupted = 0;
volatile sig_atomic_t ssh_pid = 0;  // while it runs

// Passes it on, for a sender who has interrupted this process alone.
void OnInterrupt(int) {
  interrupted = 1;
  if (ssh_pid > 0) kill(ssh_pid, SIGINT);
}

// Notes SIGINT while it lives, unless it is ignored, as in a script's background.
class NotedInterrupts {
 public:
  NotedInterrupts() {
    struct sigaction noted = {};
    noted.sa_handler = OnInterrupt;
    sigaction(SIGINT, nullptr, &before_);
    if (before_.sa_handler != SIG_IGN) sigaction(SIGINT, &noted, nullptr);
  }
  ~NotedInterrupts() { sigaction(SIGINT, &before_, nullptr); }
  NotedInterrupts(const NotedInterrupts&) = delete;
  NotedInterrupts& operator=(const NotedInterrupts&) = delete;
  void RestoreInChild() const { sigaction(SIGINT, &before_, nullptr); }

 private:
  struct sigaction before_ = {};
};

bool HasTerminal() {
  return isatty(STDIN_FILENO) == 1 && isatty(STDOUT_FILENO) == 1 && tcgetpgrp(STDIN_FILENO) == getpgrp();
}

bool IsOfHostName(unsigned char letter) {
  return std::isalnum(letter) != 0 || letter == '.' || letter == '-' || letter == '_' || letter == '@';
}

// Runs ssh to its end; it ends with this process.
absl::StatusOr<int> Ssh(const std::vector<std::string>& words, bool has_terminal) {
  std::vector<char*> pointers;
  for (const std::string& word : words) pointers.push_back(const_cast<char*>(word.c_str()));
  pointers.push_back(nullptr);
  const NotedInterrupts noted;
  const pid_t self = getpid();
  const pid_t pid = fork();
  if (pid == 0) {
    noted.RestoreInChild();
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != self) _exit(kNotExecuted);
    // Without it, ssh would read what is meant for others: the list of a shell's loop.
    if (const int nothing = has_terminal ? -1 : open("/dev/null", O_RDONLY | O_CLOEXEC); nothing >= 0)
      dup2(nothing, STDIN_FILENO);
    execvp(pointers[0], pointers.data());
    _exit(kNotExecuted);
  }
  ssh_pid = pid;
  if (interrupted != 0) OnInterrupt(SIGINT);
  int status = 0;
  const bool waited = pid > 0 && Uninterrupted([&] { return waitpid(pid, &status, 0); }) == pid;
  const int error = errno;
  ssh_pid = 0;
  if (!waited) return absl::ErrnoToStatus(error, "cannot start ssh");
  if (WIFSIGNALED(status)) return kFailureOfSsh;
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
  std::string bare;  // a name without a host
  bool names_none = false;
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::string& word = arguments[i];
    const bool is_value = i > 1 && (takes_value(arguments[i - 1]) || arguments[i - 1] == kSshConfigFlag);
    const std::optional<RemoteName> named = i == 0 || is_value ? std::nullopt : ParseRemoteName(word);
    if (!named.has_value()) {
      command.words.push_back(word);
      if (i > 0 && !is_value && std::isdigit(static_cast<unsigned char>(word[0])) != 0) bare = word;
      continue;
    }
    if (!command.host.empty() && command.host != named->host)
      return absl::InvalidArgumentError(
          absl::StrCat(command.host, " and ", named->host, ": accepted are experiments of one host at a time"));
    command.host = named->host;
    if (!named->name.empty()) command.words.push_back(named->name);
    names_none |= named->name.empty();
  }
  if (command.host.empty()) return std::nullopt;
  if (forwarded) {
    RETURN_IF_ERROR(CheckNames(command, bare, names_none));
    ASSIGN_OR_RETURN(command.ssh_config, TakeSshConfig(command.words));
    return command;
  }
  return absl::InvalidArgumentError(absl::StrCat("`", first, "` runs on the experiment's own host (ssh ", command.host,
                                                 "); accepted for another host's: ", absl::StrJoin(kForwarded, ", ")));
}

absl::StatusOr<RemoteEnd> RunRemoteCommand(const RemoteCommand& command) {
  for (const std::string& word : command.words)
    if (word.find_first_of("\\!\n") != std::string::npos)
      return absl::InvalidArgumentError(absl::StrCat(
          Quoted(word), ": shells of other hosts read it differently; accepted without '\\', '!' and line breaks"));
  ASSIGN_OR_RETURN(const std::string program, PosixFileSystem().ReadFile("/proc/self/exe"));
  const SshSettings settings = {.config = command.ssh_config, .terminal = HasTerminal()};
  const std::vector<std::string> words =
      SshArguments(settings, command.host,
                   OwnCommandThere(MusterFileOf(program), {kShownHostVariable, command.host}, command.words));
  interrupted = 0;
  ASSIGN_OR_RETURN(int code, Ssh(words, settings.terminal));
  if (code == kNoMusterThere) {
    RETURN_IF_ERROR(CopyMuster(command.host, command.ssh_config));
    ASSIGN_OR_RETURN(code, Ssh(words, settings.terminal));
  }
  if (interrupted != 0) return RemoteEnd{.exit_code = 128 + SIGINT, .interrupted = true};
  if (code == kNoMusterThere)
    return absl::UnavailableError(absl::StrCat("muster was copied to ", command.host,
                                               ", and a login there finds it no more; has it two home directories?"));
  if (code == kFailureOfSsh) return absl::UnavailableError(absl::StrCat(command.host, " can't be used by ssh"));
  return RemoteEnd{.exit_code = code};
}

}  // namespace muster
