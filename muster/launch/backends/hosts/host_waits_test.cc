#include "muster/launch/backends/hosts/host_waits.h"

#include <gmock/gmock.h>

#include <string>
#include <vector>

namespace muster::host_waits_test {
namespace {

using ::testing::ElementsAre, ::testing::EndsWith, ::testing::IsEmpty;

class HostWaitsTest : public ::testing::Test {
 protected:
  // Moves the time to `seconds` after the beginning.
  void At(int seconds, const std::vector<AwaitedHost>& awaited) {
    waits_.OnTime(absl::FromUnixSeconds(1000 + seconds), [&awaited] { return awaited; });
  }
  std::vector<std::string> said_;
  HostWaits waits_{[this](const std::string& line) { said_.push_back(line); }};
};

TEST_F(HostWaitsTest, AWaitIsSaidAfterTenSecondsAndThenMoreAndMoreSeldom) {
  waits_.Begin(absl::FromUnixSeconds(1000));
  EXPECT_EQ(waits_.deadline(), absl::FromUnixSeconds(1010));
  for (int second = 0; second < 80; ++second) At(second, {{"h3", "connection refused"}});
  EXPECT_THAT(
      said_, ElementsAre("waiting for h3 since 10s: connection refused", "waiting for h3 since 20s: connection refused",
                         "waiting for h3 since 40s: connection refused"));
}

TEST_F(HostWaitsTest, EachHostHasWhatWasHeardOfIt) {
  waits_.Begin(absl::FromUnixSeconds(1000));
  At(10, {{"h1", "no route"}, {"h2", "nothing"}});
  EXPECT_THAT(said_, ElementsAre("waiting for h1, h2 since 10s: h1: no route; h2: nothing"));
}

TEST_F(HostWaitsTest, ManyHostsAreALineAll) {
  waits_.Begin(absl::FromUnixSeconds(1000));
  At(10, std::vector<AwaitedHost>(64, {"h", "nothing"}));
  EXPECT_THAT(said_, ElementsAre(EndsWith("h: nothing; 56 more")));
}

TEST_F(HostWaitsTest, NothingIsSaidOfAWaitThatHasEnded) {
  At(100, {{"h1", "nothing"}});
  waits_.Begin(absl::FromUnixSeconds(1000));
  waits_.End();
  At(100, {{"h1", "nothing"}});
  EXPECT_EQ(waits_.deadline(), absl::InfiniteFuture());
  waits_.Begin(absl::FromUnixSeconds(1000));
  At(100, {});
  EXPECT_THAT(said_, IsEmpty());
}

}  // namespace
}  // namespace muster::host_waits_test
