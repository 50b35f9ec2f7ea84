#include "muster/launch/engines/kubernetes/pod_agents.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"

namespace muster::pod_agents_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr, ::testing::IsEmpty;

struct PlayedMaker final : PodMaker {
  void Make(const std::string& host, int number, std::function<void(absl::Status)> done) override {
    asked.push_back(absl::StrCat(host, " ", number));
    answers.push_back(std::move(done));
  }
  std::vector<std::string> asked;
  std::vector<std::function<void(absl::Status)>> answers;
};

class PodAgentsTest : public ::testing::Test, private AgentStarterEvents {
 protected:
  void SetUp() override { ASSERT_EQ(agents_.Begin({}, *this), absl::OkStatus()); }
  void OnSaid(const std::string&, const std::string&) override {}
  void OnSaidOfAll(const std::vector<std::string>&, const std::string&) override {}
  void OnWaits(const std::vector<std::string>& hosts, const std::string& line) override {
    told_.push_back(absl::StrCat(hosts[0], " waits: ", line));
  }
  void OnEnded(const std::string& host, const std::string& how) override {
    told_.push_back(absl::StrCat(host, " ended: ", how));
  }

  PlayedMaker* maker_ = new PlayedMaker();
  SimulatedClock clock_;
  PodAgents agents_{"muster-1-ab", std::unique_ptr<PodMaker>(maker_), clock_};
  std::vector<std::string> told_;
};

TEST_F(PodAgentsTest, AgentsComeByThemselves) {
  EXPECT_EQ(agents_.StartAll({"h0", "h1"}), absl::OkStatus());
  EXPECT_THAT(maker_->asked, IsEmpty());
}

TEST_F(PodAgentsTest, ALostPodIsMadeAgain) {
  EXPECT_EQ(agents_.StartAgain("h1"), absl::OkStatus());
  EXPECT_EQ(agents_.StartAgain("h1"), absl::OkStatus());
  EXPECT_THAT(maker_->asked, ElementsAre("h1 1", "h1 2"));
  maker_->answers[0](absl::UnavailableError("of an earlier start"));
  EXPECT_THAT(told_, IsEmpty());
  maker_->answers[1](absl::OkStatus());
  EXPECT_THAT(told_, ElementsAre("h1 waits: h1 waits for its pod, which is made again if it has ended"));
}

// Kubernetes takes the pod of a node that has died for one that runs, until it misses the node.
TEST_F(PodAgentsTest, ThePodIsAskedForUntilAnAgentComes) {
  EXPECT_EQ(agents_.StartAgain("h1"), absl::OkStatus());
  EXPECT_EQ(agents_.deadline(), absl::InfiniteFuture()) << "the API hasn't answered";
  maker_->answers[0](absl::OkStatus());
  EXPECT_EQ(agents_.deadline(), clock_.Now() + PodAgents::kAskForPodEvery);
  agents_.OnTime();
  EXPECT_THAT(maker_->asked, ElementsAre("h1 1"));
  clock_.Advance(PodAgents::kAskForPodEvery);
  agents_.OnTime();
  agents_.OnTime();
  EXPECT_THAT(maker_->asked, ElementsAre("h1 1", "h1 1"));
  maker_->answers[1](absl::OkStatus());
  EXPECT_EQ(told_.size(), 1U) << "its time goes on";
  agents_.NoteArrival("h1");
  clock_.Advance(absl::Hours(1));
  agents_.OnTime();
  EXPECT_EQ(maker_->asked.size(), 2U);
  EXPECT_EQ(agents_.StartAgain("h1"), absl::OkStatus());
  maker_->answers[2](absl::OkStatus());
  agents_.Forget("h1");
  clock_.Advance(absl::Hours(1));
  agents_.OnTime();
  EXPECT_THAT(maker_->asked, ElementsAre("h1 1", "h1 1", "h1 2")) << "nobody waits for it any more";
}

TEST_F(PodAgentsTest, ARefusalOfTheApiIsTheReason) {
  EXPECT_EQ(agents_.StartAgain("h1"), absl::OkStatus());
  maker_->answers[0](absl::PermissionDeniedError("pods is forbidden"));
  EXPECT_THAT(told_, ElementsAre("h1 ended: pods is forbidden"));
  EXPECT_THAT(std::string(agents_.Explain("h1", "pods is forbidden").message()),
              HasSubstr("h1: its pod can't be made again: pods is forbidden"));
  agents_.Forget("h1");
  maker_->answers[0](absl::OkStatus());
  EXPECT_EQ(told_.size(), 1U);
}

TEST(PodAgentsWithoutApiTest, ALostPodStaysLostAndTheUserReadsWhatToDo) {
  const SimulatedClock clock;
  PodAgents agents("muster-1-ab", nullptr, clock);
  const absl::Status lost = agents.StartAgain("h0");
  EXPECT_TRUE(absl::IsAborted(lost)) << "a task that may not move has no place any more: " << lost;
  EXPECT_THAT(std::string(lost.message()), HasSubstr("name a service_account that may create pods"));
}

}  // namespace
}  // namespace muster::pod_agents_test
