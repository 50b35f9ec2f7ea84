// `muster cluster`: what TF_CONFIG and the task's flags mean to a program of ours, as JSON.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/task_config.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

constexpr char kClusterDescription[] = "Show how a process reads TF_CONFIG and the cluster flags";

constexpr char kClusterFooter[] = R"(
Flags override TF_CONFIG, TF_CONFIG torchrun's variables, and these the ones of Slurm's step; MUSTER_RESOLVE (none,
tf_config, torchrun or slurm) chooses another. Without any the process is alone: worker 0, its own chief. The chief of a
cluster is its chief task, or its master (the old name), or otherwise worker 0.

Examples:
  muster cluster --ps_hosts=10.0.0.1:2222 --worker_hosts=10.0.0.2:2222,10.0.0.3:2222 --job_name=worker --task_index=1
  TF_CONFIG='{"cluster": {"chief": ["a:2222"], "ps": ["b:2222"]}, "task": {"type": "ps", "index": 0}}' muster cluster

Prints one line of JSON: cluster, task {type, index}, is_chief, num_ps, num_workers (with the chief),
global_id (null for an evaluator), master (this task's address; "" if one process is all), model_dir.
A mistake is one line on stderr and exit code 2.)";

std::string ToJson(const TaskConfig& config) {
  nlohmann::ordered_json json;
  json["cluster"] = nlohmann::ordered_json::parse(config.cluster().ToJson());
  json["task"] = {{"type", config.task().job}, {"index", config.task().index}};
  json["is_chief"] = config.is_chief();
  json["num_ps"] = config.num_ps();
  json["num_workers"] = config.num_workers();
  json["global_id"] = config.global_id() < 0 ? nlohmann::ordered_json() : nlohmann::ordered_json(config.global_id());
  json["master"] = config.master();
  json["model_dir"] = config.model_dir();
  return json.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

int RunCluster(std::vector<std::string> arguments) {
  absl::StatusOr<TaskConfig> config = TaskConfig::FromArguments(arguments, ReadEnvironment());
  if (!config.ok()) return UsageError("cluster", config.status());
  if (!arguments.empty()) {
    return UsageError("cluster", absl::InvalidArgumentError(
                                     absl::StrCat("unknown argument ", Quoted(arguments[0]),
                                                  "; accepted: --ps_hosts, --worker_hosts, --chief_hosts, --job_name, "
                                                  "--task_index, --ps, --first_port, --model_dir")));
  }
  if (!config->notice().empty()) std::fprintf(stderr, "muster cluster: %s\n", config->notice().c_str());
  std::printf("%s\n", ToJson(*config).c_str());
  return 0;
}

}  // namespace

void AddClusterCommand(CLI::App& app, int& exit_code) {
  CLI::App* command = app.add_subcommand("cluster", kClusterDescription);
  // The library parses the flags, exactly as in a training program, so that what is shown is what happens there.
  command->allow_extras();
  command->footer("Flags, each as --flag=value or --flag value:\n" + TaskFlagsHelp() + kClusterFooter);
  command->callback([command, &exit_code] { exit_code = RunCluster(command->remaining()); });
}

}  // namespace muster
