#include "muster/launch/engines/kubernetes/pod_news.h"

#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster::pod_news_test {
namespace {

using ::testing::AllOf, ::testing::HasSubstr;

// As the API server has them, but for what isn't looked at.
std::string Pod(const std::string& host, const std::string& status, const std::string& metadata = "") {
  const std::string part = host == "supervisor" ? "supervisor" : "agent";
  return absl::StrCat(R"({"metadata": {"labels": {"muster/job": "j", "muster/part": ")", part, R"(", "muster/host": ")",
                      host, "\"", metadata.empty() ? "}" : metadata, R"(}, "status": )", status, "}");
}
std::string Deleted(const std::string& host, const std::string& status) {
  return Pod(host, status, R"(}, "deletionTimestamp": "2026-01-01T00:00:00Z")");
}
std::string Again(const std::string& host, const std::string& status) {
  return Pod(host, status, R"(, "muster/again": "1"})");
}

constexpr char kRunning[] =
    R"({"phase": "Running", "containerStatuses": [{"name": "muster", "state": {"running": {}}}]})";
constexpr char kUnschedulable[] = R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "False",
    "reason": "Unschedulable", "message": "0/3 nodes are available: 3 Insufficient cpu."}]})";
constexpr char kCreating[] = R"({"phase": "Pending", "conditions": [{"type": "PodScheduled", "status": "True"}],
    "containerStatuses": [{"name": "muster", "state": {"waiting": {"reason": "ContainerCreating"}}}]})";
constexpr char kNoImage[] = R"({"phase": "Pending", "containerStatuses": [{"name": "muster", "state": {"waiting":
    {"reason": "ErrImagePull", "message": "failed to pull: registry.example/a:1: not found"}}}]})";
constexpr char kBackOff[] = R"({"phase": "Pending", "containerStatuses": [{"name": "muster", "state": {"waiting":
    {"reason": "ImagePullBackOff", "message": "Back-off pulling image \"a\""}}}]})";
constexpr char kBadName[] = R"({"phase": "Pending", "containerStatuses": [{"name": "muster", "state": {"waiting":
    {"reason": "InvalidImageName", "message": "couldn't parse image name \"a b\""}}}]})";
constexpr char kOutOfMemory[] = R"({"phase": "Failed", "containerStatuses": [{"name": "muster", "state": {"terminated":
    {"reason": "OOMKilled", "exitCode": 137}}}]})";
constexpr char kFailed[] = R"({"phase": "Failed", "containerStatuses": [{"name": "muster", "state": {"terminated":
    {"reason": "Error", "exitCode": 3}}}]})";
constexpr char kNoMuster[] = R"({"phase": "Failed", "containerStatuses": [{"name": "muster", "state": {"terminated":
    {"reason": "Error", "exitCode": 127}}}]})";
constexpr char kEvicted[] =
    R"({"phase": "Failed", "reason": "Evicted", "message": "The node was low on resource: memory."})";
constexpr char kDrained[] = R"({"phase": "Running", "conditions": [{"type": "DisruptionTarget", "status": "True",
    "reason": "EvictionByEvictionAPI", "message": "Eviction API: evicting"}]})";
constexpr char kSucceeded[] = R"({"phase": "Succeeded", "containerStatuses": [{"name": "muster", "state": {"terminated":
    {"reason": "Completed", "exitCode": 0}}}]})";

JobNews News(const std::vector<std::string>& pods) {
  const auto parsed = ParsePods(absl::StrCat(R"({"items": [)", absl::StrJoin(pods, ","), "]}"));
  EXPECT_TRUE(parsed.ok()) << parsed.status();
  return NewsOfPods(parsed->pods)["j"];
}

TEST(PodNewsTest, AJobWaitsForItsFirstPodsAndSaysWhy) {
  const JobNews news = News({Pod("supervisor", kRunning), Pod("h0", kUnschedulable), Pod("h1", kCreating)});
  EXPECT_EQ(news.phase, JobPhase::kWaits);
  EXPECT_EQ(news.text,
            "1 of 3 pods run; h0: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.; h1: ContainerCreating");
  EXPECT_EQ(news.reason, "h0: Unschedulable: 0/3 nodes are available: 3 Insufficient cpu.; h1: ContainerCreating");
  EXPECT_FALSE(news.stuck);
  EXPECT_TRUE(news.in_part);
  const JobNews begins = News({Pod("supervisor", "{}")});
  EXPECT_FALSE(begins.in_part);
  EXPECT_EQ(begins.text, "0 of 1 pods run; the supervisor: not scheduled yet");
  EXPECT_EQ(begins.reason, "");  // which passes by
  EXPECT_THAT(News({Pod("supervisor", kRunning), Pod("h0", kCreating), Pod("h1", kCreating), Pod("h2", kCreating),
                    Pod("h3", kCreating), Pod("h4", kCreating)})
                  .text,
              HasSubstr("h2: ContainerCreating; and 2 others"));
}

TEST(PodNewsTest, AJobHasTheExitCodeOfItsSupervisorsPod) {
  EXPECT_EQ(News({Pod("supervisor", kNoMuster)}).exit_code, 127);
  EXPECT_EQ(News({Pod("supervisor", kOutOfMemory), Pod("h0", kFailed)}).exit_code, 137);
  EXPECT_EQ(News({Pod("supervisor", kEvicted)}).exit_code, std::nullopt);
  EXPECT_EQ(News({Pod("supervisor", kRunning), Pod("h0", kFailed)}).exit_code, std::nullopt);
}

TEST(PodNewsTest, APodThatHasEndedDoesntRun) {
  EXPECT_THAT(
      News({Pod("supervisor", kRunning), Pod("h0", kFailed), Deleted("h1", kRunning), Pod("h2", kCreating)}).text,
      HasSubstr("1 of 4 pods run; h2: ContainerCreating"));
}

TEST(PodNewsTest, WhatOnlyAPersonChangesIsStuck) {
  const JobNews news = News({Pod("supervisor", kNoImage), Pod("h0", kNoImage)});
  EXPECT_TRUE(news.stuck);
  EXPECT_THAT(news.text,
              HasSubstr("the supervisor, h0: ErrImagePull: failed to pull: registry.example/a:1: not found"));
  EXPECT_FALSE(news.hopeless);
  EXPECT_FALSE(News({Pod("supervisor", kBackOff)}).stuck) << "the registry may be down";
  EXPECT_TRUE(News({Pod("supervisor", kBadName)}).hopeless);
}

TEST(PodNewsTest, WhyAnImageIsMissingStaysWhileItIsTriedAgain) {
  ImageTroubles troubles;
  const auto look = [&troubles](const std::vector<std::string>& listed) {
    auto pods = ParsePods(absl::StrCat(R"({"items": [)", absl::StrJoin(listed, ","), "]}"))->pods;
    troubles.SteadyWords(pods);
    return NewsOfPods(pods)["j"];
  };
  EXPECT_FALSE(look({Pod("supervisor", kBackOff), Pod("h0", kBackOff)}).stuck);
  const std::string why = look({Pod("supervisor", kNoImage), Pod("h0", kNoImage)}).lasting;
  EXPECT_EQ(why, "ErrImagePull: failed to pull: registry.example/a:1: not found");
  for (const auto& listed : {std::vector<std::string>{Pod("supervisor", kBackOff), Pod("h0", kNoImage)},
                             {Pod("supervisor", kNoImage), Pod("h0", kBackOff)},
                             {Pod("supervisor", kBackOff), Pod("h0", kBackOff)}}) {
    const JobNews news = look(listed);
    EXPECT_EQ(news.lasting, why);
    EXPECT_TRUE(news.stuck);
  }
  look({Pod("supervisor", kCreating), Pod("h0", kCreating)});
  EXPECT_FALSE(look({Pod("supervisor", kBackOff), Pod("h0", kBackOff)}).stuck) << "another trouble";
}

TEST(PodNewsTest, HowManyPodsWaitForAReasonIsNoOtherReason) {
  const JobNews one = News({Pod("supervisor", kRunning), Pod("h0", kUnschedulable), Pod("h1", kCreating)});
  const JobNews two = News({Pod("supervisor", kRunning), Pod("h0", kUnschedulable), Pod("h1", kUnschedulable)});
  EXPECT_NE(one.text, two.text);
  EXPECT_EQ(one.lasting, two.lasting);
  EXPECT_NE(one.lasting, News({Pod("supervisor", kNoImage)}).lasting);
}

TEST(PodNewsTest, AJobRunsWhateverBecomesOfItsAgents) {
  EXPECT_EQ(News({Pod("supervisor", kRunning), Pod("h0", kRunning)}).phase, JobPhase::kRuns);
  const JobNews news = News({Pod("supervisor", kRunning), Pod("h0", kOutOfMemory), Pod("h1", kEvicted)});
  EXPECT_EQ(news.phase, JobPhase::kRuns);
  EXPECT_THAT(news.text, AllOf(HasSubstr("h0: OOMKilled: it used more than the memory of its pod"),
                               HasSubstr("h1: Evicted: The node was low on resource: memory.")));
  EXPECT_EQ(news.reason, news.text);
  EXPECT_EQ(News({Pod("supervisor", kRunning), Pod("h0", kRunning), Pod("h1", kSucceeded)}).reason, "");
  EXPECT_EQ(News({Pod("supervisor", kRunning), Pod("h0", kEvicted), Again("h0", kUnschedulable)}).phase,
            JobPhase::kRuns)
      << "the others train on";
}

TEST(PodNewsTest, TheSupervisorsEndIsTheJobs) {
  EXPECT_EQ(News({Pod("supervisor", kSucceeded), Pod("h0", kRunning)}).phase, JobPhase::kEnded);
  EXPECT_EQ(News({Pod("supervisor", kFailed)}).text, "the supervisor's pod: Error, exit code 3");
  EXPECT_THAT(News({Pod("supervisor", kNoMuster)}).text, HasSubstr("the image has no muster in its PATH"));
  EXPECT_THAT(News({Pod("supervisor", kOutOfMemory)}).text, HasSubstr("OOMKilled"));
  const JobNews evicted = News({Pod("supervisor", kEvicted)});
  EXPECT_FALSE(evicted.cancelled);
  EXPECT_TRUE(evicted.taken_away);
  EXPECT_FALSE(News({Pod("supervisor", kFailed)}).taken_away);
}

TEST(PodNewsTest, ADeletedSupervisorIsACancellationAndAnEvictedOneIsNot) {
  const JobNews deleted = News({Deleted("supervisor", kRunning), Pod("h0", kRunning)});
  EXPECT_TRUE(deleted.ending);
  EXPECT_TRUE(deleted.cancelled);
  const JobNews drained = News({Deleted("supervisor", kDrained), Pod("h0", kRunning)});
  EXPECT_TRUE(drained.ending);
  EXPECT_FALSE(drained.cancelled);
  EXPECT_THAT(drained.reason, HasSubstr("EvictionByEvictionAPI"));
  const JobNews gone = News({Deleted("h0", kRunning)});
  EXPECT_EQ(gone.phase, JobPhase::kEnded);
  EXPECT_FALSE(gone.cancelled) << "it may have been drained";
  EXPECT_TRUE(gone.taken_away);
}

TEST(PodNewsTest, APageSaysWhereTheNextOneBegins) {
  const auto page = ParsePods(R"({"metadata": {"continue": "abc="}, "items": [{}, {}]})");
  EXPECT_EQ(page->next, "abc=");
  EXPECT_THAT(page->pods, ::testing::SizeIs(2));
  EXPECT_EQ(ParsePods(R"({"metadata": {"continue": ""}, "items": []})")->next, "");
  EXPECT_EQ(ParsePods(R"({"items": []})")->next, "");
}

TEST(PodNewsTest, AnythingElseIsAnError) {
  for (const char* answer : {"", "[]", "{}", R"({"items": 3})"}) EXPECT_FALSE(ParsePods(answer).ok()) << answer;
  EXPECT_TRUE(ParsePods(R"({"items": [3, {}, {"metadata": [], "status": {"conditions": {}}}]})").ok());
}

}  // namespace
}  // namespace muster::pod_news_test
