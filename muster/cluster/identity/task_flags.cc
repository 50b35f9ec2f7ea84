#include "muster/cluster/identity/task_flags.h"

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/flag_scan.h"

namespace muster {
namespace {

struct Flag {
  const char* name;
  std::optional<std::string> TaskFlags::*value;
  const char* accepted;
  const char* help;
  bool may_be_empty = false;
};

constexpr Flag kFlags[] = {
    {"ps_hosts", &TaskFlags::ps_hosts, "host:port,host:port,...", "addresses of the parameter servers, in order", true},
    {"worker_hosts", &TaskFlags::worker_hosts, "host:port,host:port,...", "addresses of the workers, in order", true},
    {"chief_hosts", &TaskFlags::chief_hosts, "host:port", "address of the chief; without one worker 0 is the chief",
     true},
    {"job_name", &TaskFlags::job_name, "ps|worker|chief|evaluator", "which of them this process is"},
    {"task_index", &TaskFlags::task_index, "0,1,...", "its number in that list"},
    {"ps", &TaskFlags::ps, "N", "below srun or torchrun: how many of the tasks, the last ones, are parameter servers"},
    {"first_port", &TaskFlags::first_port, "PORT",
     "below srun or torchrun: where the ports begin, instead of by the job's number"},
    {"model_dir", &TaskFlags::model_dir, "DIRECTORY", "where checkpoints and summaries go", true},
    {"device", &TaskFlags::device, "cpu|cuda:N", "what a chief or worker computes on; a ps never touches a GPU"},
    {"trace", &TaskFlags::trace, "FILE", "Chrome trace of what it does; in a cluster FILE.worker-0 and so on", true},
    {"status_port", &TaskFlags::status_port, "[HOST:]PORT", "status page and Prometheus metrics; 0: any free port"},
    {"stall_limit", &TaskFlags::stall_limit, "SECONDS",
     "on a ps: how long elastic rounds wait for a worker that hangs (default 10, or 5 of its steps); 0: for ever"},
    {"join_timeout", &TaskFlags::join_timeout, "SECONDS",
     "how long the ps may be out of reach when this task starts (default 60)"},
    {"linger", &TaskFlags::linger, "SECONDS",
     "on a ps: how long it tells late workers that training has ended (default 0.3)"},
    {"on_signal", &TaskFlags::on_signal, "end|leave",
     "what SIGTERM means: training ends (default), or this task leaves it to its next start"},
};

std::optional<KnownFlag> FindTaskFlag(const std::string& name) {
  for (const Flag& flag : kFlags) {
    if (name != flag.name) continue;
    return KnownFlag{.name = flag.name, .accepted = flag.accepted, .may_be_empty = flag.may_be_empty};
  }
  return std::nullopt;
}

TaskFlags FlagsOf(const FlagScan& scan) {
  TaskFlags flags;
  for (const GivenFlag& given : scan.given) {
    for (const Flag& flag : kFlags) {
      if (given.name != flag.name) continue;
      (flags.*flag.value).reset();
      if (!given.value.empty()) flags.*flag.value = given.value;
    }
  }
  return flags;
}

}  // namespace

absl::StatusOr<TaskFlags> TakeTaskFlags(std::vector<std::string>& arguments) {
  ASSIGN_OR_RETURN(const FlagScan scan, ScanFlags(arguments, FindTaskFlag));
  KeepArguments(scan.kept, arguments);
  return FlagsOf(scan);
}

absl::StatusOr<TaskFlags> TakeTaskFlags(int& argc, char** argv) {
  ASSIGN_OR_RETURN(const FlagScan scan, ScanFlags(ArgumentsOf(argc, argv), FindTaskFlag));
  KeepArguments(scan.kept, argc, argv);
  return FlagsOf(scan);
}

std::string TaskFlagsHelp() {
  std::string help;
  for (const Flag& flag : kFlags) {
    absl::StrAppendFormat(&help, "  %-38s %s\n", absl::StrCat("--", flag.name, "=", flag.accepted), flag.help);
  }
  return help;
}

std::vector<std::string> TaskFlagNames() {
  std::vector<std::string> names;
  for (const Flag& flag : kFlags) names.emplace_back(flag.name);
  return names;
}

}  // namespace muster
