// An engine of jobs that a test plays.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/strings/str_cat.h"
#include "muster/launch/engines/job_engine.h"

namespace muster {

// What the engine would say, and what it was asked for.
struct PlayedJobs {
  std::map<std::string, JobNews> news;
  absl::Status silence;       // why it doesn't answer
  absl::Status refusal = {};  // of what is submitted
  std::string id_in = "";     // the id that is known before
  JobTerms terms = {};
  std::vector<std::string> submitted, after, hastened, freed;
  std::optional<int> restarts;
  std::vector<std::pair<std::string, JobEnd>> ended;
  int looks = 0;
  std::function<void()> on_look = {};  // what happens while it is asked
  std::function<void()> on_submit = {}, on_end = {};
  // What runs in the job; empty: the job shares the submitter's folder.
  std::function<absl::StatusOr<std::string>(const std::string& id, const std::vector<std::string>& arguments,
                                            const std::string& input)>
      ask = {};
};

class PlayedJobEngine final : public JobEngine {
 public:
  explicit PlayedJobEngine(PlayedJobs& played) : played_(played) {}
  std::string name() const override { return "slurm"; }
  std::string title() const override { return "Slurm"; }
  JobTerms TermsOf(const HostSetting&) const override { return played_.terms; }
  std::string Script(const JobRequest& request) const override {
    return absl::StrCat("notice=", absl::ToInt64Seconds(request.notice), "\n");
  }
  std::string IdIn(const std::string& /*script*/) const override { return played_.id_in; }
  std::string ScriptAnew(const std::string& script_text) const override { return script_text + "anew\n"; }
  absl::StatusOr<std::string> Submit(const std::string& script, const std::string& after) override {
    played_.after.push_back(after);
    played_.submitted.push_back(script);
    if (const auto happens = played_.on_submit; happens) happens();
    if (!played_.refusal.ok()) return played_.refusal;
    return std::to_string(100 + played_.submitted.size());
  }
  absl::StatusOr<std::string> WouldTake(const std::string& /*script_text*/) override { return ""; }
  absl::StatusOr<std::map<std::string, JobNews>> Look(const std::vector<std::string>& ids) override {
    ++played_.looks;
    if (played_.on_look) played_.on_look();
    if (!played_.silence.ok()) return played_.silence;
    std::map<std::string, JobNews> news;
    for (const std::string& id : ids) news[id] = played_.news[id];
    return news;
  }
  absl::Status End(const std::string& id, JobEnd how) override {
    played_.ended.emplace_back(id, how);
    if (const auto happens = played_.on_end; happens) happens();
    return played_.silence;
  }
  absl::StatusOr<OwnJob> Own() override { return absl::NotFoundError("in none"); }
  bool EndLeftSteps(const std::string& /*id*/) override { return true; }
  absl::Status Requeue(const std::string& /*id*/) override { return absl::OkStatus(); }
  absl::Status Free(const std::string& id) override {
    played_.freed.push_back(id);
    return absl::OkStatus();
  }
  void Hasten(const std::string& id) override { played_.hastened.push_back(id); }
  std::optional<int> Restarts(const std::string& /*id*/) override { return played_.restarts; }
  std::optional<absl::Time> EndTime(const std::string& /*id*/) override { return std::nullopt; }
  absl::StatusOr<std::string> Ask(const std::string& id, const std::vector<std::string>& arguments,
                                  const std::string& input) override {
    return played_.ask ? played_.ask(id, arguments, input) : absl::UnimplementedError("");
  }

 private:
  PlayedJobs& played_;
};

}  // namespace muster
