// Jobs of Slurm, by its own commands: sbatch, squeue, sacct, scancel, scontrol (docs/slurm_jobs.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/engines/job_engine.h"

namespace muster {

class SlurmJobs final : public JobEngine {
 public:
  // `environment`: of this process, "NAME=VALUE". A job gets it without what is of another job.
  explicit SlurmJobs(const std::vector<std::string>& environment);

  std::string name() const override { return kSlurmEngine; }
  std::string title() const override { return "Slurm"; }
  JobTerms TermsOf(const HostSetting& setting) const override;
  std::string Script(const JobRequest& request) const override;
  absl::StatusOr<std::string> Submit(const std::string& script, const std::string& after) override;
  absl::StatusOr<std::string> WouldTake(const std::string& script_text) override;
  absl::StatusOr<std::map<std::string, JobNews>> Look(const std::vector<std::string>& ids) override;
  absl::Status End(const std::string& id, JobEnd how) override;
  absl::StatusOr<OwnJob> Own() override;
  bool EndLeftSteps(const std::string& id) override;
  absl::Status Requeue(const std::string& id) override;
  absl::Status Free(const std::string& id) override;
  void Hasten(const std::string& id) override;
  std::optional<int> Restarts(const std::string& id) override;
  std::optional<absl::Time> EndTime(const std::string& id) override;

 private:
  // Asks about jobs that squeue has forgotten; leaves those out of which sacct knows nothing, or all where a site has
  // no accounting.
  void LookIntoAccounting(const std::vector<std::string>& ids, std::map<std::string, JobNews>& news) const;

  const std::vector<std::string> own_environment_;
  const std::vector<std::string> environment_;  // of the commands
};

// Reads lines "17|FAILED|h1|JobLaunchFailure" of squeue into news: job, state, host of the script, reason.
std::map<std::string, JobNews> ParseQueue(std::string_view text);
// Reads lines "17|CANCELLED by 1000" of sacct into news.
std::map<std::string, JobNews> ParseAccounting(std::string_view text);

}  // namespace muster
