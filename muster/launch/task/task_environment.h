// Names of the environment variables by which a launcher tells a task who it is and what it may use.
#pragma once

namespace muster {

inline constexpr char kTfConfigVariable[] = "TF_CONFIG";
inline constexpr char kJobTokenVariable[] = "MUSTER_JOB_TOKEN";
// Number of the descriptor of the memory in which a ps keeps its model; its launcher keeps it open, too.
inline constexpr char kArenaFdVariable[] = "MUSTER_ARENA_FD";
// The values of --trace and --status_port, for programs that have other flags of their own.
inline constexpr char kTraceVariable[] = "MUSTER_TRACE";
inline constexpr char kStatusPortVariable[] = "MUSTER_STATUS_PORT";
// The value of --output_root: the folder that holds the experiments' folders (estimator/output_dir.h).
inline constexpr char kOutputRootVariable[] = "MUSTER_OUTPUT_ROOT";
// The one device that a task of a layout sees.
inline constexpr char kDevicesVariable[] = "CUDA_VISIBLE_DEVICES";
// The same of AMD's programs, which also know CUDA's: HIP_VISIBLE_DEVICES counts among those that ROCR_VISIBLE_DEVICES
// leaves.
inline constexpr char kHipDevicesVariable[] = "HIP_VISIBLE_DEVICES";
inline constexpr char kRocrDevicesVariable[] = "ROCR_VISIBLE_DEVICES";
// How many processors of this machine all tasks of the job may use together.
inline constexpr char kProcessorsVariable[] = "MUSTER_PROCESSORS";
// The number of threads that a process computes with, for every program that uses OpenMP or knows its variable.
inline constexpr char kThreadsVariable[] = "OMP_NUM_THREADS";
// Among how many processes of a task's program the processors of the host are to be shared, unless the user has said
// how many threads each has: its backend, which knows them, makes kThreadsVariable of it.
inline constexpr char kSharersVariable[] = "MUSTER_PROCESSES_ON_HOST";
// Set for every process of a run and so inherited by all that they start, which makes them findable.
inline constexpr char kRunIdVariable[] = "MUSTER_RUN_ID";
// Set for every process by the backend that starts it, which ends only processes with its own.
inline constexpr char kAgentIdVariable[] = "MUSTER_AGENT_ID";
// Set for a supervisor, which outlives the task that has started it. Its own children don't get it.
inline constexpr char kDetachedVariable[] = "MUSTER_DETACHED";
// How often the run has started this task, 1 at first. A ps gives a task's place to a later start at once, also where
// it still hears the earlier one.
inline constexpr char kTaskLifeVariable[] = "MUSTER_TASK_LIFE";
// How many seconds a task waits for the ps at its start, in the place of the minute that it waits for them later: the
// value of --join_timeout.
inline constexpr char kJoinTimeoutVariable[] = "MUSTER_JOIN_TIMEOUT";
// How many seconds a ps answers after the end of training: the value of --linger.
inline constexpr char kLingerVariable[] = "MUSTER_LINGER";
// "leave": SIGTERM isn't the end of training, because the task is started again: the value of --on_signal.
inline constexpr char kOnSignalVariable[] = "MUSTER_ON_SIGNAL";

// The path at which the agent of a host keeps the addresses of all tasks once a task has moved to another host, in the
// form of transport/tcp/moved_addresses.h.
inline constexpr char kClusterFileVariable[] = "MUSTER_CLUSTER_FILE";
// The path at which the agent of a host counts, about twice a second, while it hears its supervisor
// (base/files/counter_file.h).
inline constexpr char kHeardFileVariable[] = "MUSTER_HEARD_FILE";

}  // namespace muster
