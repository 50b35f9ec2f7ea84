// Jobs of Ray, by its Jobs API, which a Python program of ours asks (docs/ray_engine.md).
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "muster/launch/engines/job_engine.h"
#include "muster/launch/engines/ray/ray_script.h"
#include "muster/launch/hosts/ray_setting.h"

namespace muster {

class RayJobs final : public JobEngine {
 public:
  // `at`: as at(); empty: as the driver of this process's job says. `environment`: of this process, "NAME=VALUE".
  RayJobs(const std::string& at, const std::vector<std::string>& environment);

  std::string name() const override { return kRayEngine; }
  std::string title() const override { return "Ray"; }
  std::string at() const override { return place_.text(); }
  JobTerms TermsOf(const HostSetting& setting) const override;
  std::string Script(const JobRequest& request) const override { return RayScript(request, place_); }
  // Also puts the driver beside the script.
  absl::StatusOr<std::string> Submit(const std::string& script, const std::string& after) override;
  absl::StatusOr<std::string> WouldTake(const std::string& script_text) override;
  absl::StatusOr<std::map<std::string, JobNews>> Look(const std::vector<std::string>& ids) override;
  // Ray knows one way: SIGTERM, and SIGKILL 3 s later.
  absl::Status End(const std::string& id, JobEnd how) override;
  absl::StatusOr<OwnJob> Own() override;
  bool EndLeftSteps(const std::string& id) override;
  // Ray doesn't begin a job anew.
  absl::Status Requeue(const std::string& id) override;
  void Hasten(const std::string& /*id*/) override {}
  absl::Status Free(const std::string& id) override;
  std::optional<int> Restarts(const std::string& /*id*/) override { return 0; }
  std::optional<absl::Time> EndTime(const std::string& /*id*/) override { return std::nullopt; }

 private:
  // Runs the program with these words behind its name. Returns the one line of JSON that it prints, or its error.
  // `submits`: these words submit a job. Then NotFound says that there is none, since no dashboard answers.
  absl::StatusOr<std::string> AskClient(const std::vector<std::string>& words, absl::Duration patience,
                                        bool submits = false) const;

  const std::vector<std::string> environment_;
  const RayPlace place_;
};

// Returns where a job with this setting is, as JobEngine::at.
std::string PlaceOfRay(const RaySetting& setting, const std::vector<std::string>& environment);

// Reads the answer about jobs: {"ID": {"status": "RUNNING", "message": "…"}, …}.
absl::StatusOr<std::map<std::string, JobNews>> ParseRayJobs(std::string_view answer);

}  // namespace muster
