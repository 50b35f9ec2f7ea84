#include "muster/cluster/identity/environment.h"

#include <cstdlib>

#include "absl/strings/numbers.h"

namespace muster {
namespace {

std::optional<std::string> Variable(const char* name) {
  const char* value = std::getenv(name);
  return value == nullptr ? std::nullopt : std::optional<std::string>(value);
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
          .job_token = Variable("MUSTER_JOB_TOKEN"),
          .run_id = Variable("MUSTER_RUN_ID"),
          .arena_fd = Variable("MUSTER_ARENA_FD"),
          .cluster_file = Variable("MUSTER_CLUSTER_FILE"),
          .heard_file = Variable("MUSTER_HEARD_FILE"),
          .task_life = Variable("MUSTER_TASK_LIFE"),
          .trace = Variable("MUSTER_TRACE"),
          .status_port = Variable("MUSTER_STATUS_PORT"),
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
