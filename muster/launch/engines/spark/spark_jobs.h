// Jobs of Spark. A job is the process of its driver on the machine that has submitted it: Spark itself has no service
// that would tell everywhere what has become of an application. A Python program of ours starts it; that it runs, the
// kernel says (docs/spark_engine.md).
#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/os/process_identity.h"
#include "muster/launch/engines/job_engine.h"
#include "muster/launch/engines/spark/spark_script.h"
#include "muster/launch/hosts/spark_setting.h"
#include "muster/transport/io/socket.h"

namespace muster {

// A process that is a job's driver, "HOST-PID-START". Its number alone could be another process's later.
struct SparkDriverId {
  std::string host;
  ProcessIdentity process;

  // nullopt: it isn't such an id.
  static std::optional<SparkDriverId> Parse(const std::string& text);
  // Whether the process is one of this machine.
  bool IsHere() const;
  // Returns its descriptor (OpenPidFd) if it runs here; an invalid one otherwise.
  Socket Open() const;
};

class SparkJobs final : public JobEngine {
 public:
  // `at`: as at(); empty: as the driver of this process's job says. `environment`: of this process, "NAME=VALUE".
  SparkJobs(const std::string& at, const std::vector<std::string>& environment);

  std::string name() const override { return kSparkEngine; }
  std::string title() const override { return "Spark"; }
  std::string at() const override { return place_.text(); }
  JobTerms TermsOf(const HostSetting& setting) const override;
  std::string Script(const JobRequest& request) const override { return SparkScript(request, place_); }
  // Also puts the driver beside the script, and starts it.
  absl::StatusOr<std::string> Submit(const std::string& script, const std::string& after) override;
  absl::StatusOr<std::string> WouldTake(const std::string& script_text) override;
  // On another host than the job's, it is unknown.
  absl::StatusOr<std::map<std::string, JobNews>> Look(const std::vector<std::string>& ids) override;
  // SIGTERM, which the driver passes on to the supervisor; kCancel waits for its end, and kills it after some seconds.
  absl::Status End(const std::string& id, JobEnd how) override;
  absl::StatusOr<OwnJob> Own() override;
  bool EndLeftSteps(const std::string& id) override;
  // Nobody begins a job anew.
  absl::Status Requeue(const std::string& id) override;
  void Hasten(const std::string& /*id*/) override {}
  absl::Status Free(const std::string& id) override;
  std::optional<int> Restarts(const std::string& /*id*/) override { return 0; }
  std::optional<absl::Time> EndTime(const std::string& /*id*/) override { return std::nullopt; }

 private:
  // Runs the program with these words behind its name. Returns the one line of JSON that it prints, or its error.
  absl::StatusOr<std::string> AskClient(const std::vector<std::string>& words, absl::Duration patience) const;

  const std::vector<std::string> environment_;
  const SparkPlace place_;
};

// Returns where a job with this setting is, as JobEngine::at.
std::string PlaceOfSpark(const SparkSetting& setting);

}  // namespace muster
