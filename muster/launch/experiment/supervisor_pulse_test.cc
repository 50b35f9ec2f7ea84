#include "muster/launch/experiment/supervisor_pulse.h"

#include <gmock/gmock.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "muster/launch/registry/files/requests.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::supervisor_pulse_test {
namespace {

class SupervisorPulseTest : public RegistryFixture {
 protected:
  SupervisorPulseTest() { Bring(*registry_, id_, RunState::kRunning); }
  // As state.json says.
  absl::Time Renewed() const {
    const std::string text = PosixFileSystem().ReadFile(home_.state(id_)).value();
    return absl::FromUnixMicros(nlohmann::json::parse(text).at("renewed_us").get<int64_t>());
  }
  // Does what is due at each deadline until `end`, as a supervisor's loop.
  void RunUntil(absl::Time end) {
    while (pulse_.deadline() <= end) {
      ASSERT_GT(pulse_.deadline(), clock_.Now()) << "the loop would never sleep";
      clock_.AdvanceTo(pulse_.deadline());
      pulse_.OnTime();
    }
    clock_.AdvanceTo(end);
  }

  const std::unique_ptr<Registry> registry_ = Open();
  const ExperimentId id_{Create(*registry_, Single()), 0};
  SupervisorPulse pulse_{home_, id_, *registry_, clock_};
};

TEST_F(SupervisorPulseTest, RenewsTheStateEachFiveSeconds) {
  const absl::Time start = clock_.Now();
  pulse_.OnTime();
  EXPECT_EQ(Renewed(), start) << "as the last change has left it";
  for (int second = 1; second <= 60; ++second) {
    RunUntil(start + absl::Seconds(second));
    EXPECT_EQ(Renewed(), start + absl::Seconds(second / 5 * 5)) << second;
  }
}

TEST_F(SupervisorPulseTest, WhatIsRenewedLateDoesNotMakeTheNextOnesFollowAtOnce) {
  pulse_.OnTime();
  clock_.Advance(absl::Minutes(1));  // the machine was suspended
  pulse_.OnTime();
  const absl::Time late = clock_.Now();
  EXPECT_EQ(Renewed(), late);
  RunUntil(late + absl::Seconds(9));
  EXPECT_EQ(Renewed(), late + absl::Seconds(5));
}

TEST_F(SupervisorPulseTest, IsWatchedForFifteenSecondsAfterTheLastWord) {
  pulse_.OnTime();
  EXPECT_FALSE(pulse_.IsWatched());
  for (int word = 0; word < 2; ++word) {
    SayWatched(home_.requests(id_));
    const absl::Time said = clock_.Now();
    RunUntil(said + absl::Seconds(15));
    EXPECT_TRUE(pulse_.IsWatched()) << word;
    RunUntil(said + absl::Seconds(17));  // it looks each second
    EXPECT_FALSE(pulse_.IsWatched()) << word;
  }
}

}  // namespace
}  // namespace muster::supervisor_pulse_test
