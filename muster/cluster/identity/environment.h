// The one place that reads environment variables. main calls ReadEnvironment once and passes the values on; everything
// below takes them as arguments, so that a test can hold ten processes' worth of them.
#pragma once

#include <optional>
#include <string>

namespace muster {

// The root unless anybody says another one.
inline constexpr char kDefaultOutputRoot[] = "/data/tensorflow-output";

struct Environment {
  std::optional<std::string> tf_config;    // TF_CONFIG
  std::optional<std::string> job_token;    // MUSTER_JOB_TOKEN, the shared secret of the tasks of one job
  std::optional<std::string> run_id;       // MUSTER_RUN_ID: `muster run` started this process and names it in its log
  std::optional<std::string> arena_fd;     // MUSTER_ARENA_FD: descriptor of the memory that this ps's launcher keeps
  std::optional<std::string> trace;        // MUSTER_TRACE: --trace, unless the flag is given
  std::optional<std::string> status_port;  // MUSTER_STATUS_PORT: --status_port, likewise

  // MUSTER_HOME, where experiments are kept; else HOME/.muster; nothing if neither is set.
  std::optional<std::string> home;

  // Where results go, as those who run many experiments say it: estimator/output_dir.h.
  std::optional<std::string> output_dir;     // OUTPUT_DIR, the folder
  std::optional<std::string> experiment_id;  // EXPERIMENT_ID, its name below a root
  std::optional<std::string> job_name;       // JOB_NAME, likewise
  std::optional<std::string> output_root;    // MUSTER_OUTPUT_ROOT, the root: `muster run --output_root` sets it
};

// Of this process, as it is now. Not thread-safe against setenv.
Environment ReadEnvironment();

}  // namespace muster
