#include "muster/sim/scale_prediction.h"

#include <gtest/gtest.h>

namespace muster::scale_prediction_test {
namespace {

StepCosts Costs() {
  return {.compute = absl::Milliseconds(20),
          .client = absl::Microseconds(300),
          .client_ps = absl::Microseconds(50),
          .ps_request = absl::Microseconds(100),
          .ps_model = absl::Microseconds(400),
          .one_way = absl::Microseconds(200)};
}

double Predict(int workers, int ps, const StepCosts& costs) {
  const absl::StatusOr<double> rate = PredictStepsPerSecond(workers, ps, costs);
  EXPECT_TRUE(rate.ok()) << rate.status();
  return rate.value_or(0);
}

TEST(ScalePrediction, AWorkerAloneTakesTheSumOfTheCosts) {
  EXPECT_NEAR(Predict(1, 1, Costs()), 1 / (20e-3 + 300e-6 + 500e-6 + 400e-6), 0.5);
  // Half the model is pushed to each ps at the same time; then ps 0 counts, which is a second round trip.
  EXPECT_NEAR(Predict(1, 2, Costs()), 1 / (20e-3 + 350e-6 + 300e-6 + 400e-6 + 100e-6 + 400e-6), 0.5);
}

TEST(ScalePrediction, FewWorkersDontDisturbOneAnother) {
  EXPECT_NEAR(Predict(4, 1, Costs()), 4 * Predict(1, 1, Costs()), 0.02 * 4 * 48);
}

TEST(ScalePrediction, TheProcessorOfThePsIsTheLimitOfMany) {
  EXPECT_NEAR(Predict(100, 1, Costs()), 1 / 500e-6, 0.01 / 500e-6);
  // ps 0 also counts: 200 us for the model and two requests.
  EXPECT_NEAR(Predict(256, 2, Costs()), 1 / 400e-6, 0.02 / 400e-6);
}

TEST(ScalePrediction, IsTheSameEachTime) { EXPECT_EQ(Predict(20, 2, Costs()), Predict(20, 2, Costs())); }

}  // namespace
}  // namespace muster::scale_prediction_test
