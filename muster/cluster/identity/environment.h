// The only code that reads environment variables. main calls ReadEnvironment once and passes the values on; everything
// below takes them as arguments, so that a test can have ten processes' environments at once.
#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "muster/cluster/identity/role_source.h"

namespace muster {

// The default root folder for results.
inline constexpr char kDefaultOutputRoot[] = "/data/tensorflow-output";

struct Environment {
  std::optional<std::string> tf_config;     // TF_CONFIG
  RoleVariables roles;                      // MUSTER_RESOLVE, and what torchrun and Slurm set
  std::optional<std::string> job_token;     // MUSTER_JOB_TOKEN: the shared secret of a job's tasks
  std::optional<std::string> run_id;        // MUSTER_RUN_ID: `muster run` started this process and names it in its log
  std::optional<std::string> arena_fd;      // MUSTER_ARENA_FD: descriptor of the memory that this ps's launcher keeps
  std::optional<std::string> cluster_file;  // MUSTER_CLUSTER_FILE: addresses of tasks that have moved to another host
  bool allow_proxy = false;                 // MUSTER_ALLOW_PROXY=1: a proxy may be between tasks (docs/security.md)
  std::optional<std::string> heard_file;    // MUSTER_HEARD_FILE: counts while this host hears the job's launcher
  std::optional<std::string> task_life;     // MUSTER_TASK_LIFE: how often the job's launcher has started this task
  std::optional<std::string> trace;         // MUSTER_TRACE: the default of --trace
  std::optional<std::string> status_port;   // MUSTER_STATUS_PORT: the default of --status_port
  std::optional<std::string> join_timeout;  // MUSTER_JOIN_TIMEOUT: the default of --join_timeout
  std::optional<std::string> linger;        // MUSTER_LINGER: the default of --linger
  std::optional<std::string> on_signal;     // MUSTER_ON_SIGNAL: the default of --on_signal

  // How many processors and threads (compute_threads.h).
  std::optional<std::string> processors;           // MUSTER_PROCESSORS: of this host, for all tasks of the job
  std::optional<std::string> omp_num_threads;      // OMP_NUM_THREADS: for each process
  std::optional<std::string> slurm_cpus_per_task;  // SLURM_CPUS_PER_TASK: for each process that Slurm starts

  // MUSTER_HOME, where experiments are kept; else HOME/.muster; unset if neither variable is set.
  std::optional<std::string> home;
  std::optional<std::string> index;  // MUSTER_INDEX: where this host keeps its index of them, if not there

  // Where results go, in the variables of sites that run many experiments: see estimator/output_dir.h.
  std::optional<std::string> output_dir;     // OUTPUT_DIR: the folder
  std::optional<std::string> experiment_id;  // EXPERIMENT_ID: the folder's name below a root
  std::optional<std::string> job_name;       // JOB_NAME: likewise
  std::optional<std::string> output_root;    // MUSTER_OUTPUT_ROOT: the root; `muster run --output_root` sets it
};

// Returns the number of MUSTER_TASK_LIFE; 0 if there is none.
uint64_t TaskLifeOf(const Environment& environment);

// Reads this process's environment as it is now. Not thread-safe against setenv.
Environment ReadEnvironment();

}  // namespace muster
