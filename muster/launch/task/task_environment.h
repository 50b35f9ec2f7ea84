// Names of the environment variables by which a launcher tells a task who it is and what it may use.
#pragma once

namespace muster {

inline constexpr char kTfConfigVariable[] = "TF_CONFIG";
inline constexpr char kJobTokenVariable[] = "MUSTER_JOB_TOKEN";
// Number of the descriptor of the memory that a ps keeps its model in, and that its launcher keeps.
inline constexpr char kArenaFdVariable[] = "MUSTER_ARENA_FD";
// How a task is watched: --trace and --status_port for programs whose flags are their own.
inline constexpr char kTraceVariable[] = "MUSTER_TRACE";
inline constexpr char kStatusPortVariable[] = "MUSTER_STATUS_PORT";
// The folder below which experiments have theirs (estimator/output_dir.h): --output_root.
inline constexpr char kOutputRootVariable[] = "MUSTER_OUTPUT_ROOT";
// The devices that a task of a layout sees: one.
inline constexpr char kDevicesVariable[] = "CUDA_VISIBLE_DEVICES";
// In the environment of every process of a run and of whatever it starts: by it they can be found.
inline constexpr char kRunIdVariable[] = "MUSTER_RUN_ID";

}  // namespace muster
