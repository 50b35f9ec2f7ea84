#include "muster/launch/engines/slurm/job_options.h"

#include <gmock/gmock.h>

namespace muster::job_options_test {
namespace {

using ::testing::Contains, ::testing::Key, ::testing::Not, ::testing::Pair;

JobRequest Request() {
  return {.experiment = "4.2",
          .project = "toy",
          .notice = absl::Seconds(60),
          .folder = "/m/4/runs/2",
          .output_file = "/m/4/runs/2/job.out"};
}

TEST(OptionsOfJobTest, WhatNoTaskStatesIsntAskedFor) {
  EXPECT_EQ(OptionsOfJob(Request()), (SbatchOptions{{"chdir", "/m/4/runs/2"},
                                                    {"job-name", "toy.4.2"},
                                                    {"no-requeue", ""},
                                                    {"open-mode", "append"},
                                                    {"output", "/m/4/runs/2/job.out"},
                                                    {"signal", "B:USR1@60"}}));
}

TEST(OptionsOfJobTest, NeedsAreThoseOfANodeAndOfMusterItself) {
  JobRequest request = Request();
  request.needs = {.cpus = 2.5, .mem_bytes = int64_t{1} << 30, .gpus = 2};
  request.after = "17:19";
  const SbatchOptions options = OptionsOfJob(request);
  for (const auto& [name, value] : SbatchOptions{{"ntasks-per-node", "1"},
                                                 {"cpus-per-task", "3"},
                                                 {"mem", "1088M"},
                                                 {"gres", "gpu:2"},
                                                 {"dependency", "afterany:17:19"}})
    EXPECT_THAT(options, Contains(Pair(name, value)));
}

TEST(OptionsOfJobTest, TheUsersTakeThePlaceOfMusters) {
  JobRequest request = Request();
  request.needs.mem_bytes = 1;
  request.setting.slurm = {.options = {{"mem", std::nullopt}, {"signal", "B:TERM@30"}, {"qos", "night"}},
                           .max_requeues = 2};
  const SbatchOptions options = OptionsOfJob(request);
  EXPECT_THAT(options, Contains(Pair("signal", "B:TERM@30")));
  EXPECT_THAT(options, Contains(Pair("qos", "night")));
  EXPECT_THAT(options, Contains(Key("requeue")));
  EXPECT_THAT(options, Not(Contains(Key("mem"))));
  EXPECT_THAT(options, Not(Contains(Key("no-requeue"))));
}

TEST(OptionsOfJobTest, AnyOfMustersCanBeTakenAwayOrReplaced) {
  JobRequest request = Request();
  request.needs = {.cpus = 2.5, .mem_bytes = int64_t{1} << 30, .gpus = 2};
  for (const int max_requeues : {0, 2}) {
    request.setting.slurm = {.max_requeues = max_requeues};
    const SbatchOptions all = OptionsOfJob(request);
    EXPECT_EQ(all.size(), 10U);
    for (const auto& [name, value] : all) {
      SCOPED_TRACE(name);
      SbatchOptions others = all;
      others.erase(name);
      request.setting.slurm->options = {{name, std::nullopt}};
      EXPECT_EQ(OptionsOfJob(request), others);
      others[name] = "users";
      request.setting.slurm->options = {{name, "users"}};
      EXPECT_EQ(OptionsOfJob(request), others);
    }
  }
}

TEST(OptionsOfJobTest, AGridsOrderStandsBesideTheUsersDependency) {
  JobRequest request = Request();
  request.setting.slurm = {.options = {{"dependency", "afterok:5"}}};
  EXPECT_THAT(OptionsOfJob(request), Contains(Pair("dependency", "afterok:5")));
  request.after = "17:19";
  EXPECT_THAT(OptionsOfJob(request), Contains(Pair("dependency", "afterok:5,afterany:17:19")));
  request.setting.slurm->options["dependency"] = std::nullopt;
  EXPECT_THAT(OptionsOfJob(request), Contains(Pair("dependency", "afterany:17:19")));
}

TEST(OptionsOfJobTest, TheNoticeIsOneThatSbatchTakes) {
  JobRequest request = Request();
  request.notice = absl::Hours(24);
  EXPECT_THAT(OptionsOfJob(request), Contains(Pair("signal", "B:USR1@65535")));
}

TEST(TermsOfSlurmTest, AreThoseThatTheUserStates) {
  const auto terms = [](const SbatchOptions& options) { return TermsOfSlurm({.options = options, .max_requeues = 3}); };
  EXPECT_EQ(terms({}).hosts, 1);
  EXPECT_EQ(terms({}).time_limit, std::nullopt);
  EXPECT_EQ(terms({}).max_requeues, 3);
  EXPECT_EQ(terms({{"nodes", "3"}}).hosts, 3);
  EXPECT_EQ(terms({{"nodes", "2-4"}}).hosts, 2) << "Slurm may give the least";
  EXPECT_EQ(terms({{"nodes", "many"}}).hosts, 1);
  EXPECT_EQ(terms({{"time", "3"}}).time_limit, absl::Minutes(3));
  EXPECT_EQ(terms({{"time", "UNLIMITED"}}).time_limit, std::nullopt);
}

TEST(NoticeSignalTest, IsThatWhichTheScriptGets) {
  EXPECT_EQ(NoticeSignal({{"signal", "B:USR1@60"}}), "USR1");
  EXPECT_EQ(NoticeSignal({{"signal", "RB:SIGTERM@60"}}), "TERM");
  EXPECT_EQ(NoticeSignal({{"signal", "B:sigterm@60"}}), "TERM") << "Slurm takes it, too";
  EXPECT_EQ(NoticeSignal({{"signal", "B:12"}}), "12");
  EXPECT_EQ(NoticeSignal({{"signal", "USR1@60"}}), "") << "for the steps";
  EXPECT_EQ(NoticeSignal({{"signal", "B:a b"}}), "");
  EXPECT_EQ(NoticeSignal({}), "");
}

TEST(ParseTimeLimitTest, KnowsSlurmsForms) {
  EXPECT_EQ(ParseTimeLimit("90"), absl::Minutes(90));
  EXPECT_EQ(ParseTimeLimit("90:30"), absl::Minutes(90) + absl::Seconds(30));
  EXPECT_EQ(ParseTimeLimit("1:02:03"), absl::Hours(1) + absl::Minutes(2) + absl::Seconds(3));
  EXPECT_EQ(ParseTimeLimit("2-12"), absl::Hours(60));
  EXPECT_EQ(ParseTimeLimit("2-12:30"), absl::Hours(60) + absl::Minutes(30));
  for (const char* text : {"", "UNLIMITED", "1:", "1-2-3", "-5", "1:2:3:4"})
    EXPECT_EQ(ParseTimeLimit(text), std::nullopt);
}

}  // namespace
}  // namespace muster::job_options_test
