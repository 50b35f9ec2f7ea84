// What Slurm says of a process: the variables of its environment, and what the process tree shows. Plain values that
// ReadEnvironment (identity/environment.h) fills in.
#pragma once

#include <optional>
#include <string>

namespace muster {

// What /proc shows of the step that a process belongs to (step_process.h). Variables outlive what they describe: a
// batch script that a task submits, or a shell below it, has the variables of the task's step.
struct StepProcess {
  // "17.0", "17.batch": what slurmstepd, the nearest one above this process, is there for. Empty: none is to be seen,
  // for instance from inside a container.
  std::string stepd;
  // Whether the task, SLURM_TASK_PID, has a terminal. Nullopt: the task isn't among the processes above this one.
  std::optional<bool> has_terminal;
  // Whether the process is the task itself, rather than something that the task has started.
  bool is_task = false;
  // Whether the task's input and both outputs are /dev/null, as those of all tasks but the first are in a step with
  // --pty.
  bool is_mute = false;

  bool operator==(const StepProcess&) const = default;
};

// As the environment has them, unset or empty; see srun(1).
struct SlurmVariables {
  std::optional<std::string> job_id;          // SLURM_JOB_ID
  std::optional<std::string> step_id;         // SLURM_STEP_ID
  std::optional<std::string> step_num_tasks;  // SLURM_STEP_NUM_TASKS
  std::optional<std::string> step_nodelist;   // SLURM_STEP_NODELIST
  std::optional<std::string> step_counts;     // SLURM_STEP_TASKS_PER_NODE
  std::optional<std::string> proc_id;         // SLURM_PROCID
  std::optional<std::string> node_id;         // SLURM_NODEID
  std::optional<std::string> local_id;        // SLURM_LOCALID
  std::optional<std::string> distribution;    // SLURM_DISTRIBUTION: how tasks are dealt out to nodes
  std::optional<std::string> plane_size;      // SLURM_DIST_PLANESIZE
  std::optional<std::string> pty_port;        // SLURM_PTY_PORT, or SLURM_PTY_WIN_COL: a step with --pty
  std::optional<std::string> het_size;        // SLURM_HET_SIZE: a job of several parts
  StepProcess process;
};

}  // namespace muster
