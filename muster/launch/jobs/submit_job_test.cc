#include "muster/launch/jobs/submit_job.h"

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "muster/launch/engines/slurm/slurm_jobs.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/testing/played_job_engine.h"
#include "muster/launch/testing/registry_fixture.h"

namespace muster::submit_job_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::HasSubstr, ::testing::Pair;

class SubmitJobTest : public RegistryFixture {
 protected:
  JobsOrder Order(const SbatchOptions& slurm = {}) const {
    NewExperiment experiment = Single();
    experiment.options.stop_grace_seconds = 100;
    experiment.options.hosts.slurm = {.options = slurm};
    return {.home = home_,
            .muster = "/opt/muster",
            .users_umask = 027,
            .file = ParseExperimentFile("project: toaster\ntrain: {framework: any, run: x}\n", "muster.yml").value(),
            .experiment = experiment};
  }
  std::string Script() const { return scratch_.Read("experiments/1/job.sh"); }

  PlayedJobs played_;
  PlayedJobEngine engine_{played_};
  const ExperimentId id_{.number = 1};
};

TEST_F(SubmitJobTest, WhatTheTasksTookToEndIsTheNoticeOfTheNextAttempt) {
  ASSERT_TRUE(SubmitRun(engine_, Order(), id_, {}, 0).ok());
  EXPECT_EQ(Script(), "notice=130\n") << "what they may take, and a reserve";
  JobOfRun job = **ReadJobFile(home_.job(id_));
  EXPECT_EQ(job.ending_seconds, 0);
  // As the supervisor writes it at the end of its job's time.
  job.ending_seconds = 8;
  ASSERT_TRUE(WriteJobFile(home_.job(id_), job).ok());
  const double measured = ReadJobFile(home_.job(id_)).value()->ending_seconds;
  ASSERT_TRUE(SubmitRun(engine_, Order(), id_, {}, measured).ok());
  EXPECT_EQ(Script(), "notice=46\n");
  EXPECT_EQ(ReadJobFile(home_.job(id_)).value()->ending_seconds, 8);
  EXPECT_THAT(played_.submitted, ElementsAre(home_.job_script(id_), home_.job_script(id_)));
}

TEST_F(SubmitJobTest, TheNextScriptIsWrittenInPlaceOfTheFirst) {
  ASSERT_TRUE(SubmitRun(engine_, Order(), id_, {}, 0).ok());
  ASSERT_TRUE(WriteJobScript(engine_, Order(), id_, "", 2.5).ok());
  EXPECT_EQ(Script(), "notice=35\n");
  struct stat info {};
  ASSERT_EQ(stat(home_.job_script(id_).c_str(), &info), 0);
  EXPECT_EQ(info.st_mode & 0777, 0700);
}

TEST_F(SubmitJobTest, OfAJobThatCannotBeWrittenDownItIsSaidWhatBecameOfIt) {
  // No file can take the place of this folder.
  played_.on_submit = [this] { scratch_.Write("experiments/1/job/in_the_way", ""); };
  const auto ended = SubmitRun(engine_, Order(), id_, {}, 0);
  EXPECT_THAT(std::string(ended.status().message()),
              AllOf(HasSubstr("job 101 of Slurm was submitted, but"), HasSubstr("; it was ended again: "),
                    HasSubstr(home_.job(id_))));
  EXPECT_THAT(played_.ended, ElementsAre(Pair("101", JobEnd::kCancel)));
  played_.silence = absl::UnavailableError("no answer");
  const auto left = SubmitRun(engine_, Order(), id_, {}, 0);
  EXPECT_THAT(std::string(left.status().message()), HasSubstr("; it can't be ended (no answer): "));
}

TEST_F(SubmitJobTest, SlurmIsToldTheNotice) {
  const SlurmJobs slurm({});
  EXPECT_THAT(ScriptOfJob(slurm, Order(), id_, "", 0).value(), HasSubstr("#SBATCH --signal=B:USR1@130\n"));
  EXPECT_THAT(ScriptOfJob(slurm, Order(), id_, "", 8).value(), HasSubstr("#SBATCH --signal=B:USR1@46\n"));
  EXPECT_THAT(ScriptOfJob(slurm, Order({{"time", "2"}}), id_, "", 8).value(), HasSubstr("#SBATCH --signal=B:USR1@40\n"))
      << "a third of its time";
  EXPECT_THAT(ScriptOfJob(slurm, Order({{"signal", "B:USR2@300"}}), id_, "", 8).value(),
              HasSubstr("#SBATCH --signal=B:USR2@300\n"))
      << "the user's own";
}

TEST_F(SubmitJobTest, APathThatIsNoTextIsRefusedWhereTheScriptIsJson) {
  const std::string odd = "/a/kn\xf6pfe";
  HostSetting ray, spark, pods, slurm;
  ray.ray.emplace();
  spark.spark.emplace();
  pods.kubernetes.emplace();
  slurm.slurm.emplace();
  for (const HostSetting& setting : {ray, spark, pods}) {
    EXPECT_TRUE(CheckPathsOfJob(setting, "/h/k\u00f6ln", "/p", "/m").ok());
    EXPECT_TRUE(absl::IsInvalidArgument(CheckPathsOfJob(setting, odd, "/p", "/m")));
    EXPECT_THAT(std::string(CheckPathsOfJob(setting, odd, "/p", "/m").message()), HasSubstr("MUSTER_HOME is "));
    EXPECT_THAT(std::string(CheckPathsOfJob(setting, "/h", odd, "/m").message()),
                AllOf(HasSubstr("the project's folder is "), HasSubstr(odd)));
    EXPECT_THAT(std::string(CheckPathsOfJob(setting, "/h", "/p", odd).message()), HasSubstr("this program is "));
  }
  EXPECT_TRUE(CheckPathsOfJob(slurm, odd, odd, odd).ok());
  EXPECT_TRUE(CheckPathsOfJob({}, odd, odd, odd).ok());
  JobsOrder order = Order();
  order.experiment.options.hosts = ray;
  order.muster = odd;
  EXPECT_TRUE(absl::IsInvalidArgument(ScriptOfJob(engine_, order, id_, "", 0).status()));
}

}  // namespace
}  // namespace muster::submit_job_test
