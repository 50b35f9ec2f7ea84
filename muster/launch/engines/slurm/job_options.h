// The options of sbatch that a run's job has (docs/slurm_jobs.md). Pure functions, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "absl/time/time.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/hosts/slurm_setting.h"

namespace muster {

// Returns the job's options: what its tasks state, what its script needs, and what the user says in the place of both,
// without what the user doesn't want. What no task states isn't there: many sites refuse it, or have defaults.
SbatchOptions OptionsOfJob(const JobRequest& request);

// As JobEngine::TermsOf. The least of a range of nodes counts, as Slurm may give no more.
JobTerms TermsOfSlurm(const SlurmSetting& setting);

// Returns the signal that the options let Slurm send to the script before the job's end, as "USR1"; "": none.
std::string NoticeSignal(const SbatchOptions& options);

// Returns a time limit as Slurm reads it: "90" (minutes), "1:30:00", "2-12"; nullopt: another text.
std::optional<absl::Duration> ParseTimeLimit(const std::string& text);

}  // namespace muster
