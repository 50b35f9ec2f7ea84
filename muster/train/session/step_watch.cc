#include "muster/train/session/step_watch.h"

namespace muster {
namespace {

constexpr absl::Duration kBetweenChecks = absl::Milliseconds(100);
// The kind of link if none of the model goes through the connection.
constexpr char kDirectLink[] = "direct";
constexpr absl::Duration kRateOver = absl::Seconds(1);

}  // namespace

StepWatch::StepWatch(TrainingMetrics* metrics, const StoreClient& client, const Clock& clock)
    : metrics_(metrics), client_(client), clock_(clock) {}

void StepWatch::Is(TrainingState state) {
  if (metrics_ == nullptr) return;
  metrics_->state.Set(static_cast<double>(state));
  rate_since_ = clock_.Now();
  CheckTraffic();
  if (state != TrainingState::kEnded) CheckLinks();  // after the end the client is disconnected
}

void StepWatch::CheckLinks() {
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const char* const link = client_.applies_own_updates() ? kDirectLink : client_.ps_calls().TrafficStats(ps).link;
    metrics_->links.Set(static_cast<size_t>(ps), link);
    notice_.Check(static_cast<size_t>(ps), link);
  }
}

void StepWatch::CheckTraffic() {
  uint64_t sent = 0, received = 0;
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const Channel::Stats traffic = client_.ps_calls().TrafficStats(ps);
    sent += traffic.bytes_sent;
    received += traffic.bytes_received;
  }
  metrics_->bytes_sent.CatchUp(sent);
  metrics_->bytes_received.CatchUp(received);
}

void StepWatch::Count(const StepResult& result, const Saver* saver) {
  if (metrics_ == nullptr) return;
  metrics_->steps.Add();
  metrics_->global_step.Set(static_cast<double>(result.global_step));
  metrics_->loss.Set(result.loss);
  metrics_->staleness.Add(static_cast<double>(result.staleness));
  Publish(saver);
}

void StepWatch::PublishSaver(const Saver& saver) {
  if (const std::optional<absl::Time> saved = saver.last_saved_at(); saved.has_value())
    metrics_->checkpoint_saved_at.Set(absl::ToDoubleSeconds(*saved - absl::UnixEpoch()));
  metrics_->checkpoint_failures.CatchUp(saver.failures());
  metrics_->checkpoint_failure.Set(saver.last_failure());
}

void StepWatch::Publish(const Saver* saver) {
  const absl::Time now = clock_.Now();
  if (now - published_ < kBetweenChecks) return;
  published_ = now;
  if (saver != nullptr) PublishSaver(*saver);
  CheckTraffic();
  CheckLinks();
  metrics_->applies_own_updates.Set(client_.applies_own_updates() ? 1 : 0);
  if (now - rate_since_ < kRateOver) return;
  const uint64_t steps = metrics_->steps.value();
  metrics_->steps_per_second.Set(static_cast<double>(steps - rate_steps_) / absl::ToDoubleSeconds(now - rate_since_));
  rate_since_ = now;
  rate_steps_ = steps;
}

}  // namespace muster
