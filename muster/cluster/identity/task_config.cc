#include "muster/cluster/identity/task_config.h"

#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <nlohmann/json.hpp>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/program_name.h"
#include "muster/cluster/json_text.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

// What flags and TF_CONFIG say about this process, before the rules are applied. The keys name the source, for
// messages.
struct Sayings {
  std::optional<ClusterSpec> cluster;
  std::optional<std::string> job;
  std::optional<int> index;
  std::optional<std::string> model_dir;
  std::string cluster_key = "TF_CONFIG cluster";
  std::string job_key = "TF_CONFIG task.type";
  std::string index_key = "TF_CONFIG task.index";
};

absl::Status Wrong(const std::string& key, const std::string& what, const std::string& accepted) {
  return absl::InvalidArgumentError(absl::StrCat(key, ": ", what, "; accepted: ", accepted));
}

// Reads a number or a string of digits, which some launchers write.
absl::StatusOr<int> ReadIndex(const nlohmann::json& value, const std::string& key) {
  std::string accepted = absl::StrCat("a whole number from 0 to ", kMaxTaskIndex);
  if (value.is_string()) {
    absl::StatusOr<int> index = ParseTaskIndex(value.get_ref<const std::string&>());
    if (index.ok()) return index;
    return absl::InvalidArgumentError(absl::StrCat(key, ": ", index.status().message()));
  }
  if (!value.is_number()) return Wrong(key, DescribeJson(value) + " is not a task index", accepted);
  double number = value.get<double>();
  if (number < 0) return Wrong(key, DescribeJson(value) + " is negative", accepted);
  if (number != std::floor(number)) return Wrong(key, DescribeJson(value) + " is a fraction", accepted);
  if (number > kMaxTaskIndex) return Wrong(key, DescribeJson(value) + " is out of range", accepted);
  return static_cast<int>(number);
}

absl::Status ReadTask(const nlohmann::json& task, Sayings& sayings) {
  if (!task.is_object()) {
    return Wrong("TF_CONFIG task", DescribeJson(task) + " is not a task", "{\"type\": \"worker\", \"index\": 0}");
  }
  if (auto type = task.find("type"); type != task.end() && !type->is_null()) {
    if (!type->is_string()) {
      return Wrong(sayings.job_key, DescribeJson(*type) + " is not a job", "a string such as \"worker\"");
    }
    if (!type->get_ref<const std::string&>().empty()) sayings.job = type->get<std::string>();
  }
  if (auto index = task.find("index"); index != task.end() && !index->is_null()) {
    ASSIGN_OR_RETURN(sayings.index, ReadIndex(*index, sayings.index_key));
  }
  return absl::OkStatus();
}

// Ignores the other keys that TensorFlow and its operators write (service, session_master, eval_session_master,
// rpc_layer, environment): they don't matter here.
absl::StatusOr<Sayings> ReadTfConfig(const std::string& text) {
  Sayings sayings;
  if (absl::StripAsciiWhitespace(text).empty()) return sayings;
  ASSIGN_OR_RETURN(nlohmann::json config, ParseJson(text, "TF_CONFIG"));
  if (!config.is_object()) {
    return Wrong("TF_CONFIG", DescribeJson(config) + " is not a configuration",
                 "{\"cluster\": {…}, \"task\": {\"type\": …, \"index\": …}}");
  }
  // "sparseCluster" is what Kubeflow's operator wrote for growing clusters before it settled on "cluster".
  for (const char* name : {"cluster", "sparseCluster"}) {
    auto cluster = config.find(name);
    if (cluster == config.end()) continue;
    sayings.cluster_key = absl::StrCat("TF_CONFIG ", name);
    ASSIGN_OR_RETURN(sayings.cluster, ClusterSpec::FromJson(*cluster, sayings.cluster_key));
    break;
  }
  if (auto task = config.find("task"); task != config.end()) RETURN_IF_ERROR(ReadTask(*task, sayings));
  if (auto model_dir = config.find("model_dir"); model_dir != config.end() && !model_dir->is_null()) {
    if (!model_dir->is_string() || model_dir->get_ref<const std::string&>().empty()) {
      return Wrong("TF_CONFIG model_dir", DescribeJson(*model_dir) + " is not a directory",
                   "a string that isn't empty");
    }
    sayings.model_dir = model_dir->get<std::string>();
  }
  return sayings;
}

absl::Status AddHosts(const std::optional<std::string>& hosts, const std::string& job, ClusterSpec& cluster) {
  if (!hosts) return absl::OkStatus();
  int index = 0;
  for (absl::string_view host : absl::StrSplit(*hosts, ',')) {
    absl::Status added = cluster.AddTask({job, index++}, std::string(absl::StripAsciiWhitespace(host)));
    if (!added.ok()) return absl::InvalidArgumentError(absl::StrCat("--", job, "_hosts: ", added.message()));
  }
  return absl::OkStatus();
}

absl::Status ApplyFlags(const TaskFlags& flags, Sayings& sayings) {
  bool says_cluster = flags.ps_hosts || flags.worker_hosts || flags.chief_hosts;
  if (says_cluster) {
    ClusterSpec cluster;
    RETURN_IF_ERROR(AddHosts(flags.chief_hosts, kChiefJob, cluster));
    RETURN_IF_ERROR(AddHosts(flags.ps_hosts, kPsJob, cluster));
    RETURN_IF_ERROR(AddHosts(flags.worker_hosts, kWorkerJob, cluster));
    sayings.cluster = std::move(cluster);
    sayings.cluster_key = "--chief_hosts, --ps_hosts, --worker_hosts";
  }
  if (says_cluster || flags.job_name || flags.task_index) {
    sayings.job = flags.job_name;
    sayings.index.reset();
    sayings.job_key = "--job_name";
    sayings.index_key = "--task_index";
    if (flags.task_index) {
      absl::StatusOr<int> index = ParseTaskIndex(*flags.task_index);
      if (!index.ok()) return absl::InvalidArgumentError(absl::StrCat("--task_index: ", index.status().message()));
      sayings.index = *index;
    }
  }
  if (flags.model_dir) sayings.model_dir = flags.model_dir;
  return absl::OkStatus();
}

absl::StatusOr<TaskId> FindChief(const ClusterSpec& cluster, const std::string& key) {
  int chiefs = cluster.num_tasks(kChiefJob);
  int masters = cluster.num_tasks(kMasterJob);
  if (chiefs > 0 && masters > 0) {
    return Wrong(key, "both a chief and a master (its old name) in " + cluster.Summary(), "one of the two");
  }
  const char* job = masters > 0 ? kMasterJob : kChiefJob;
  if (chiefs + masters > 1) {
    return Wrong(key, absl::StrCat(chiefs + masters, " tasks of job ", job, " in ", cluster.Summary()), "one");
  }
  if (chiefs + masters == 0) {
    if (!cluster.HasJob(kWorkerJob)) {
      return Wrong(key, "neither chief nor worker in " + cluster.Summary(), "at least one of them");
    }
    return TaskId{kWorkerJob, 0};
  }
  if (cluster.tasks(job).begin()->first != 0) {
    return Wrong(key, absl::StrCat("the only ", job, " in ", cluster.Summary(), " is not number 0"),
                 absl::StrCat(job, ":0"));
  }
  return TaskId{job, 0};
}

std::string JobsOf(const ClusterSpec& cluster) {
  std::string jobs;
  for (const std::string& job : cluster.jobs())
    if (job != kEvaluatorJob) absl::StrAppend(&jobs, job, ", ");
  return jobs + kEvaluatorJob;
}

absl::Status ValidateTask(const ClusterSpec& cluster, const TaskId& task, const TaskId& chief, const Sayings& sayings) {
  if (task.job == kEvaluatorJob) {
    if (chief.job != kMasterJob) return absl::OkStatus();
    return Wrong(sayings.job_key, "\"evaluator\" in a cluster with a master", "an evaluator beside a chief");
  }
  if (!cluster.HasJob(task.job)) {
    return Wrong(sayings.job_key, absl::StrCat(Quoted(task.job), " is not a job of the cluster ", cluster.Summary()),
                 JobsOf(cluster));
  }
  if (!cluster.HasTask(task)) {
    return Wrong(sayings.index_key, absl::StrCat(task.index, " is out of range for job ", task.job), cluster.Summary());
  }
  return absl::OkStatus();
}

absl::Status ValidateAlone(const Sayings& sayings) {
  if (sayings.job && *sayings.job != kWorkerJob) {
    return Wrong(sayings.job_key, Quoted(*sayings.job) + " without a cluster", "\"worker\", or a cluster");
  }
  if (sayings.index && *sayings.index != 0) {
    return Wrong(sayings.index_key, absl::StrCat(*sayings.index, " without a cluster"), "0, or a cluster");
  }
  return absl::OkStatus();
}

absl::StatusOr<ComputeDevice> ReadDevice(const std::string& text) {
  auto device = ComputeDevice::Parse(text);
  if (device.ok()) return device;
  return absl::InvalidArgumentError(absl::StrCat("--device: ", device.status().message()));
}

absl::StatusOr<StatusAddress> ReadStatusPort(const std::string& text) {
  auto address = ParseStatusAddress(text);
  if (address.ok()) return address;
  return absl::InvalidArgumentError(absl::StrCat("--status_port: ", address.status().message()));
}

absl::StatusOr<absl::Duration> ReadStallLimit(const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds) && seconds >= 0) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(
      absl::StrCat("--stall_limit: ", Quoted(text), " is no number of seconds; accepted: 0 (never) and more"));
}

absl::StatusOr<absl::Duration> ReadSeconds(const char* flag, const std::string& text) {
  double seconds = 0;
  if (absl::SimpleAtod(text, &seconds) && std::isfinite(seconds) && seconds >= 0) return absl::Seconds(seconds);
  return absl::InvalidArgumentError(
      absl::StrCat("--", flag, ": ", Quoted(text), " is no number of seconds; accepted: 0 and more"));
}

absl::StatusOr<bool> ReadOnSignal(const std::string& text) {
  if (text == "end" || text == "leave") return text == "leave";
  return absl::InvalidArgumentError(absl::StrCat("--on_signal: ", Quoted(text), "; accepted: end, leave"));
}

// Reads the flags about how a task begins and ends.
absl::Status ReadLife(const TaskFlags& flags, std::optional<absl::Duration>& join_timeout,
                      std::optional<absl::Duration>& linger, bool& leaves_on_signal) {
  if (flags.join_timeout) {
    ASSIGN_OR_RETURN(join_timeout, ReadSeconds("join_timeout", *flags.join_timeout));
  }
  if (flags.linger) {
    ASSIGN_OR_RETURN(linger, ReadSeconds("linger", *flags.linger));
  }
  if (flags.on_signal) {
    ASSIGN_OR_RETURN(leaves_on_signal, ReadOnSignal(*flags.on_signal));
  }
  return absl::OkStatus();
}

// Asks where the role comes from, and puts what it is in place of what flags and TF_CONFIG say, if it comes from
// elsewhere.
absl::StatusOr<Role> ResolveRole(const TaskConfigInputs& inputs, bool tf_config_says, Sayings& sayings) {
  const TaskFlags& flags = inputs.flags;
  const bool cluster_flags = flags.ps_hosts || flags.worker_hosts || flags.chief_hosts;
  const bool flags_say = cluster_flags || flags.job_name || flags.task_index;
  ASSIGN_OR_RETURN(Role role, FindRole({.flags = flags_say,
                                        .cluster_flags = cluster_flags,
                                        .tf_config = tf_config_says,
                                        .ps = flags.ps,
                                        .first_port = flags.first_port},
                                       inputs.roles));
  if (role.source == RoleSource::kFlags || role.source == RoleSource::kTfConfig) return role;
  sayings.cluster.reset();
  sayings.job.reset();
  sayings.index.reset();
  if (!role.ranks) return role;
  sayings.cluster = role.ranks->cluster;
  sayings.job = role.ranks->task.job;
  sayings.index = role.ranks->task.index;
  return role;
}

// A launcher sets how a task is watched and ended by environment variables, because the flags belong to the program.
TaskConfigInputs InputsOf(TaskFlags flags, const Environment& environment) {
  const auto take = [](std::optional<std::string>& flag, const std::optional<std::string>& variable) {
    if (!flag && !variable.value_or("").empty()) flag = variable;
  };
  take(flags.trace, environment.trace);
  take(flags.status_port, environment.status_port);
  take(flags.join_timeout, environment.join_timeout);
  take(flags.linger, environment.linger);
  take(flags.on_signal, environment.on_signal);
  return {environment.tf_config, std::move(flags), environment.roles};
}

}  // namespace

std::string TracePartOf(const std::string& trace, const TaskId& task) {
  return absl::StrCat(trace, ".", task.job, "-", task.index);
}

std::string TaskConfig::trace_part() const {
  return trace_.empty() || (!distributed() && !is_evaluator()) ? trace_ : TracePartOf(trace_, task_);
}

absl::StatusOr<TaskConfig> ResolveTaskConfig(const TaskConfigInputs& inputs) {
  ASSIGN_OR_RETURN(Sayings sayings, ReadTfConfig(inputs.tf_config.value_or("")));
  const bool tf_config_says = sayings.cluster || sayings.job || sayings.index;
  RETURN_IF_ERROR(ApplyFlags(inputs.flags, sayings));
  TaskConfig config;
  ASSIGN_OR_RETURN(const Role role, ResolveRole(inputs, tf_config_says, sayings));
  config.notice_ = role.notice;
  config.first_port_ = role.ranks ? role.ranks->first_port : 0;
  config.model_dir_ = sayings.model_dir.value_or("");
  config.trace_ = inputs.flags.trace.value_or("");
  if (inputs.flags.device) {
    ASSIGN_OR_RETURN(config.device_, ReadDevice(*inputs.flags.device));
  }
  if (inputs.flags.status_port) {
    ASSIGN_OR_RETURN(config.status_address_, ReadStatusPort(*inputs.flags.status_port));
  }
  if (inputs.flags.stall_limit) {
    ASSIGN_OR_RETURN(config.stall_limit_, ReadStallLimit(*inputs.flags.stall_limit));
  }
  RETURN_IF_ERROR(ReadLife(inputs.flags, config.join_timeout_, config.linger_, config.leaves_on_signal_));
  if (!sayings.cluster || sayings.cluster->empty()) {
    RETURN_IF_ERROR(ValidateAlone(sayings));
    return config;
  }
  if (!sayings.job) {
    return Wrong(sayings.job_key, "not set, though there is a cluster", JobsOf(*sayings.cluster));
  }
  const int tasks = sayings.cluster->num_tasks(*sayings.job);
  if (!sayings.index && tasks > 1) {
    return Wrong(sayings.index_key, absl::StrCat("not set, though the job ", *sayings.job, " has ", tasks, " tasks"),
                 "the task's number in its job");
  }
  if (!sayings.index) sayings.index = tasks == 1 ? sayings.cluster->tasks(*sayings.job).begin()->first : 0;
  config.task_ = {*sayings.job, *sayings.index};
  ASSIGN_OR_RETURN(config.chief_, FindChief(*sayings.cluster, sayings.cluster_key));
  RETURN_IF_ERROR(ValidateTask(*sayings.cluster, config.task_, config.chief_, sayings));
  if (!config.is_evaluator()) config.cluster_ = *std::move(sayings.cluster);
  return config;
}

TaskConfig TaskConfig::FromCommandLine(int& argc, char** argv) {
  absl::StatusOr<TaskFlags> flags = TakeTaskFlags(argc, argv);
  absl::StatusOr<TaskConfig> config =
      flags.ok() ? ResolveTaskConfig(InputsOf(*std::move(flags), ReadEnvironment())) : flags.status();
  const std::string line = config.ok() ? config->notice() : std::string(config.status().message());
  if (!line.empty()) std::fprintf(stderr, "%s: %s\n", ProgramName(argc > 0 ? argv[0] : "muster").c_str(), line.c_str());
  if (config.ok()) return *std::move(config);
  std::exit(2);
}

TaskConfig TaskConfig::FromWholeCommandLine(int& argc, char** argv) {
  const std::string program = ProgramName(argc > 0 ? argv[0] : "muster");
  for (int i = 1; i < argc; ++i) {
    if (absl::string_view(argv[i]) != "--help" && absl::string_view(argv[i]) != "-h") continue;
    std::printf(
        "%s: a training program. How it learns its place in the cluster (or TF_CONFIG, srun, torchrun, or nothing for "
        "one process):\n%s",
        program.c_str(), TaskFlagsHelp().c_str());
    std::exit(0);
  }
  TaskConfig config = FromCommandLine(argc, argv);
  if (argc <= 1) return config;
  std::fprintf(stderr, "%s: unknown argument %s; accepted: see --help\n", program.c_str(), Quoted(argv[1]).c_str());
  std::exit(2);
}

absl::StatusOr<TaskConfig> TaskConfig::FromArguments(std::vector<std::string>& arguments,
                                                     const Environment& environment) {
  ASSIGN_OR_RETURN(TaskFlags flags, TakeTaskFlags(arguments));
  return ResolveTaskConfig(InputsOf(std::move(flags), environment));
}

bool TaskConfig::distributed() const {
  std::vector<std::string> jobs = cluster_.jobs();
  return jobs.size() > 1 || (jobs.size() == 1 && cluster_.index_limit(jobs[0]) > 1);
}

int TaskConfig::num_ps() const { return cluster_.num_tasks(kPsJob); }

int TaskConfig::num_workers() const {
  if (is_evaluator()) return 0;
  if (cluster_.empty()) return 1;
  return cluster_.num_tasks(kWorkerJob) + (chief_.job == kWorkerJob ? 0 : 1);
}

int TaskConfig::global_id() const {
  if (is_evaluator()) return -1;
  if (task_.job == chief_.job) return task_.index;
  int64_t before = cluster_.index_limit(chief_.job);
  for (const std::string& job : cluster_.jobs()) {
    bool earlier = task_.job == kPsJob ? job != kPsJob : job != kPsJob && job < task_.job;
    if (earlier && job != chief_.job) before += cluster_.index_limit(job);
  }
  return static_cast<int>(before + task_.index);
}

std::string TaskConfig::master() const {
  if (!distributed()) return "";
  absl::StatusOr<std::string> address = cluster_.TaskAddress(task_);
  return address.ok() ? *address : "";
}

std::string TaskConfig::Summary() const {
  if (cluster_.empty()) return absl::StrCat(task_.ToString(), ", without a cluster");
  const absl::StatusOr<std::string> address = cluster_.TaskAddress(task_);
  return absl::StrCat(task_.ToString(), " at ", address.value_or("an unknown address"), ", in a cluster of ",
                      cluster_.Summary(), "; the chief is ", is_chief() ? "this task" : chief_.ToString());
}

absl::Status TaskConfig::ExplainBusyPort(absl::Status status) const {
  if (!absl::IsAlreadyExists(status) || first_port_ == 0) return status;
  return absl::AlreadyExistsError(absl::StrCat(status.message(), ". The tasks' ports begin at ", first_port_,
                                               "; --first_port=PORT or MUSTER_FIRST_PORT, the same in all tasks, moves "
                                               "them"));
}

std::string TaskConfig::Definition() const {
  std::string text = absl::StrCat("task ", task_.ToString(), is_chief() ? ", the chief" : "", "\n");
  for (const TaskId& task : cluster_.AllTasks())
    absl::StrAppend(&text, task == task_ ? "* " : "  ", task.ToString(), "  ", *cluster_.TaskAddress(task), "\n");
  return text;
}

std::vector<std::string> TaskConfig::ps_addresses() const {
  std::vector<std::string> addresses;
  for (const auto& [index, address] : cluster_.tasks(kPsJob)) addresses.push_back(address);
  return addresses;
}

std::vector<TaskId> TaskConfig::worker_tasks() const {
  if (is_evaluator()) return {};
  std::vector<TaskId> tasks;
  if (cluster_.empty() || chief_.job != kWorkerJob) tasks.push_back(chief_);
  for (const auto& [index, address] : cluster_.tasks(kWorkerJob)) tasks.push_back({kWorkerJob, index});
  return tasks;
}

}  // namespace muster
