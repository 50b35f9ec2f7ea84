#include "muster/cluster/task_flags.h"

#include <string_view>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

struct Flag {
  const char* name;
  std::optional<std::string> TaskFlags::*value;
  const char* accepted;
  const char* help;
};

constexpr Flag kFlags[] = {
    {"ps_hosts", &TaskFlags::ps_hosts, "host:port,host:port,...", "addresses of the parameter servers, in order"},
    {"worker_hosts", &TaskFlags::worker_hosts, "host:port,host:port,...", "addresses of the workers, in order"},
    {"chief_hosts", &TaskFlags::chief_hosts, "host:port", "address of the chief; without one worker 0 is the chief"},
    {"job_name", &TaskFlags::job_name, "ps|worker|chief|evaluator", "which of them this process is"},
    {"task_index", &TaskFlags::task_index, "0,1,...", "its number in that list"},
    {"model_dir", &TaskFlags::model_dir, "DIRECTORY", "where checkpoints and summaries go"},
    {"device", &TaskFlags::device, "cpu|cuda:N", "what a chief or worker computes on; a ps never touches a GPU"},
    {"trace", &TaskFlags::trace, "FILE", "Chrome trace of what it does; in a cluster FILE.worker-0 and so on"},
    {"status_port", &TaskFlags::status_port, "[HOST:]PORT", "status page and Prometheus metrics; 0: any free port"},
};

const Flag* FindFlag(std::string_view argument, bool& has_value) {
  if (argument.substr(0, 2) != "--") return nullptr;
  std::string_view name = argument.substr(
      2, argument.find('=') == std::string_view::npos ? std::string_view::npos : argument.find('=') - 2);
  has_value = name.size() + 2 < argument.size();
  for (const Flag& flag : kFlags) {
    if (name == flag.name) return &flag;
  }
  return nullptr;
}

// Fills `kept` with the positions of what isn't taken.
absl::StatusOr<TaskFlags> Scan(const std::vector<std::string>& arguments, std::vector<size_t>& kept) {
  TaskFlags flags;
  size_t i = 0;
  for (; i < arguments.size() && arguments[i] != "--"; ++i) {
    bool has_value = false;
    const Flag* flag = FindFlag(arguments[i], has_value);
    if (flag == nullptr) {
      kept.push_back(i);
      continue;
    }
    std::string value;
    if (has_value) {
      value = arguments[i].substr(arguments[i].find('=') + 1);
    } else if (i + 1 < arguments.size() && arguments[i + 1].substr(0, 2) != "--") {
      value = arguments[++i];
    } else {
      return absl::InvalidArgumentError(
          absl::StrCat("--", flag->name, " has no value; accepted: --", flag->name, "=", flag->accepted));
    }
    (flags.*flag->value).reset();
    if (!value.empty()) flags.*flag->value = std::move(value);
  }
  for (; i < arguments.size(); ++i) kept.push_back(i);
  return flags;
}

}  // namespace

absl::StatusOr<TaskFlags> TakeTaskFlags(std::vector<std::string>& arguments) {
  std::vector<size_t> kept;
  ASSIGN_OR_RETURN(TaskFlags flags, Scan(arguments, kept));
  std::vector<std::string> rest;
  for (size_t i : kept) rest.push_back(arguments[i]);
  arguments = std::move(rest);
  return flags;
}

absl::StatusOr<TaskFlags> TakeTaskFlags(int& argc, char** argv) {
  std::vector<size_t> kept;
  ASSIGN_OR_RETURN(TaskFlags flags, Scan(std::vector<std::string>(argv + (argc > 0 ? 1 : 0), argv + argc), kept));
  int count = argc > 0 ? 1 : 0;
  for (size_t i : kept) argv[count++] = argv[i + 1];
  argc = count;
  argv[argc] = nullptr;
  return flags;
}

std::string TaskFlagsHelp() {
  std::string help;
  for (const Flag& flag : kFlags) {
    absl::StrAppendFormat(&help, "  %-38s %s\n", absl::StrCat("--", flag.name, "=", flag.accepted), flag.help);
  }
  return help;
}

}  // namespace muster
