// `muster tensorboard [ID]`: the real TensorBoard on what an experiment has written. It takes this process's place, so
// parsing returns only if it couldn't be started.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/terminal/own_environment.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/wrong_configuration.h"
#include "muster/launch/project/build.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/tensorboard.h"

namespace muster {
namespace {

constexpr char kTensorboardDescription[] = "Run TensorBoard on an experiment's output";

constexpr char kTensorboardFooter[] = R"(
Shows the experiment's OUTPUT_DIR (for a grid the folder with those of all runs) until Ctrl-C. Uses the TensorBoard of
the experiment's virtual environment if it has one, otherwise the one on PATH, here or where the experiment was started.
Listens on 127.0.0.1 only.

Examples:
  muster tensorboard                the last experiment of the project here
  muster tensorboard 4
  muster tensorboard 4.3 --port 6007

Exit codes: TensorBoard's; 2 no such experiment, no TensorBoard, or the port is in use.)";

// TensorBoard's own default port, which people's ssh tunnels use, too.
constexpr uint16_t kUsualPort = 6006;
constexpr int kLargestTensorboardPort = 65535;

struct TensorboardFlags {
  std::string id;
  std::string port;
  bool json = false;
};

// Returns the virtual environment; empty if the experiment's programs use what is on PATH.
std::string EnvironmentFolder(const NewExperiment& experiment, const Home& home) {
  const auto file = ParseExperimentFile(experiment.file_text, experiment.file_name);
  if (!file.ok()) return "";
  const auto plan = PlanBuild(*file, experiment.tree, experiment.options, home);
  return plan.ok() ? plan->environment_folder : "";
}

absl::StatusOr<std::string> FindTensorboard(Registry& registry, const ExperimentId& id, const Home& home) {
  ASSIGN_OR_RETURN(const NewExperiment experiment, registry.Specification(id.number));
  std::vector<std::string> search_paths;
  const std::string environment_folder = EnvironmentFolder(experiment, home);
  if (!environment_folder.empty()) search_paths.push_back(environment_folder + "/bin");
  search_paths.push_back(OwnVariable("PATH"));
  search_paths.push_back(VariableIn(experiment.environment, "PATH"));
  for (const std::string& search_path : search_paths)
    if (auto program = FindProgram("tensorboard", search_path); !search_path.empty() && program.ok()) return program;
  return WrongConfigurationError(absl::StrCat("TensorBoard isn't installed: neither on PATH nor where experiment ",
                                              id.ToString(), " runs; ", kInstallTensorBoard,
                                              environment_folder.empty() ? ""
                                                                         : absl::StrCat(", or ", environment_folder,
                                                                                        "/bin/pip install "
                                                                                        "tensorboard")));
}

// Returns the deepest folder that contains all of `folders`.
std::filesystem::path CommonFolder(const std::vector<RunRecord>& runs) {
  std::filesystem::path common = runs.front().output_dir;
  for (const RunRecord& run : runs) {
    const std::filesystem::path folder = run.output_dir;
    std::filesystem::path shared;
    for (auto a = common.begin(), b = folder.begin(); a != common.end() && b != folder.end() && *a == *b; ++a, ++b)
      shared /= *a;
    common = shared;
  }
  return common;
}

absl::StatusOr<std::string> FolderOf(Registry& registry, const ExperimentId& id) {
  ASSIGN_OR_RETURN(const RunRecord run, registry.Run(id));
  if (run.runs == 0) return run.output_dir;
  ASSIGN_OR_RETURN(const std::vector<RunRecord> runs, registry.Runs(id.number));
  return runs.empty() ? run.output_dir : CommonFolder(runs).string();
}

// Returns a port that is reserved until TensorBoard is started.
absl::StatusOr<FreePorts> PortFor(const std::string& wanted) {
  if (wanted.empty()) {
    auto usual = FreePorts::Take({.first = kUsualPort, .count = 1});
    return usual.ok() ? std::move(usual) : FreePorts::Reserve(1);
  }
  int port = 0;
  if (!absl::SimpleAtoi(wanted, &port) || port < 0 || port > kLargestTensorboardPort)
    return absl::InvalidArgumentError(
        absl::StrCat("--port '", wanted, "': accepted are 1 to ", kLargestTensorboardPort, ", or 0 for a free one"));
  if (port == 0) return FreePorts::Reserve(1);
  return FreePorts::Take({.first = static_cast<uint16_t>(port), .count = 1});
}

// Returns only on failure.
absl::Status StartTensorboard(const TensorboardFlags& flags) {
  ASSIGN_OR_RETURN(OpenedHome opened, OpenHomeToRead());
  ASSIGN_OR_RETURN(const ExperimentName name, NameOrLast(*opened.registry, flags.id));
  if (name.task.has_value())
    return absl::InvalidArgumentError(absl::StrCat(FullName(name.id, *name.task),
                                                   ": accepted is an experiment or a run of a grid, here ",
                                                   name.id.ToString(), "; all its tasks share one OUTPUT_DIR"));
  ASSIGN_OR_RETURN(const std::string folder, FolderOf(*opened.registry, name.id));
  if (folder.empty())
    return absl::InvalidArgumentError(absl::StrCat("experiment ", name.id.ToString(),
                                                   " has no OUTPUT_DIR, as none of its tasks has begun; muster status ",
                                                   name.id.ToString(), " says why"));
  ASSIGN_OR_RETURN(FreePorts port, PortFor(flags.port));
  ASSIGN_OR_RETURN(const std::string program, FindTensorboard(*opened.registry, name.id, opened.home));
  opened.registry.reset();  // this process becomes TensorBoard
  const std::string number = absl::StrCat(port.port(0));
  const std::string url = absl::StrCat("http://127.0.0.1:", number, "/");
  if (flags.json) {
    const nlohmann::ordered_json started = {{"id", name.id.ToString()}, {"folder", folder}, {"url", url}};
    std::printf("%s\n", started.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).c_str());
  } else {
    std::printf("TensorBoard on %s: %s\n", folder.c_str(), url.c_str());
  }
  std::fflush(stdout);
  std::vector<std::string> words = {program, "--logdir", folder, "--host", "127.0.0.1", "--port", number};
  std::vector<char*> arguments;
  for (std::string& word : words) arguments.push_back(word.data());
  arguments.push_back(nullptr);
  port.Release(0);
  execv(program.c_str(), arguments.data());
  return absl::ErrnoToStatus(errno, absl::StrCat("cannot start ", program));
}

}  // namespace

void AddTensorboardCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<TensorboardFlags>();
  CLI::App* command = app.add_subcommand("tensorboard", kTensorboardDescription);
  command->add_option("ID", flags->id, "An experiment or a run of a grid (default: the project's last experiment)")
      ->type_name("")
      ->check(RefuseEmptyId);
  command
      ->add_option("--port", flags->port,
                   "Port to listen on; 0: any free one (default 6006, or a free one if it is in use)")
      ->type_name("PORT");
  command->add_flag("--json", flags->json, "Print its address as JSON");
  command->footer(kTensorboardFooter);
  command->callback([flags, &exit_code] { exit_code = ReportError("tensorboard", StartTensorboard(*flags)); });
}

}  // namespace muster
