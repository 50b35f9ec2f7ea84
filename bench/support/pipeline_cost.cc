#include "bench/support/pipeline_cost.h"

#include <algorithm>
#include <numeric>

#include "muster/algo/choice/make_algorithm.h"
#include "muster/algo/sources/float_source.h"
#include "muster/base/status_macros.h"
#include "muster/observe/track.h"
#include "muster/store/testing/joining.h"
#include "muster/store/testing/simulated_store.h"

namespace muster::bench {
namespace {

// So small that no rule leads far away in a million steps.
constexpr float kGradient = 1e-6F;
constexpr float kValue = 0.1F;

double OwnMicroseconds(const Track& track) {
  for (const StepTimesRow& row : track.times().Table("", "").rows)
    if (row.what == "other") return row.mean_us;
  return 0;
}

}  // namespace

absl::StatusOr<PipelineCost> MeasurePipelineCost(const AlgorithmPlan& plan, const std::vector<VariableSpec>& variables,
                                                 int64_t steps) {
  SimulatedStore store(1, {"worker:0"}, {.lease = absl::Hours(1000)});
  FloatSource source(variables, kValue, kGradient);  // gradients that cost nothing
  const MonotonicTraceClock clock;
  Track track("training", clock);
  const auto client = store.Client("worker:0", {.track = &track});
  const auto algorithm = MakeAlgorithm(plan, source, *PlaceVariables(variables, 1, Placement::kRoundRobin, {}));
  RETURN_IF_ERROR(JoinToTrain(*client, algorithm->binding(), /*chief=*/true));
  algorithm->Begin(*client);
  RETURN_IF_ERROR(client->Pull(PullWhat::kEverything));

  const int64_t window = std::lcm<int64_t, int64_t>(plan.commit.window, std::max(plan.commit.fetch_window, 1U));
  const int64_t counted = (steps + window - 1) / window * window;
  for (int64_t step = 0; step < window; ++step) RETURN_IF_ERROR(algorithm->Step(*client).status());
  RETURN_IF_ERROR(algorithm->FinishPending(*client));
  const Channel::Stats before = TrafficOf(*client);
  for (int64_t step = 0; step < counted; ++step) {
    Track::StepScope scope(&track, step);
    RETURN_IF_ERROR(algorithm->Step(*client).status());
  }
  RETURN_IF_ERROR(algorithm->FinishPending(*client));
  const Channel::Stats after = TrafficOf(*client);
  const auto per_step = [counted](uint64_t bytes) { return static_cast<double>(bytes) / static_cast<double>(counted); };
  return PipelineCost{.own_microseconds = OwnMicroseconds(track),
                      .bytes_sent = per_step(after.bytes_sent - before.bytes_sent),
                      .bytes_received = per_step(after.bytes_received - before.bytes_received)};
}

}  // namespace muster::bench
