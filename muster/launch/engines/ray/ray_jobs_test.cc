#include "muster/launch/engines/ray/ray_jobs.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::ray_jobs_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr;

// The python is a script that the test writes; $1 is the program that it would run.
class RayJobsTest : public ::testing::Test {
 protected:
  void Python(const std::string& script) const {
    scratch_.Write("python", absl::StrCat("#!/bin/sh\necho \"$@\" >>", scratch_ / "words", "\n", script, "\n"));
    chmod((scratch_ / "python").c_str(), 0700);
  }
  RayJobs Jobs(const std::vector<std::string>& environment = {"PATH=/usr/bin:/bin"},
               const std::string& address = "http://h1:8265") const {
    return RayJobs(absl::StrCat(address, " ", scratch_ / "python"), environment);
  }
  std::string WhyNot() const { return std::string(Jobs().Look({"a"}).status().message()); }

  const ScratchFolder scratch_;
};

TEST_F(RayJobsTest, TheClientSubmitsTheScriptWithTheDriverBesideIt) {
  Python("grep -q JobSubmissionClient $1 && echo '{\"id\": \"muster-1-ab\"}'");
  EXPECT_EQ(*Jobs().Submit(scratch_ / "job.sh", ""), "muster-1-ab");
  EXPECT_THAT(scratch_.Read("words"), HasSubstr(" submit http://h1:8265 " + (scratch_ / "job.sh")));
  EXPECT_THAT(scratch_.Read("driver/ray_hosts.py"), HasSubstr("placement_group"));
  for (const char* file : {"driver_server", "host_process", "ray_client", "ray_driver", "ray_texts"})
    EXPECT_TRUE(scratch_.Has(absl::StrCat("driver/", file, ".py"))) << file;
}

TEST_F(RayJobsTest, NewsAreReadFromRaysStates) {
  const auto news = ParseRayJobs(R"({"jobs": {
      "1": {"status": "PENDING", "message": "Job has not started yet."},
      "2": {"status": "RUNNING", "message": "Job is currently running."},
      "3": {"status": "STOPPED", "message": "Job was intentionally stopped."},
      "4": {"status": "FAILED", "message": "failed with exit code 2, last available logs:\nfirst\nlast line\n", "exit_code": 2},
      "5": {"status": "SUCCEEDED", "message": "", "exit_code": null},
      "6": {"status": "FAILED", "message": "failed with exit code -9", "exit_code": -9}}})");
  ASSERT_TRUE(news.ok()) << news.status();
  EXPECT_EQ(news->at("1").phase, JobPhase::kWaits);
  EXPECT_EQ(news->at("2").phase, JobPhase::kRuns);
  EXPECT_EQ(news->at("3").phase, JobPhase::kEnded);
  EXPECT_TRUE(news->at("3").cancelled);
  EXPECT_EQ(news->at("4").text, "FAILED (last line)");
  EXPECT_FALSE(news->at("4").cancelled);
  EXPECT_EQ(news->at("4").exit_code, 2);
  EXPECT_EQ(news->at("5").text, "SUCCEEDED");
  EXPECT_EQ(news->at("5").exit_code, std::nullopt);
  EXPECT_EQ(news->at("6").exit_code, 137);
  for (const char* answer : {"", "[]", "{}", R"({"jobs": {"1": {"status": 3}}})"})
    EXPECT_FALSE(ParseRayJobs(answer).ok()) << answer;
}

TEST_F(RayJobsTest, AJobThatRayDoesntKnowIsUnknown) {
  Python("echo '{\"jobs\": {}}'");
  EXPECT_EQ(Jobs().Look({"a"})->at("a").phase, JobPhase::kUnknown);
}

TEST_F(RayJobsTest, EachErrorSaysWhatToDo) {
  Python("echo '{\"error\": \"no_ray\", \"text\": \"No module named ray\"}'; exit 1");
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("has no Ray: pip install 'ray[default]'"), HasSubstr("No module named ray")));
  Python("echo '{\"error\": \"unreachable\", \"text\": \"refused\"}'; exit 1");
  EXPECT_THAT(WhyNot(), HasSubstr("no dashboard of Ray answers at http://h1:8265 (refused); accepted: its address"));
  EXPECT_TRUE(absl::IsUnavailable(Jobs().Look({"a"}).status())) << "a job that is there may be found later";
  EXPECT_TRUE(absl::IsNotFound(Jobs().Submit(scratch_ / "job.sh", "").status())) << "nothing was submitted";
  Python("echo '{\"error\": \"late\", \"text\": \"nothing within 2m\"}'; exit 1");
  EXPECT_EQ(WhyNot(), "Ray hasn't answered at http://h1:8265 (nothing within 2m)");
  EXPECT_THAT(std::string(Jobs({"PATH=/usr/bin:/bin"}, "h1:6379").Look({"a"}).status().message()),
              HasSubstr("(nothing within 2m); is its dashboard at http://HOST:8265?"));
  const absl::Status late = Jobs().Submit(scratch_ / "job.sh", "").status();
  EXPECT_TRUE(absl::IsUnavailable(late)) << late;
  EXPECT_THAT(std::string(late.message()), HasSubstr("(nothing within 2m); it may have taken the job"));
  Python("echo '{\"error\": \"refused\", \"text\": \"status code 403\"}'; exit 1");
  EXPECT_TRUE(absl::IsInvalidArgument(Jobs().Look({"a"}).status()));
  Python("echo oops >&2; exit 3");
  EXPECT_THAT(WhyNot(), HasSubstr("exited with 3: oops"));
  unlink((scratch_ / "python").c_str());
  EXPECT_TRUE(absl::IsNotFound(Jobs().Look({"a"}).status()));
}

TEST_F(RayJobsTest, TheClientGetsNoOtherAddressAndNoSecret) {
  Python("echo \"{\\\"id\\\": \\\"${RAY_ADDRESS:-0}${MUSTER_JOB_TOKEN:-0}${KEPT:-0}\\\"}\"");
  const std::vector<std::string> environment = {"PATH=/usr/bin:/bin", "RAY_ADDRESS=auto", "MUSTER_JOB_TOKEN=s",
                                                "KEPT=1"};
  EXPECT_EQ(*Jobs(environment).Submit(scratch_ / "job.sh", ""), "001");
}

// Another job's end may leave a place that this one doesn't know of.
TEST_F(RayJobsTest, AJobThatWaitsForOthersIsFreed) {
  Python("echo '{\"freed\": true}'");
  EXPECT_TRUE(Jobs().Free("muster-1.3-ab").ok());
  EXPECT_THAT(scratch_.Read("words"), HasSubstr(" free http://h1:8265 muster-1.3-ab"));
}

TEST_F(RayJobsTest, OwnJobIsWhatItsDriverSays) {
  const auto own = Jobs({"MUSTER_DRIVER_JOB=muster-1-ab", "MUSTER_DRIVER_SOCKET=/tmp/s",
                         "MUSTER_DRIVER_HOSTS=h1=10.0.0.1,h2=10.0.0.2", "MUSTER_DRIVER_SAYS=begins with 2 of 3 nodes"})
                       .Own();
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->id, "muster-1-ab");
  EXPECT_THAT(own->hosts, ElementsAre("h1", "h2"));
  EXPECT_EQ(own->says, "begins with 2 of 3 nodes");
  EXPECT_TRUE(absl::IsNotFound(Jobs().Own().status()));
}

TEST_F(RayJobsTest, ASignalIsACancellation) {
  HostSetting setting;
  setting.ray = RaySetting{.nodes = 4};
  EXPECT_EQ(Jobs().TermsOf(setting).hosts, 4);
  EXPECT_TRUE(Jobs().TermsOf(setting).signal_cancels);
}

TEST(PlaceOfRayTest, TheSettingWinsOverTheEnvironment) {
  EXPECT_EQ(PlaceOfRay({}, {}), "http://127.0.0.1:8265 python3");
  EXPECT_EQ(PlaceOfRay({}, {"RAY_ADDRESS=http://h2:1"}), "http://h2:1 python3");
  EXPECT_EQ(PlaceOfRay({.address = "http://h3:1", .python = "/p"}, {"RAY_ADDRESS=http://h2:1"}), "http://h3:1 /p");
  EXPECT_EQ(RayJobs("", {"MUSTER_DRIVER_JOB=j", "MUSTER_DRIVER_AT=http://h4:1 /q"}).at(), "http://h4:1 /q");
}

}  // namespace
}  // namespace muster::ray_jobs_test
