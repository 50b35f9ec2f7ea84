#include "muster/train/watch/training_status.h"

#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "muster/observe/prometheus_text.h"
#include "muster/observe/step_table_json.h"

namespace muster {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kStates[] = {"starting", "training", "ended", "evaluating"};

// Seconds since the training thread began its current activity.
double DoingSeconds(const Track& track) {
  const Track::Doing doing = track.doing();
  return doing.since == 0 ? 0 : static_cast<double>(std::max<int64_t>(track.Nanos() - doing.since, 0)) * 1e-9;
}

std::string Shown(const std::string& link) { return link.empty() ? "not connected" : link; }

// Returns one word if it is the same for all.
std::string LinksText(const std::vector<std::string>& links) {
  if (links.empty()) return "none yet";
  if (std::all_of(links.begin(), links.end(), [&](const std::string& link) { return link == links[0]; }))
    return Shown(links[0]);
  std::vector<std::string> texts;
  for (size_t ps = 0; ps < links.size(); ++ps) texts.push_back(absl::StrCat(Shown(links[ps]), " (ps:", ps, ")"));
  return absl::StrJoin(texts, ", ");
}

std::string Render(const Json& status) {
  std::string out = absl::StrFormat("%s  %s  up %.1f s  pid %d\n", status.at("task").get<std::string>(),
                                    status.at("state").get<std::string>(), status.at("uptime_seconds").get<double>(),
                                    status.at("pid").get<int64_t>());
  absl::StrAppendFormat(&out, "global step %d  steps here %d  %.1f steps/s  loss %s\n",
                        status.at("global_step").get<int64_t>(), status.at("steps").get<uint64_t>(),
                        status.at("steps_per_second").get<double>(), status.at("loss").dump());
  absl::StrAppendFormat(&out, "updates applied by %s  transport %s  sent %d bytes  received %d bytes\n",
                        status.at("applied_by").get<std::string>(),
                        LinksText(status.at("transport").get<std::vector<std::string>>()),
                        status.at("bytes_sent").get<uint64_t>(), status.at("bytes_received").get<uint64_t>());
  absl::StrAppendFormat(&out, "staleness median %.1f  p99 %.1f\n", status.at("staleness").at("median").get<double>(),
                        status.at("staleness").at("p99").get<double>());
  absl::StrAppendFormat(&out, "now: %s, for %.3f s", status.at("doing").get<std::string>(),
                        status.at("doing_seconds").get<double>());
  const std::string whom = status.at("waiting_for").get<std::string>();
  absl::StrAppend(&out, whom.empty() ? "" : "; waits for ", whom, "\n");
  if (status.contains("checkpoint_age_seconds"))
    absl::StrAppendFormat(&out, "last checkpoint %.1f s ago\n", status.at("checkpoint_age_seconds").get<double>());
  if (status.contains("checkpoint_failure"))
    absl::StrAppendFormat(&out, "the last save failed (%d in all): %s\n",
                          status.at("checkpoint_failures").get<uint64_t>(),
                          status.at("checkpoint_failure").get<std::string>());
  const std::string times = StepTimesText(StepTableFromJson(status.at("step_times")));
  return times.empty() ? out : absl::StrCat(out, "\nwhere the time of a step goes\n", times);
}

}  // namespace

std::string TrainingStatusJson(const TrainingView& view) {
  const TrainingMetrics& metrics = *view.metrics;
  const absl::Time now = view.clock->Now();
  const HistogramSnapshot staleness = metrics.staleness.Snapshot();
  Json status;
  status["task"] = view.task;
  status["state"] = kStates[static_cast<size_t>(metrics.state.value())];
  status["pid"] = getpid();
  status["uptime_seconds"] = absl::ToDoubleSeconds(now - view.started);
  status["global_step"] = static_cast<int64_t>(metrics.global_step.value());
  status["steps"] = metrics.steps.value();
  status["steps_per_second"] = metrics.steps_per_second.value();
  status["loss"] = metrics.loss.value();  // null where it isn't a number
  status["staleness"] = {{"median", staleness.Quantile(0.5)}, {"p99", staleness.Quantile(0.99)}};
  status["applied_by"] = metrics.applies_own_updates.value() != 0 ? "this task" : "the ps";
  status["transport"] = metrics.links.Get();
  status["bytes_sent"] = metrics.bytes_sent.value();
  status["bytes_received"] = metrics.bytes_received.value();
  status["doing"] = ActivityName(view.track->doing().activity);
  status["doing_seconds"] = DoingSeconds(*view.track);
  status["waiting_for"] = view.track->waiting_for();
  if (const double saved_at = metrics.checkpoint_saved_at.value(); saved_at > 0)
    status["checkpoint_age_seconds"] = absl::ToDoubleSeconds(now - absl::UnixEpoch()) - saved_at;
  status["checkpoint_failures"] = metrics.checkpoint_failures.value();
  if (const std::string failure = metrics.checkpoint_failure.Get(); !failure.empty())
    status["checkpoint_failure"] = failure;
  status["step_times"] = StepTableToJson(view.track->times().Table(view.task, view.track->name()));
  return status.dump(-1, ' ', false, Json::error_handler_t::replace);
}

absl::StatusOr<std::string> TrainingStatusText(const std::string& json) {
  const Json status = Json::parse(json, nullptr, /*allow_exceptions=*/false);
  try {
    return Render(status);
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("that isn't the status of a training task");
  }
}

std::string TrainingMetricsText(const TrainingView& view) {
  const TrainingMetrics& metrics = *view.metrics;
  const double now = absl::ToDoubleSeconds(view.clock->Now() - absl::UnixEpoch());
  PrometheusText text(PrometheusText::Labels{{"task", view.task}});
  text.Gauge("muster_start_time_seconds", "Unix time at which this process began.",
             absl::ToDoubleSeconds(view.started - absl::UnixEpoch()));
  text.Counter("muster_steps_total", "Minibatches that this task has trained.",
               static_cast<double>(metrics.steps.value()));
  text.Gauge("muster_global_step", "Updates of all tasks, as this one heard last.", metrics.global_step.value());
  text.Gauge("muster_steps_per_second", "Minibatches per second over the last second or more.",
             metrics.steps_per_second.value());
  text.Gauge("muster_loss", "Loss of this task's last minibatch.", metrics.loss.value());
  text.Histogram("muster_staleness", "Other tasks' updates between the pull and the push of a step.",
                 metrics.staleness.Snapshot());
  text.Counter("muster_sent_bytes_total", "Bytes sent to the ps.", static_cast<double>(metrics.bytes_sent.value()));
  text.Counter("muster_received_bytes_total", "Bytes received from the ps.",
               static_cast<double>(metrics.bytes_received.value()));
  text.Gauge("muster_applies_itself", "1: this task applies its updates in the memory of the ps.",
             metrics.applies_own_updates.value());
  AddStepTimes(*view.track, text);
  if (const double saved_at = metrics.checkpoint_saved_at.value(); saved_at > 0)
    text.Gauge("muster_checkpoint_age_seconds", "Seconds since this task, the chief, saved a checkpoint.",
               now - saved_at);
  text.Counter("muster_checkpoint_failures_total", "Checkpoints that this task, the chief, could not save.",
               static_cast<double>(metrics.checkpoint_failures.value()));
  return text.text();
}

}  // namespace muster
