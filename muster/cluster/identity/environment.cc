#include "muster/cluster/identity/environment.h"

#include <unistd.h>

#include <cstdlib>

#include "absl/strings/numbers.h"
#include "muster/cluster/slurm/step_process.h"

namespace muster {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
}

SlurmVariables ReadSlurmVariables() {
  SlurmVariables slurm{.job_id = Variable("SLURM_JOB_ID"),
                       .step_id = Variable("SLURM_STEP_ID"),
                       .step_num_tasks = Variable("SLURM_STEP_NUM_TASKS"),
                       .step_nodelist = Variable("SLURM_STEP_NODELIST"),
                       .step_counts = Variable("SLURM_STEP_TASKS_PER_NODE"),
                       .proc_id = Variable("SLURM_PROCID"),
                       .node_id = Variable("SLURM_NODEID"),
                       .local_id = Variable("SLURM_LOCALID"),
                       .distribution = Variable("SLURM_DISTRIBUTION"),
                       .plane_size = Variable("SLURM_DIST_PLANESIZE"),
                       .pty_port = Variable("SLURM_PTY_PORT"),
                       .het_size = Variable("SLURM_HET_SIZE")};
  if (!slurm.pty_port) slurm.pty_port = Variable("SLURM_PTY_WIN_COL");
  if (slurm.step_id) slurm.process = FindStepProcess("/proc", getpid(), Variable("SLURM_TASK_PID").value_or(""));
  return slurm;
}

RoleVariables ReadRoleVariables() {
  return {.resolve = Variable("MUSTER_RESOLVE"),
          .ps = Variable("MUSTER_PS"),
          .first_port = Variable("MUSTER_FIRST_PORT"),
          .has_launcher = !Variable("MUSTER_RUN_ID").value_or("").empty(),
          .has_token = !Variable("MUSTER_JOB_TOKEN").value_or("").empty(),
          .torchrun = {.rank = Variable("RANK"),
                       .world_size = Variable("WORLD_SIZE"),
                       .local_rank = Variable("LOCAL_RANK"),
                       .local_world_size = Variable("LOCAL_WORLD_SIZE"),
                       .master_port = Variable("MASTER_PORT")},
          .slurm = ReadSlurmVariables()};
}

}  // namespace

uint64_t TaskLifeOf(const Environment& environment) {
  uint64_t life = 0;
  return absl::SimpleAtoi(environment.task_life.value_or(""), &life) ? life : 0;
}

Environment ReadEnvironment() {
  std::optional<std::string> home = Variable("MUSTER_HOME");
  if (!home.has_value() && Variable("HOME").has_value()) home = *Variable("HOME") + "/.muster";
  return {.tf_config = Variable("TF_CONFIG"),
          .roles = ReadRoleVariables(),
          .job_token = Variable("MUSTER_JOB_TOKEN"),
          .run_id = Variable("MUSTER_RUN_ID"),
          .arena_fd = Variable("MUSTER_ARENA_FD"),
          .cluster_file = Variable("MUSTER_CLUSTER_FILE"),
          .allow_proxy = Variable("MUSTER_ALLOW_PROXY").value_or("") == "1",
          .heard_file = Variable("MUSTER_HEARD_FILE"),
          .task_life = Variable("MUSTER_TASK_LIFE"),
          .trace = Variable("MUSTER_TRACE"),
          .status_port = Variable("MUSTER_STATUS_PORT"),
          .join_timeout = Variable("MUSTER_JOIN_TIMEOUT"),
          .linger = Variable("MUSTER_LINGER"),
          .on_signal = Variable("MUSTER_ON_SIGNAL"),
          .processors = Variable("MUSTER_PROCESSORS"),
          .omp_num_threads = Variable("OMP_NUM_THREADS"),
          .slurm_cpus_per_task = Variable("SLURM_CPUS_PER_TASK"),
          .home = home,
          .index = Variable("MUSTER_INDEX"),
          .output_dir = Variable("OUTPUT_DIR"),
          .experiment_id = Variable("EXPERIMENT_ID"),
          .job_name = Variable("JOB_NAME"),
          .output_root = Variable("MUSTER_OUTPUT_ROOT")};
}

}  // namespace muster
