// `muster run`: a cluster on this machine, in the foreground. Its exit code is the chief's.
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <algorithm>
#include <cerrno>
#include <cmath>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/color_flag.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/environment.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/foreground/foreground_run.h"
#include "muster/launch/foreground/run_trace.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/node_layout.h"

namespace muster {
namespace {

constexpr char kRunDescription[] = "Run a program as a cluster of processes on this machine, in the foreground";

constexpr char kRunFooter[] = R"(
Usage: muster run [FLAGS] -- PROGRAM [ARGUMENTS]

Every process gets TF_CONFIG (who it is), MUSTER_JOB_TOKEN (the secret of this job: yours if you have exported one, which
lets you ask its ps from another terminal, else a new one) and MUSTER_RUN_ID, and runs PROGRAM with the same arguments;
with --help as the only one it is run once, outside of a cluster. Without --chief, worker 0 is the chief. The run ends
when the chief ends.
A task that is killed is started again: a parameter server finds its model where it was, in memory that this command
keeps, a worker and the chief join again, and no update that was acknowledged is lost. Without ps (--ps 0) the death of a
worker ends all of them; they are started again and go on from the last checkpoint of --model_dir.
Ctrl-C ends all processes gracefully (the chief saves a last checkpoint), a second Ctrl-C at once. The exit code is the
chief's, also then: 0 if it could end well.

Examples:
  muster run --ps 2 --workers 2 --chief 1 -- build/release/bin/digits
  muster run --ps 1 --workers 2 --muster-ps --log-dir logs -- ./train --epochs 3
  muster run --ps 2 --workers 4 --dry-run -- ./train
  muster run --ps 1 --workers 2 --trace run.json --status_port 9100 -- ./train
  muster run --layout node --output_root runs -- ./experiment
  muster run --layout node --nodes h1,h2 --devices 8 --dry-run -- ./experiment

--layout node: the first node has a master, a ps and two workers, every further one a ps and a worker for each device. Each
process sees one device (CUDA_VISIBLE_DEVICES), and TensorBoard shows the folder of --output_root, each experiment in it as
a run. One node, this machine, is started; of several the plan is shown (--dry-run).

Exit codes: the chief's (128 + N if signal N ended it); 2 wrong usage, nothing started; 1 the start failed half-way.)";

constexpr int kRandomTokenBytes = 32;
constexpr int kRunIdBytes = 8;
constexpr int kLargestPort = 65535;
constexpr int kFirstPlannedPort = 2222;

struct RunFlags {
  std::optional<std::string> ps;       // 1
  std::optional<std::string> workers;  // 1
  std::optional<std::string> chiefs;   // 0
  std::string stop_grace = "30";
  std::string max_restarts = "10";
  std::string color = "auto";
  bool dry_run = false;
  std::string log_dir;
  std::string trace;
  std::string status_port;
  std::string layout;
  std::string nodes;
  std::string devices = "4";
  bool tensorboard = false;
  bool no_tensorboard = false;
  ClusterRequest request;  // the flags that need no conversion
};

absl::Status ParseCount(const char* flag, const std::string& text, int& count) {
  if (absl::SimpleAtoi(text, &count) && count >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", text, "': accepted is a whole number from 0"));
}

absl::StatusOr<absl::Duration> ParseSeconds(const char* flag, const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds) && seconds >= 0) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", text, "': accepted is a number of seconds from 0"));
}

// What follows "--". Anything before it that no flag of ours took is a mistake.
absl::StatusOr<std::vector<std::string>> ProgramOf(std::vector<std::string> remaining) {
  const auto marker = std::find(remaining.begin(), remaining.end(), "--");
  if (marker == remaining.begin() || remaining.empty()) {
    if (!remaining.empty()) remaining.erase(marker);
    return remaining;
  }
  return absl::InvalidArgumentError(absl::StrCat("'", remaining.front(),
                                                 "': no flag of muster run (see muster run --help);",
                                                 " the program and its arguments follow after --"));
}

absl::Status CheckPrograms(const ClusterPlan& plan, const std::vector<std::string>& environment) {
  std::string search_path = VariableIn(environment, "PATH");
  for (const ProcessSpec& process : plan.processes) {
    for (const auto& [name, value] : process.environment) {
      if (name == "PATH") search_path = value;
    }
    RETURN_IF_ERROR(FindProgram(process.arguments[0], search_path).status());
  }
  return absl::OkStatus();
}

// What --layout, --nodes and --devices mean. Where it is to be started, it must be this machine, and have the devices.
absl::Status TakeLayout(const RunFlags& flags, const std::vector<std::string>& environment, ClusterRequest& request) {
  if (flags.layout.empty()) {
    if (!flags.nodes.empty()) return absl::InvalidArgumentError("--nodes: accepted with --layout node only");
    return absl::OkStatus();
  }
  if (flags.layout != "node")
    return absl::InvalidArgumentError(absl::StrCat("--layout '", flags.layout, "': accepted is node"));
  if (flags.ps || flags.workers || flags.chiefs || request.evaluator)
    return absl::InvalidArgumentError(
        "--layout node says itself which tasks there are: accepted without --ps, "
        "--workers, --chief and --evaluator");
  NodeLayoutRequest wanted;
  RETURN_IF_ERROR(ParseCount("--devices", flags.devices, wanted.devices));
  wanted.nodes = {"localhost"};
  if (!flags.nodes.empty()) wanted.nodes = absl::StrSplit(flags.nodes, ',');
  ASSIGN_OR_RETURN(request.layout, PlaceByNode(wanted));
  request.visible_devices = VariableIn(environment, kDevicesVariable);
  if (flags.dry_run) return absl::OkStatus();
  if (wanted.nodes.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("--nodes ", flags.nodes, ": one node is started, this machine; ",
                                                   "--dry-run shows the plan of several"));
  const int gpus = CountGpus();
  if (gpus == 0 || gpus >= wanted.devices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--devices ", wanted.devices, ": this machine has ", gpus, " GPUs; accepted are 1 to ", gpus));
}

// Of every task: a free port of this machine; in a plan of several nodes, which is only shown, TensorFlow's 2222 and up
// on each.
std::vector<std::string> AddressesOf(const ClusterRequest& request, const FreePorts& ports) {
  const bool several = std::any_of(request.layout.begin(), request.layout.end(), [&](const PlacedTask& placed) {
    return placed.node != request.layout.front().node;
  });
  std::vector<std::string> addresses;
  std::map<std::string, int> next;
  for (int i = 0; i < AddressesNeeded(request); ++i) {
    if (several) {
      const std::string& node = request.layout[i].node;
      addresses.push_back(absl::StrCat(node, ":", kFirstPlannedPort + next[node]++));
    } else {
      addresses.push_back(absl::StrCat("127.0.0.1:", ports.port(i)));
    }
  }
  return addresses;
}

// TensorBoard on the output root, if it is wanted and installed; and the port that is kept for it.
absl::StatusOr<std::optional<FreePorts>> AddTensorBoard(const RunFlags& flags, ForegroundOptions& options) {
  if (flags.no_tensorboard || (!flags.tensorboard && flags.layout.empty())) return std::nullopt;
  std::string root = flags.request.output_root;
  if (root.empty() && flags.layout.empty()) root = flags.request.model_dir;
  if (root.empty()) root = VariableIn(options.environment, kOutputRootVariable);  // which the tasks have, too
  if (root.empty() && !flags.layout.empty()) root = kDefaultOutputRoot;
  if (root.empty())
    return absl::InvalidArgumentError("--tensorboard: of which folder? accepted with --output_root or --model_dir");
  if (!FindProgram("tensorboard", VariableIn(options.environment, "PATH")).ok()) {
    options.notes.push_back("TensorBoard isn't installed (pip install tensorboard): the run goes on without it");
    return std::nullopt;
  }
  ASSIGN_OR_RETURN(std::optional<FreePorts> port, FreePorts::Reserve(1));
  const std::string number = absl::StrCat(port->port(0));
  ProcessSpec board;
  board.task = {"tensorboard", 0};
  board.arguments = {"tensorboard", "--logdir", root, "--host", "127.0.0.1", "--port", number};
  options.companion = std::move(board);
  options.notes.push_back(absl::StrCat("TensorBoard on ", root, ": http://127.0.0.1:", number, "/"));
  return port;
}

// The first port of as many as there are tasks; 0: any free ones.
absl::StatusOr<int> FirstStatusPort(const std::string& flag, int tasks) {
  int first = 0;
  if (!absl::SimpleAtoi(flag, &first) || first < 0 || first + tasks - 1 > kLargestPort)
    return absl::InvalidArgumentError(absl::StrCat("--status_port '", flag, "': accepted is 0 (any free ports), or ",
                                                   "the first of ", tasks, " ports up to ", kLargestPort));
  return first;
}

// Gives each task a port for its status page. They are nobody else's as long as the caller keeps what it gets; it is
// nothing if there are to be no pages, or the ports are only to be named.
absl::StatusOr<std::optional<FreePorts>> GiveStatusPorts(const RunFlags& flags, ClusterRequest& request) {
  const std::string& flag = flags.status_port;
  if (flag.empty()) return std::nullopt;
  const int tasks = TasksOf(request);
  ASSIGN_OR_RETURN(const int first, FirstStatusPort(flag, tasks));
  if (first == 0) {
    ASSIGN_OR_RETURN(std::optional<FreePorts> reserved, FreePorts::Reserve(tasks));
    for (int i = 0; i < tasks; ++i) request.status_ports.push_back(reserved->port(i));
    return reserved;
  }
  for (int i = 0; i < tasks; ++i) request.status_ports.push_back(first + i);
  if (flags.dry_run) return std::nullopt;
  auto taken = FreePorts::Take({static_cast<uint16_t>(first), static_cast<uint16_t>(tasks)});
  if (absl::IsInvalidArgument(taken.status()))
    return absl::InvalidArgumentError(absl::StrCat("--status_port '", flag, "': ", taken.status().message(),
                                                   "; each of ", tasks, " tasks has one from there on, and 0 takes ",
                                                   "free ones"));
  RETURN_IF_ERROR(taken.status());
  return *std::move(taken);
}

// With a program that is only asked what its flags are there is nothing to train: a cluster would say it once a task.
bool AsksForHelp(const std::vector<std::string>& program) {
  return program.size() == 2 && (program[1] == "--help" || program[1] == "-h");
}

// Becomes the program; returns only if that can't be.
absl::Status BecomeProgram(std::vector<std::string> program, const std::string& search_path) {
  ASSIGN_OR_RETURN(const std::string path, FindProgram(program[0], search_path));
  std::vector<char*> words;
  for (std::string& word : program) words.push_back(word.data());
  words.push_back(nullptr);
  execv(path.c_str(), words.data());
  return absl::ErrnoToStatus(errno, path);
}

absl::StatusOr<int> Run(RunFlags flags, const std::vector<std::string>& remaining) {
  ClusterRequest& request = flags.request;
  RETURN_IF_ERROR(ParseCount("--ps", flags.ps.value_or("1"), request.ps));
  RETURN_IF_ERROR(ParseCount("--workers", flags.workers.value_or("1"), request.workers));
  RETURN_IF_ERROR(ParseCount("--chief", flags.chiefs.value_or("0"), request.chiefs));
  ASSIGN_OR_RETURN(request.program, ProgramOf(remaining));
  ForegroundOptions options;
  options.environment = OwnEnvironment();
  // The same folder for all, wherever they run.
  if (!request.output_root.empty()) request.output_root = std::filesystem::absolute(request.output_root).string();
  RETURN_IF_ERROR(TakeLayout(flags, options.environment, request));
  RETURN_IF_ERROR(ValidateRequest(request));
  if (AsksForHelp(request.program) && !flags.dry_run)
    return BecomeProgram(request.program, VariableIn(options.environment, "PATH"));
  options.run_id = RandomHex(kRunIdBytes);
  options.log.log_dir = flags.log_dir;
  ASSIGN_OR_RETURN(options.stop_grace, ParseSeconds("--stop-grace", flags.stop_grace));
  RETURN_IF_ERROR(ParseCount("--max-restarts", flags.max_restarts, options.max_restarts));
  ASSIGN_OR_RETURN(options.log.color_stdout, WantsColor(flags.color, STDOUT_FILENO));
  ASSIGN_OR_RETURN(options.log.color_stderr, WantsColor(flags.color, STDERR_FILENO));

  std::error_code no_proc;
  request.muster_command = std::filesystem::read_symlink("/proc/self/exe", no_proc).string();
  ASSIGN_OR_RETURN(std::optional<FreePorts> for_status, GiveStatusPorts(flags, request));
  std::optional<RunTrace> trace;
  if (!flags.trace.empty() && flags.dry_run) request.trace_parts = flags.trace;
  if (!flags.trace.empty() && !flags.dry_run) {
    ASSIGN_OR_RETURN(trace, RunTrace::Begin(PosixFileSystem(), flags.trace, options.run_id));
    request.trace_parts = trace->parts();
    options.trace = &*trace;
  }
  ASSIGN_OR_RETURN(FreePorts ports, FreePorts::Reserve(AddressesNeeded(request)));
  const std::vector<std::string> addresses = AddressesOf(request, ports);
  // A secret that the user has chosen lets him ask the run's ps from another terminal.
  const std::string exported = VariableIn(options.environment, kJobTokenVariable);
  const std::string token = exported.empty() ? RandomHex(kRandomTokenBytes) : exported;
  // For the tasks to listen there; the addresses above are others.
  for (size_t i = 0; for_status && i < request.status_ports.size(); ++i) for_status->Release(i);
  ASSIGN_OR_RETURN(const ClusterPlan plan, PlanCluster(request, addresses, token, options.run_id));
  RETURN_IF_ERROR(CheckPrograms(plan, options.environment));
  if (flags.dry_run) {
    std::fputs(DryRunText(plan).c_str(), stdout);
    return 0;
  }
  ASSIGN_OR_RETURN(std::optional<FreePorts> for_tensorboard, AddTensorBoard(flags, options));
  if (for_tensorboard.has_value()) for_tensorboard->Release(0);
  return RunInForeground(plan, std::move(ports), options);
}

int RunAndReport(const RunFlags& flags, const std::vector<std::string>& remaining) {
  const absl::StatusOr<int> code = Run(flags, remaining);
  if (code.ok()) return *code;
  const int usage = UsageError("run", code.status());
  const bool nothing_started = absl::IsInvalidArgument(code.status()) || absl::IsNotFound(code.status()) ||
                               absl::IsPermissionDenied(code.status());
  return nothing_started ? usage : 1;
}

void AddLayoutFlags(CLI::App* command, RunFlags& flags) {
  command->add_option("--layout", flags.layout, "node: the tasks of a node with several devices, instead of counts")
      ->type_name("NAME");
  command->add_option("--nodes", flags.nodes, "With --layout: nodes by name, the first is the root (default: this one)")
      ->type_name("H1,H2,…");
  command->add_option("--devices", flags.devices, "With --layout: GPUs of each node, or slots without GPUs (default 4)")
      ->type_name("N");
  command
      ->add_option("--output_root,--output-root", flags.request.output_root,
                   "Folder below which each experiment has its own; for programs that know it, and for TensorBoard")
      ->type_name("DIR");
  command->add_flag("--tensorboard", flags.tensorboard,
                    "Run TensorBoard on the output root (or --model_dir) beside the tasks; with --layout it always is");
  command->add_flag("--no-tensorboard,--no_tensorboard", flags.no_tensorboard, "… it never is");
}

}  // namespace

void AddRunCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", kRunDescription);
  command->add_option("--ps", flags->ps, "How many parameter servers (default 1)")->type_name("N");
  command->add_option("--workers", flags->workers, "How many workers (default 1)")->type_name("N");
  command->add_option("--chief", flags->chiefs, "1: a chief besides the workers; 0 (default): worker 0")
      ->type_name("N");
  command->add_flag("--evaluator", flags->request.evaluator, "Also an evaluator");
  command->add_flag("--muster-ps", flags->request.muster_ps, "Parameter servers are `muster ps`, not PROGRAM");
  AddLayoutFlags(command, *flags);
  command->add_option("--model_dir,--model-dir", flags->request.model_dir, "Goes into TF_CONFIG")->type_name("DIR");
  command->add_option("--env", flags->request.environment, "For every process; may be repeated")
      ->type_name("NAME=VALUE")
      ->allow_extra_args(false);
  command->add_option("--log-dir,--log_dir", flags->log_dir, "Also write each task's lines to DIR/worker-0.log, ...")
      ->type_name("DIR");
  command->add_option("--color", flags->color, "auto (default), always, never")->type_name("WHEN");
  command
      ->add_option("--trace", flags->trace,
                   "When the run has ended: what every task did when, as one Chrome trace, and a table of where the "
                   "steps' time went")
      ->type_name("FILE");
  command
      ->add_option("--status_port,--status-port", flags->status_port,
                   "A status page and Prometheus metrics of every task, at this port and those that follow; 0: free "
                   "ones. The log names them")
      ->type_name("PORT");
  command->add_flag("--dry-run", flags->dry_run, "Print commands and environment, start nothing");
  command
      ->add_option(
          "--stop-grace", flags->stop_grace,
          "How long the others may go on after the chief has ended, and how long they have to end when they are "
          "asked to (default 30)")
      ->type_name("SECONDS");
  command
      ->add_option("--max-restarts,--max_restarts", flags->max_restarts,
                   "How often a task that is killed, or exits with 137, 138 or 143, is started again (default 10)")
      ->type_name("N");
  // The program's words are taken as they are, from the extras: CLI11's own list of positionals would split a word like
  // "[a,b]". A positional that accepts nothing is what keeps "--" with this subcommand.
  command->add_option("PROGRAM")->check([](const std::string&) { return "taken from the extras"; });
  command->validate_positionals();
  command->allow_extras();
  command->footer(kRunFooter);
  command->callback([command, flags, &exit_code] { exit_code = RunAndReport(*flags, command->remaining()); });
}

}  // namespace muster
