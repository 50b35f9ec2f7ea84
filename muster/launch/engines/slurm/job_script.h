// The script that sbatch gets: an experiment's resources as #SBATCH lines, and what keeps its supervisor alive
// (docs/slurm_jobs.md). Pure functions, thread-safe.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/time/time.h"
#include "muster/launch/hosts/slurm_setting.h"

namespace muster {

// Returns `generated` with what the user says in the place of it, without what the user doesn't want.
SbatchOptions MergeOptions(SbatchOptions generated, const SlurmSetting& setting);

struct JobScriptOrder {
  std::string experiment;  // its id
  std::string project;
  SbatchOptions options;  // all
  std::vector<std::string> extra;
  std::string muster;        // the file, as the nodes see it
  std::string home;          // MUSTER_HOME
  mode_t users_umask = 022;  // sbatch would give it that of muster's own files
  std::string over_file;     // Home::job_over
  std::string notice_file;   // made when Slurm announces the end of the job's time, by the signal of its options
};
std::string JobScript(const JobScriptOrder& order);

// Returns the signal that the options let Slurm send to the script before the job's end, as "USR1"; "": none.
std::string NoticeSignal(const SbatchOptions& options);

// Returns a time limit as Slurm reads it: "90" (minutes), "1:30:00", "2-12"; nullopt: another text.
std::optional<absl::Duration> ParseTimeLimit(const std::string& text);

}  // namespace muster
