#include "muster/train/session/step_watch.h"

namespace muster {
namespace {

constexpr absl::Duration kBetweenLooks = absl::Milliseconds(100);
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
  LookAtTraffic();
  if (state != TrainingState::kEnded) LookAtLinks();  // after the end the client is disconnected
}

void StepWatch::LookAtLinks() {
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const char* const link = client_.applies_own_updates() ? kDirectLink : client_.ps_calls().TrafficStats(ps).link;
    metrics_->links.Set(static_cast<size_t>(ps), link);
    notice_.Look(static_cast<size_t>(ps), link);
  }
}

void StepWatch::LookAtTraffic() {
  uint64_t sent = 0, received = 0;
  for (int ps = 0; ps < client_.num_ps(); ++ps) {
    const Channel::Stats traffic = client_.ps_calls().TrafficStats(ps);
    sent += traffic.bytes_sent;
    received += traffic.bytes_received;
  }
  metrics_->bytes_sent.CatchUp(sent);
  metrics_->bytes_received.CatchUp(received);
}

void StepWatch::Count(const StepResult& result, const std::string& checkpoint) {
  if (metrics_ == nullptr) return;
  metrics_->steps.Add();
  metrics_->global_step.Set(static_cast<double>(result.global_step));
  metrics_->loss.Set(result.loss);
  metrics_->staleness.Add(static_cast<double>(result.staleness));
  Publish(checkpoint);
}

void StepWatch::Publish(const std::string& checkpoint) {
  const absl::Time now = clock_.Now();
  if (now - published_ < kBetweenLooks && checkpoint == checkpoint_) return;
  published_ = now;
  if (checkpoint != checkpoint_) metrics_->checkpoint_saved_at.Set(absl::ToDoubleSeconds(now - absl::UnixEpoch()));
  checkpoint_ = checkpoint;
  LookAtTraffic();
  LookAtLinks();
  metrics_->applies_own_updates.Set(client_.applies_own_updates() ? 1 : 0);
  if (now - rate_since_ < kRateOver) return;
  const uint64_t steps = metrics_->steps.value();
  metrics_->steps_per_second.Set(static_cast<double>(steps - rate_steps_) / absl::ToDoubleSeconds(now - rate_since_));
  rate_since_ = now;
  rate_steps_ = steps;
}

}  // namespace muster
