// What a job of Slurm is asked for that holds an experiment (docs/slurm_jobs.md). Plain values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "absl/status/status.h"

namespace muster {

// Options of sbatch by their long names ("partition"); "": one without a value; nullopt: not even muster's own.
using SbatchOptions = std::map<std::string, std::optional<std::string>>;

struct SlurmSetting {
  SbatchOptions options;
  std::vector<std::string> extra;  // further words for sbatch, as written: "--exclusive"
  int max_requeues = 0;            // how often the experiment goes on in another job when its job's time is over

  bool operator==(const SlurmSetting&) const = default;
};

// Takes one setting, as the experiment file and a flag give it: an option of sbatch, or max_requeues. InvalidArgument
// says what is accepted: among others for options that would break how muster submits, and for a name that is nearly
// one of these.
[[nodiscard]] absl::Status TakeSlurmSetting(SlurmSetting& slurm, const std::string& name,
                                            const std::optional<std::string>& value);

// Takes a further word for sbatch, "--NAME" or "--NAME=VALUE". InvalidArgument as above.
[[nodiscard]] absl::Status TakeSlurmExtra(SlurmSetting& slurm, const std::string& word);

}  // namespace muster
