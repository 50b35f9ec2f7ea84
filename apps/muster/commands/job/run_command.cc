// `muster run`: a cluster on this machine or on several hosts, in the foreground. Its exit code is the chief's.
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

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/hosts/foreground_hosts.h"
#include "apps/muster/hosts/host_flags.h"
#include "apps/muster/terminal/color_flag.h"
#include "apps/muster/terminal/own_environment.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/net/free_ports.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/identity/job_token.h"
#include "muster/cluster/slurm/slurm_step.h"
#include "muster/launch/engines/slurm/allocation.h"
#include "muster/launch/foreground/cluster_plan.h"
#include "muster/launch/foreground/copied_folder.h"
#include "muster/launch/foreground/foreground_run.h"
#include "muster/launch/foreground/model_folder.h"
#include "muster/launch/foreground/run_trace.h"
#include "muster/launch/hosts/host_list.h"
#include "muster/launch/hosts/placement.h"
#include "muster/launch/project/project_tree.h"
#include "muster/launch/system/find_program.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/system/tensorboard.h"
#include "muster/launch/task/node_layout.h"

namespace muster {
namespace {

constexpr char kRunDescription[] =
    "Run a program as a cluster of processes on this machine, on hosts by ssh, or on the nodes of a job of Slurm, in "
    "the "
    "foreground";

constexpr char kRunFooter[] = R"(
Usage: muster run [FLAGS] -- PROGRAM [ARGUMENTS]

Every process runs PROGRAM with the same arguments. Its environment has TF_CONFIG (its task and the cluster),
MUSTER_RUN_ID and MUSTER_JOB_TOKEN, the secret of this job. Export that variable yourself to query the job's ps from
another terminal; otherwise the token is random. With --help as its only argument, PROGRAM runs once, here.
Without --chief, worker 0 is the chief. The run ends when the chief ends.
A task that is killed is restarted. A parameter server finds its model again, in memory that this command keeps; workers
and the chief join again; no acknowledged update is lost. Without ps (--ps 0) the death of a worker ends all workers;
they are restarted and resume from the last checkpoint of --model_dir.
Ctrl-C ends all processes gracefully (the chief saves a last checkpoint), a second Ctrl-C kills them. The exit code is
the chief's, also after Ctrl-C: 0 if it ended well.

Examples:
  muster run --ps 2 --workers 2 --chief 1 -- build/release/bin/digits
  muster run --ps 1 --workers 2 --muster-ps --log-dir logs -- ./train --epochs 3
  muster run --ps 2 --workers 4 --dry-run -- ./train
  muster run --ps 1 --workers 2 --trace run.json --status_port 9100 -- ./train
  muster run --ps 1 --workers 4 --processors 8 -- ./train
  muster run --layout node --output_root runs -- ./experiment
  muster run --hosts h1,h2:4 --ps 2 --workers 6 -- build/release/bin/digits
  muster run --hosts h1,h2 --copy . --ps 1 --workers 2 -- ./train.sh
  muster run --layout node --hosts h1,h2 --devices 8 -- ./experiment
  muster run --on command --hosts_by pbs.yml --hosts 2 --ps 1 --workers 2 -- ./train
  salloc -N 2 muster run --on slurm --ps 1 --workers 4 -- ./train

The tasks that compute divide the processors of this machine (those that taskset, a container's quota or Slurm leave to
this command) among themselves. Two jobs on one machine know nothing of each other: give each its part by --processors,
MUSTER_PROCESSORS or taskset. OMP_NUM_THREADS is the number of each process instead.

--layout node: the first node has a master, a ps and two workers, every other node a ps and one worker per device. Each
process sees one device (CUDA_VISIBLE_DEVICES). TensorBoard shows the folder of --output_root, with one run per
experiment. Several nodes are those of --hosts; for --nodes, --dry-run prints the lines to paste on each.

--hosts, --host_file: the tasks run on hosts that your ssh reaches without a password. muster copies itself there; it
needs nothing but ssh and glibc. PROGRAM must be on each host under the same path: it starts in this folder there.
--copy DIR brings a folder there first: hosts that don't see DIR get a copy of what they lack, without what
.musterignore names, and PROGRAM, a path below DIR, starts in the copy. It is removed when the run has ended.
Workers take turns on the hosts, within their slots; so do parameter servers, which take no slot. Nothing of your
environment travels but what --env sets. A broken connection costs nothing for --grace seconds; when this command is
gone for longer, the tasks end by themselves. When a host is lost, its tasks but chief and evaluator go to others that
have slots left.

--on command: commands of your own get the hosts when the run starts, lead to them, and give them back when it has ended:
--hosts_by FILE names them, --hosts N says how many hosts. docs/command_engine.md has more.

Exit codes: the chief's (128 + N if signal N ended it); 2 wrong usage, or a host that can't be used: nothing
started; 1 starting failed half-way.)";

constexpr int kRandomTokenBytes = 32;
constexpr int kRunIdBytes = 8;
constexpr int kLargestPort = 65535;
constexpr int kFirstPlannedPort = 2222;

struct RunFlags {
  std::optional<std::string> ps;       // 1
  std::optional<std::string> workers;  // 1
  std::optional<std::string> chiefs;   // 0
  std::optional<std::string> processors;
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
  std::string first_port;
  bool tensorboard = false;
  bool no_tensorboard = false;
  bool restart_all = false;
  HostFlags hosts;
  std::string copy;
  ClusterRequest request;  // the flags that need no conversion
};

absl::Status ParseCount(const char* flag, const std::string& text, int& count) {
  if (absl::SimpleAtoi(text, &count) && count >= 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", text, "': accepted is a whole number from 0"));
}

absl::Status TakeCounts(const RunFlags& flags, ClusterRequest& request) {
  RETURN_IF_ERROR(ParseCount("--ps", flags.ps.value_or("1"), request.ps));
  RETURN_IF_ERROR(ParseCount("--workers", flags.workers.value_or("1"), request.workers));
  RETURN_IF_ERROR(ParseCount("--chief", flags.chiefs.value_or("0"), request.chiefs));
  if (!flags.processors) return absl::OkStatus();
  return ParseCount("--processors", *flags.processors, request.processors.emplace());
}

absl::StatusOr<absl::Duration> ParseSeconds(const char* flag, const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds) && seconds >= 0) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", text, "': accepted is a number of seconds from 0"));
}

// Returns what follows "--". Anything before it that isn't a flag of this command is a mistake.
absl::StatusOr<std::vector<std::string>> ProgramOf(std::vector<std::string> remaining,
                                                   const std::vector<std::string>& flags) {
  const auto marker = std::find(remaining.begin(), remaining.end(), "--");
  if (marker == remaining.begin() || remaining.empty()) {
    if (!remaining.empty()) remaining.erase(marker);
    return remaining;
  }
  const std::string& word = remaining.front();
  return absl::InvalidArgumentError(
      absl::StrCat("'", word, "': not a flag of muster run", NearestHint(word.substr(0, word.find('=')), flags),
                   " (see muster run --help); put the program and its arguments after --"));
}

absl::Status CheckProgram(const ClusterRequest& request, const std::vector<std::string>& environment) {
  std::vector<std::string> variables = environment;
  variables.insert(variables.begin(), request.environment.rbegin(), request.environment.rend());  // they win
  return FindProgram(request.program[0], VariableIn(variables, "PATH")).status();
}

// Applies --layout, --nodes and --devices. To start a layout, its node must be this machine and have the devices.
absl::Status TakeLayout(const RunFlags& flags, const std::vector<std::string>& environment,
                        const std::vector<Host>& hosts, ClusterRequest& request) {
  if (flags.layout.empty()) {
    if (!flags.nodes.empty()) return absl::InvalidArgumentError("--nodes: accepted with --layout node only");
    return absl::OkStatus();
  }
  if (flags.layout != "node")
    return absl::InvalidArgumentError(absl::StrCat("--layout '", flags.layout, "': accepted is node"));
  if (flags.ps || flags.workers || flags.chiefs || request.evaluator)
    return absl::InvalidArgumentError(
        "--layout node sets the tasks: accepted without --ps, "
        "--workers, --chief and --evaluator");
  NodeLayoutRequest wanted;
  RETURN_IF_ERROR(ParseCount("--devices", flags.devices, wanted.devices));
  wanted.nodes = {"localhost"};
  if (!flags.nodes.empty()) wanted.nodes = absl::StrSplit(flags.nodes, ',');
  if (!flags.nodes.empty() && !hosts.empty())
    return absl::InvalidArgumentError("--nodes: the hosts are the nodes; accepted without --hosts and --host_file");
  if (!hosts.empty()) wanted.nodes.clear();
  for (const Host& host : hosts) wanted.nodes.push_back(host.name);
  ASSIGN_OR_RETURN(request.layout, PlaceByNode(wanted));
  if (!hosts.empty()) return absl::OkStatus();
  request.visible_devices = VariableIn(environment, kDevicesVariable);
  if (flags.dry_run) return absl::OkStatus();
  if (wanted.nodes.size() > 1)
    return absl::InvalidArgumentError(absl::StrCat("--nodes ", flags.nodes, ": started are the nodes of --hosts; ",
                                                   "--dry-run shows the plan for these"));
  const int gpus = CountGpus();
  if (gpus == 0 || gpus >= wanted.devices) return absl::OkStatus();
  return absl::InvalidArgumentError(
      absl::StrCat("--devices ", wanted.devices, ": this machine has ", gpus, " GPUs; accepted are 1 to ", gpus));
}

// Returns a folder that all nodes see: the one in which the tasks start, otherwise the user's home.
std::string SharedFolder(const std::string& directory, const std::vector<std::string>& environment) {
  const std::string home = VariableIn(environment, "HOME");
  return access(directory.c_str(), W_OK) == 0 || home.empty() ? directory : home;
}

// Says on which host each task runs, and applies what follows from that.
absl::Status TakeHosts(const RunFlags& flags, std::vector<Host> hosts, ClusterRequest& request,
                       ForegroundOptions& options) {
  if (hosts.empty() && flags.restart_all)
    return absl::InvalidArgumentError("--restart-all: accepted with --hosts or --host_file only");
  ASSIGN_OR_RETURN(options.plan.ports, PortsIn(flags.hosts));
  if (hosts.empty()) return absl::OkStatus();
  if (!flags.first_port.empty() && !flags.dry_run)
    return absl::InvalidArgumentError(
        "--first_port: on hosts muster chooses free ports, of those of --ports; accepted with --dry-run only");
  if (!flags.trace.empty())
    return absl::InvalidArgumentError(
        "--trace: its parts are written to a folder of this machine; accepted without --hosts and --host_file");
  if (!flags.status_port.empty())
    return absl::InvalidArgumentError(
        "--status_port: status pages are for their own machine; accepted without --hosts and --host_file");
  PlacementRequest placement{.tasks = {}, .hosts = hosts, .explicit_hosts = {}};
  for (const TaskId& task : TasksOf(request)) placement.tasks.push_back({.task = task});
  for (const PlacedTask& placed : request.layout) request.hosts[placed.task] = placed.node;
  if (request.layout.empty()) {
    ASSIGN_OR_RETURN(request.hosts, PlaceOnHosts(placement));
  }
  options.restart_all = flags.restart_all;
  const std::string muster = request.muster_command;
  request.directory = std::filesystem::current_path().string();
  request.muster_command = "muster";  // each agent has its own first in the PATH
  std::optional<CommandHosts> command = std::move(options.plan.command);
  ASSIGN_OR_RETURN(options.plan, HostPlanOf(flags.hosts, std::move(hosts)));
  options.plan.command = std::move(command);
  options.plan.placement = request.hosts;
  options.plan.optional_hosts = DispensableHosts(request.hosts);
  options.engine = flags.hosts.on.empty() ? kSshEngine : flags.hosts.on;
  const bool on_slurm = options.engine == kSlurmEngine;
  if (on_slurm) options.plan.shared_folder = SharedFolder(request.directory, options.environment);
  for (const std::string& line : UnsharedModelFolderLines(request, options.plan.shared_folder))
    std::fprintf(stderr, "muster run: %s\n", line.c_str());
  if (!on_slurm) return absl::OkStatus();
  options.plan.muster = muster;
  ASSIGN_OR_RETURN(const SlurmAllocation allocation, AllocationIn(options.environment));
  options.notes.push_back(DescribeAllocation(allocation, absl::LocalTimeZone()));
  return absl::OkStatus();
}

// Returns the folder of --copy, in which the command runs; empty: none.
absl::StatusOr<std::string> FolderToCopy(const RunFlags& flags, const ClusterRequest& request) {
  if (flags.copy.empty()) return "";
  if (request.hosts.empty()) return absl::InvalidArgumentError("--copy: accepted with --hosts or --host_file only");
  std::error_code error;
  const std::filesystem::path folder = std::filesystem::canonical(flags.copy, error);
  if (error || !std::filesystem::is_directory(folder, error))
    return absl::NotFoundError(absl::StrCat("--copy '", flags.copy, "': there is no such folder"));
  const std::filesystem::path below = std::filesystem::path(request.directory).lexically_relative(folder);
  if (below.empty() || *below.begin() == "..")
    return absl::InvalidArgumentError(
        absl::StrCat("--copy '", flags.copy, "': accepted is this folder or one above it, as PROGRAM starts here"));
  if (!request.model_dir.empty() && request.model_dir[0] != '/')
    return absl::InvalidArgumentError(absl::StrCat("--model_dir '", request.model_dir,
                                                   "': a copy is removed when the run has ended; accepted with --copy ",
                                                   "is an absolute path"));
  return folder.string();
}

// Returns the name or address under which others reach a node of a plan that is only shown.
std::string NetworkNameOf(const std::string& node, const std::vector<Host>& hosts) {
  const auto host = std::find_if(hosts.begin(), hosts.end(), [&](const Host& one) { return one.name == node; });
  std::string name = host == hosts.end() || host->address.empty() ? node.substr(node.find('@') + 1) : host->address;
  return absl::StrContains(name, ':') && name.front() != '[' ? absl::StrCat("[", name, "]") : name;
}

bool HasSeveralNodes(const ClusterRequest& request) {
  if (!request.hosts.empty()) return true;
  return std::any_of(request.layout.begin(), request.layout.end(),
                     [&](const PlacedTask& placed) { return placed.node != request.layout.front().node; });
}

// Returns a free port of this machine for every task. In a plan of several nodes, which is only shown, uses the ports
// from --first_port on of each, by default those of --ports or TensorFlow's 2222.
absl::StatusOr<std::vector<std::string>> AddressesOf(const RunFlags& flags, const ClusterRequest& request,
                                                     const HostPlan& hosts, const FreePorts& ports) {
  const bool several = HasSeveralNodes(request);
  int first = hosts.ports.has_value() ? hosts.ports->first : kFirstPlannedPort;
  const int last = kLargestPort - AddressesNeeded(request) + 1;
  if (!flags.first_port.empty() && (!absl::SimpleAtoi(flags.first_port, &first) || first < 1 || first > last))
    return absl::InvalidArgumentError(absl::StrCat("--first_port '", flags.first_port, "': accepted is 1 to ", last));
  std::vector<std::string> addresses;
  std::map<std::string, int> next;
  const std::vector<TaskId> tasks = TasksOf(request);
  for (int i = 0; i < AddressesNeeded(request); ++i) {
    if (several) {
      const std::string& node = request.hosts.empty() ? request.layout[i].node : request.hosts.at(tasks[i]);
      addresses.push_back(absl::StrCat(NetworkNameOf(node, hosts.hosts), ":", first + next[node]++));
    } else {
      addresses.push_back(absl::StrCat("127.0.0.1:", ports.port(i)));
    }
  }
  return addresses;
}

// Adds TensorBoard on the output root, if wanted and installed.
absl::Status AddTensorBoard(const RunFlags& flags, ForegroundOptions& options) {
  if (flags.no_tensorboard || (!flags.tensorboard && flags.layout.empty())) return absl::OkStatus();
  std::string root = flags.request.output_root;
  if (root.empty() && flags.layout.empty()) root = flags.request.model_dir;
  if (root.empty()) root = VariableIn(options.environment, kOutputRootVariable);  // the tasks have it, too
  if (root.empty() && !flags.layout.empty()) root = kDefaultOutputRoot;
  if (root.empty())
    return absl::InvalidArgumentError("--tensorboard: no folder to show; accepted with --output_root or --model_dir");
  if (!FindProgram("tensorboard", VariableIn(options.environment, "PATH")).ok()) {
    options.notes.push_back(
        absl::StrCat("TensorBoard isn't installed (", kInstallTensorBoard, "): the run goes on without it"));
    return absl::OkStatus();
  }
  options.tensorboard_folder = root;
  return absl::OkStatus();
}

// Returns the first of as many ports as there are tasks; 0: any free ones.
absl::StatusOr<int> FirstStatusPort(const std::string& flag, int tasks) {
  int first = 0;
  if (!absl::SimpleAtoi(flag, &first) || first < 0 || first + tasks - 1 > kLargestPort)
    return absl::InvalidArgumentError(absl::StrCat("--status_port '", flag, "': accepted is 0 (any free ports), or ",
                                                   "the first of ", tasks, " ports up to ", kLargestPort));
  return first;
}

// Shows the plan with ports that are free now.
absl::Status PrintPlan(const RunFlags& flags, ClusterRequest request, const ForegroundOptions& options) {
  const int tasks = static_cast<int>(TasksOf(request).size());
  ASSIGN_OR_RETURN(const FreePorts for_status,
                   FreePorts::Reserve(options.first_status_port == 0 ? tasks : 0, options.plan.ports));
  for (int i = 0; options.first_status_port.has_value() && i < tasks; ++i)
    request.status_ports.push_back(*options.first_status_port == 0 ? for_status.port(i)
                                                                   : *options.first_status_port + i);
  // Those of other machines are only written down.
  const int here = HasSeveralNodes(request) ? 0 : AddressesNeeded(request);
  ASSIGN_OR_RETURN(const FreePorts ports, FreePorts::Reserve(here, options.plan.ports));
  ASSIGN_OR_RETURN(const std::vector<std::string> addresses, AddressesOf(flags, request, options.plan, ports));
  ASSIGN_OR_RETURN(const ClusterPlan plan, PlanCluster(request, addresses, options.job_token, options.run_id));
  std::fputs(DryRunText(plan).c_str(), stdout);
  return absl::OkStatus();
}

// Replaces this process by the program; returns only on failure.
absl::Status BecomeProgram(std::vector<std::string> program, const std::string& search_path) {
  ASSIGN_OR_RETURN(const std::string path, FindProgram(program[0], search_path));
  std::vector<char*> words;
  for (std::string& word : program) words.push_back(word.data());
  words.push_back(nullptr);
  execv(path.c_str(), words.data());
  return absl::ErrnoToStatus(errno, path);
}

// A program that is only asked for its flags trains nothing; in a cluster every task would print them.
bool AsksForHelp(const std::vector<std::string>& program) {
  return program.size() == 2 && (program[1] == "--help" || program[1] == "-h");
}

// Unavailable: a line for each mistake in a host file, as for hosts that can't be used. `held`: gets the hosts that
// commands have got.
absl::StatusOr<std::vector<Host>> HostsOfRun(const RunFlags& flags, ForegroundOptions& options,
                                             std::unique_ptr<HeldHosts>& held) {
  ASSIGN_OR_RETURN(const std::optional<CommandSetting> commands, CommandsOf(flags.hosts, {}, ""));
  if (commands.has_value() && (flags.dry_run || AsksForHelp(flags.request.program))) return HostsToShow(*commands);
  if (commands.has_value()) {
    ASSIGN_OR_RETURN(held, AcquireForForeground(*commands, options.environment));
    options.plan.command = held->ForEngine();
    return held->hosts();
  }
  absl::StatusOr<std::vector<Host>> hosts = HostsOf(flags.hosts, options.environment);
  if (!hosts.ok()) return absl::UnavailableError(hosts.status().message());
  return hosts;
}

// Each task of a step that srun has started would be a run of its own: of the same nodes, or beside the others.
absl::Status CheckStartedOnce(const RunFlags& flags) {
  const std::string task = OneOfSeveral(ReadEnvironment().roles.slurm);
  if (task.empty()) return absl::OkStatus();
  if (flags.hosts.on == kSlurmEngine)
    return absl::InvalidArgumentError(
        absl::StrCat("--on slurm: this is ", task,
                     ", and each of them would start a whole run on all nodes; accepted: without "
                     "srun, or with srun -n 1, and --pty for a terminal"));
  std::fprintf(stderr, "muster run: this is %s, and each of them starts a run of its own\n", task.c_str());
  return absl::OkStatus();
}

std::vector<std::string> FlagNames(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  return names;
}

absl::StatusOr<int> Run(RunFlags flags, const CLI::App& command) {
  ClusterRequest& request = flags.request;
  RETURN_IF_ERROR(TakeCounts(flags, request));
  ASSIGN_OR_RETURN(request.program, ProgramOf(command.remaining(), FlagNames(command)));
  ForegroundOptions options;
  options.environment = OwnEnvironment();
  RETURN_IF_ERROR(CheckStartedOnce(flags));
  RETURN_IF_ERROR(TakeVariables(options.environment, request));
  // Made absolute, so that all tasks use the same folder wherever they run.
  if (!request.output_root.empty()) request.output_root = std::filesystem::absolute(request.output_root).string();
  std::unique_ptr<HeldHosts> held;  // gives them back at the end
  ASSIGN_OR_RETURN(const std::vector<Host> hosts, HostsOfRun(flags, options, held));
  RETURN_IF_ERROR(TakeLayout(flags, options.environment, hosts, request));
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
  RETURN_IF_ERROR(TakeHosts(flags, hosts, request, options));
  if (!flags.status_port.empty()) {
    ASSIGN_OR_RETURN(options.first_status_port,
                     FirstStatusPort(flags.status_port, static_cast<int>(TasksOf(request).size())));
  }
  std::optional<RunTrace> trace;
  if (!flags.trace.empty() && flags.dry_run) request.trace_parts = flags.trace;
  if (!flags.trace.empty() && !flags.dry_run) {
    ASSIGN_OR_RETURN(trace, RunTrace::Begin(PosixFileSystem(), flags.trace, options.run_id));
    request.trace_parts = trace->parts();
    options.trace = &*trace;
  }
  if (!flags.first_port.empty() && !HasSeveralNodes(request))
    return absl::InvalidArgumentError("--first_port: accepted with several --nodes only");
  // A token that the user has chosen lets the user query the run's ps from another terminal.
  const std::string exported = VariableIn(options.environment, kJobTokenVariable);
  RETURN_IF_ERROR(CheckJobToken(exported));
  options.job_token = exported.empty() ? RandomHex(kRandomTokenBytes) : exported;
  if (hosts.empty()) RETURN_IF_ERROR(CheckProgram(request, options.environment));
  ASSIGN_OR_RETURN(const std::string to_copy, FolderToCopy(flags, request));
  if (flags.dry_run) RETURN_IF_ERROR(PrintPlan(flags, request, options));
  if (!to_copy.empty()) {
    ASSIGN_OR_RETURN(const ProjectFiles code, CodeForHosts(flags.hosts, to_copy));
    if (flags.dry_run) std::fputs(absl::StrCat("\n", CopyText(code)).c_str(), stdout);
  }
  if (flags.dry_run) return 0;
  RETURN_IF_ERROR(AddTensorBoard(flags, options));
  std::optional<CopiedFolder> copied;
  if (!to_copy.empty()) {
    ASSIGN_OR_RETURN(CopiedFolder taken, CopiedFolder::Take(to_copy, request.directory));
    options.copied = &copied.emplace(std::move(taken));
  }
  return RunInForeground(request, options);
}

// A file of commands, or several hosts, may have several mistakes, one per line.
int ReportLines(const absl::Status& status) {
  for (const absl::string_view line : absl::StrSplit(status.message(), '\n'))
    UsageError("run", absl::Status(status.code(), line));
  return kExitUsage;
}

int RunAndReport(const RunFlags& flags, const CLI::App& command) {
  const absl::StatusOr<int> code = Run(flags, command);
  if (code.ok()) return *code;
  const int usage = ReportLines(code.status());
  const bool nothing_started = absl::IsUnavailable(code.status()) || absl::IsInvalidArgument(code.status()) ||
                               absl::IsNotFound(code.status()) || absl::IsPermissionDenied(code.status()) ||
                               absl::IsResourceExhausted(code.status());
  return nothing_started ? usage : 1;
}

void AddLayoutFlags(CLI::App* command, RunFlags& flags) {
  command
      ->add_option("--layout", flags.layout,
                   "node: place a fixed set of tasks on each node, instead of counts of tasks")
      ->type_name("NAME");
  command
      ->add_option("--nodes", flags.nodes,
                   "With --layout: names of the nodes, the first is the root (default: this machine)")
      ->type_name("H1,H2,...");
  command
      ->add_option("--devices", flags.devices, "With --layout: GPUs per node, or slots if it has no GPUs (default 4)")
      ->type_name("N");
  command
      ->add_option("--first_port,--first-port", flags.first_port,
                   "With several nodes: each node's first port (default 2222)")
      ->type_name("PORT");
  command
      ->add_option("--output_root,--output-root", flags.request.output_root,
                   "Folder for the experiments' folders; for programs that support it, and for TensorBoard")
      ->type_name("DIR");
  command->add_flag(
      "--tensorboard", flags.tensorboard,
      "Run TensorBoard on the output root (or --model_dir) beside the tasks; on by default with --layout");
  command->add_flag("--no-tensorboard,--no_tensorboard", flags.no_tensorboard, "Never run TensorBoard");
}

// When the run and its tasks end, and which begin again.
void AddEndFlags(CLI::App* command, RunFlags& flags) {
  command
      ->add_option(
          "--stop-grace", flags.stop_grace,
          "How long the others may go on after the chief has ended, and how long tasks may take to end when they "
          "are asked to (default 30)")
      ->type_name("SECONDS");
  command
      ->add_option("--max-restarts,--max_restarts", flags.max_restarts,
                   "How often a task that is killed, or exits with 137, 138 or 143, is restarted (default 10)")
      ->type_name("N");
  command->add_flag("--restart-all,--restart_all", flags.restart_all,
                    "With --hosts: when a task goes to another host because its own is lost, start all again: for "
                    "programs that know the cluster from TF_CONFIG alone, as TensorFlow's do");
}

}  // namespace

void AddRunCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<RunFlags>();
  CLI::App* command = app.add_subcommand("run", kRunDescription);
  command->add_option("--ps", flags->ps, "How many parameter servers (default 1)")->type_name("N");
  command->add_option("--workers", flags->workers, "How many workers (default 1)")->type_name("N");
  command->add_option("--chief", flags->chiefs, "1: a chief besides the workers; 0 (default): worker 0 is the chief")
      ->type_name("N");
  command->add_flag("--evaluator", flags->request.evaluator, "Also run an evaluator");
  command->add_flag("--muster-ps", flags->request.muster_ps, "Run `muster ps` as parameter servers, not PROGRAM");
  AddHostFlags(command, flags->hosts, "on the nodes of the allocation around this command");
  command->add_option("--copy", flags->copy, "With hosts: a folder that those get a copy of which don't see it")
      ->type_name("DIR");
  AddLayoutFlags(command, *flags);
  command
      ->add_option("--model_dir,--model-dir", flags->request.model_dir,
                   "Folder for checkpoints, passed to the tasks in TF_CONFIG")
      ->type_name("DIR");
  command
      ->add_option(
          "--processors", flags->processors,
          "How many processors of this machine all tasks may use together, if another job runs beside this one")
      ->type_name("N");
  command
      ->add_option("--env", flags->request.environment,
                   "Set a variable for every process; without =VALUE to the value that it has here; may be repeated")
      ->type_name("NAME[=VALUE]")
      ->allow_extra_args(false);
  command->add_option("--log-dir,--log_dir", flags->log_dir, "Also write each task's lines to DIR/worker-0.log, ...")
      ->type_name("DIR");
  command->add_option("--color", flags->color, "auto (default), always, never")->type_name("WHEN");
  command
      ->add_option("--trace", flags->trace,
                   "Write one Chrome trace of all tasks when the run has ended, and print a table of where the steps' "
                   "time went")
      ->type_name("FILE");
  command
      ->add_option("--status_port,--status-port", flags->status_port,
                   "Serve a status page and Prometheus metrics of each task, at this port and the following ones; 0: "
                   "free ports, named in the log")
      ->type_name("PORT");
  command->add_flag("--dry-run", flags->dry_run, "Print the tasks as lines to paste into a shell, start nothing");
  AddEndFlags(command, *flags);
  // Takes the program's words unchanged from the extras, because CLI11's own positionals would split a word like
  // "[a,b]". A positional that accepts nothing keeps "--" with this subcommand.
  command->add_option("PROGRAM", "What every task runs, with its arguments; it stands behind --")
      ->check([](const std::string&) { return "taken from the extras"; });
  command->validate_positionals();
  command->allow_extras();
  command->footer(kRunFooter);
  command->callback([command, flags, &exit_code] { exit_code = RunAndReport(*flags, *command); });
}

}  // namespace muster
