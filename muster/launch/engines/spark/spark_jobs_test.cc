#include "muster/launch/engines/spark/spark_jobs.h"

#include <fcntl.h>
#include <gmock/gmock.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::spark_jobs_test {
namespace {

using ::testing::AllOf, ::testing::ElementsAre, ::testing::EndsWith, ::testing::HasSubstr;

std::string ThisHost() {
  std::array<char, 256> name{};
  return gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "";
}

// A process that waits for its end, in the place of a job's driver; its words have the script.
class PlayedDriver {
 public:
  explicit PlayedDriver(const std::string& script, bool ignores_sigterm = false) {
    int held[2], ready[2];
    EXPECT_EQ(pipe2(held, O_CLOEXEC), 0);
    EXPECT_EQ(pipe2(ready, O_CLOEXEC), 0);
    pid_ = fork();
    if (pid_ == 0) {
      if (ignores_sigterm) signal(SIGTERM, SIG_IGN);
      dup2(held[0], STDIN_FILENO);
      dup2(ready[1], STDOUT_FILENO);
      execl("/bin/sh", "sh", "-c", "echo ready; read -r line", script.c_str(), nullptr);
      _exit(127);
    }
    close(held[0]);
    close(ready[1]);
    held_ = Socket(held[1]);
    char word[6];
    EXPECT_EQ(read(ready[0], word, sizeof word), static_cast<ssize_t>(sizeof word));
    close(ready[0]);
  }
  ~PlayedDriver() {
    if (pid_ <= 0) return;
    kill(pid_, SIGKILL);
    waitpid(pid_, nullptr, 0);
  }
  PlayedDriver(const PlayedDriver&) = delete;
  PlayedDriver& operator=(const PlayedDriver&) = delete;

  std::string id(const std::string& host = ThisHost()) const {
    return absl::StrCat(host, "-", pid_, "-", IdentifyProcess(pid_)->start);
  }
  // Waits for its end, and returns the signal that has ended it.
  int Ending() {
    int status = 0;
    waitpid(pid_, &status, 0);
    pid_ = 0;
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
  }
  // It has ended, and nobody has waited for it.
  void BecomeZombie() const {
    kill(pid_, SIGKILL);
    siginfo_t info{};
    EXPECT_EQ(waitid(P_PID, static_cast<id_t>(pid_), &info, WEXITED | WNOWAIT), 0);
  }

 private:
  pid_t pid_ = 0;
  Socket held_;  // the end of a pipe at its stdin
};

class SparkJobsTest : public ::testing::Test {
 protected:
  // The python is a script that the test writes; $1 is the program that it would run.
  void Python(const std::string& script) const {
    scratch_.Write("python", absl::StrCat("#!/bin/sh\necho \"$@\" >>", scratch_ / "words", "\n", script, "\n"));
    chmod((scratch_ / "python").c_str(), 0700);
  }
  SparkJobs Jobs(const std::string& address = "spark://h1:7077",
                 const std::vector<std::string>& environment = {"PATH=/usr/bin:/bin"}) const {
    return SparkJobs(absl::StrCat(address, " ", scratch_ / "python"), environment);
  }
  std::string WhyNot() const { return std::string(Jobs().Submit(scratch_ / "job.sh", "").status().message()); }

  const ScratchFolder scratch_;
};

TEST_F(SparkJobsTest, TheProgramStartsTheScriptWithTheDriverBesideIt) {
  Python("grep -q spark_client.py $1 && echo '{\"id\": \"h1-7-8\"}'");
  EXPECT_EQ(*Jobs().Submit(scratch_ / "job.sh", ""), "h1-7-8");
  EXPECT_EQ(*Jobs("-").Submit(scratch_ / "job.sh", "h1-1-2:h1-3-4"), "h1-7-8");
  EXPECT_THAT(scratch_.Read("words"),
              AllOf(HasSubstr(absl::StrCat(" submit spark://h1:7077 ", scratch_ / "job.sh", "\n")),
                    HasSubstr(absl::StrCat(" submit - ", scratch_ / "job.sh", " h1-1-2:h1-3-4\n"))));
  EXPECT_THAT(scratch_.Read("driver/spark_cluster.py"), HasSubstr("barrier()"));
  for (const char* file : {"driver_server", "host_process", "spark_client", "spark_driver", "spark_jvm", "spark_links",
                           "spark_task", "spark_texts", "spark_wire"})
    EXPECT_TRUE(scratch_.Has(absl::StrCat("driver/", file, ".py"))) << file;
}

TEST_F(SparkJobsTest, EachErrorSaysWhatToDo) {
  Python("echo '{\"error\": \"no_spark\", \"text\": \"python has no pyspark\"}'; exit 1");
  EXPECT_THAT(WhyNot(), AllOf(HasSubstr("has no pyspark: pip install pyspark there"), EndsWith("or set SPARK_HOME")));
  Python("echo '{\"error\": \"no_java\", \"text\": \"there is no java in PATH\"}'; exit 1");
  EXPECT_THAT(WhyNot(), HasSubstr("Spark needs Java: install a JRE, or set JAVA_HOME (there is no java in PATH)"));
  Python("echo '{\"error\": \"unreachable\", \"text\": \"refused\"}'; exit 1");
  EXPECT_THAT(WhyNot(), HasSubstr("no master of Spark answers at spark://h1:7077 (refused); accepted: its address"));
  EXPECT_TRUE(absl::IsNotFound(Jobs().Submit(scratch_ / "job.sh", "").status())) << "nothing was started";
  Python("echo '{\"error\": \"refused\", \"text\": \"no address\"}'; exit 1");
  EXPECT_TRUE(absl::IsInvalidArgument(Jobs().Submit(scratch_ / "job.sh", "").status()));
  Python("echo oops >&2; exit 3");
  EXPECT_THAT(WhyNot(), HasSubstr("exited with 3: oops"));
  unlink((scratch_ / "python").c_str());
  EXPECT_TRUE(absl::IsNotFound(Jobs().Submit(scratch_ / "job.sh", "").status()));
}

TEST_F(SparkJobsTest, ADryRunSaysWhichSparkItIs) {
  Python("echo '{\"spark\": \"4.0.1\", \"java\": \"/usr/bin/java\"}'");
  EXPECT_THAT(*Jobs().WouldTake(""), AllOf(HasSubstr("version 4.0.1 of "), HasSubstr("spark://h1:7077 has as many")));
}

TEST_F(SparkJobsTest, TheProgramGetsNoSecretOfMuster) {
  Python("echo \"{\\\"id\\\": \\\"${MUSTER_JOB_TOKEN:-0}${KEPT:-0}\\\"}\"");
  EXPECT_EQ(*Jobs("-", {"PATH=/usr/bin:/bin", "MUSTER_JOB_TOKEN=s", "KEPT=1"}).Submit(scratch_ / "job.sh", ""), "01");
}

TEST_F(SparkJobsTest, AJobRunsAsLongAsItsDriver) {
  const PlayedDriver driver(scratch_ / "job.sh");
  const std::string later = driver.id() + "0";
  const std::string elsewhere = driver.id("another-host");
  auto news = Jobs().Look({driver.id(), later, elsewhere, "nothing"}).value();
  EXPECT_EQ(news.at(driver.id()).phase, JobPhase::kRuns);
  EXPECT_EQ(news.at(later).phase, JobPhase::kEnded) << "another process has its number";
  EXPECT_THAT(news.at(later).text, HasSubstr("its driver has ended, spark.log says more"));
  EXPECT_EQ(news.at(elsewhere).phase, JobPhase::kUnknown);
  EXPECT_EQ(news.at("nothing").phase, JobPhase::kEnded);
  const std::string id = driver.id();
  driver.BecomeZombie();
  EXPECT_EQ(Jobs().Look({id})->at(id).phase, JobPhase::kEnded);
}

TEST_F(SparkJobsTest, TheDriverIsAskedToEnd) {
  PlayedDriver driver(scratch_ / "job.sh");
  EXPECT_EQ(Jobs().End(driver.id(), JobEnd::kAsk), absl::OkStatus());
  EXPECT_EQ(driver.Ending(), SIGTERM);
}

TEST_F(SparkJobsTest, ADriverThatDoesntEndIsKilledWhenItIsCancelled) {
  PlayedDriver driver(scratch_ / "job.sh", /*ignores_sigterm=*/true);
  EXPECT_EQ(Jobs().End(driver.id(), JobEnd::kCancel), absl::OkStatus());
  EXPECT_EQ(driver.Ending(), SIGKILL);
}

TEST_F(SparkJobsTest, OnlyItsOwnHostEndsADriver) {
  const PlayedDriver driver(scratch_ / "job.sh");
  EXPECT_THAT(std::string(Jobs().End(driver.id("h7"), JobEnd::kCancel).message()), HasSubstr(" of h7: ask there"));
  EXPECT_EQ(Jobs().End(driver.id() + "0", JobEnd::kCancel), absl::OkStatus()) << "it has ended";
  EXPECT_EQ(Jobs().Look({driver.id()})->at(driver.id()).phase, JobPhase::kRuns);
}

// Another job's end may leave a place that this one doesn't know of.
TEST_F(SparkJobsTest, AJobThatWaitsForOthersIsFreedByAFile) {
  const PlayedDriver driver(scratch_ / "job.sh");
  EXPECT_EQ(Jobs().Free(driver.id()), absl::OkStatus());
  EXPECT_TRUE(scratch_.Has(absl::StrCat("job_free.", driver.id())));
  const PlayedDriver another("something else");
  EXPECT_TRUE(absl::IsUnavailable(Jobs().Free(another.id())));
}

TEST_F(SparkJobsTest, OwnJobIsWhatItsDriverSays) {
  const auto own =
      Jobs("-", {"MUSTER_DRIVER_JOB=h1-7-8", "MUSTER_DRIVER_SOCKET=@s", "MUSTER_DRIVER_HOSTS=h1=10.0.0.1,h2=10.0.0.2"})
          .Own();
  ASSERT_TRUE(own.ok()) << own.status();
  EXPECT_EQ(own->id, "h1-7-8");
  EXPECT_THAT(own->hosts, ElementsAre("h1", "h2"));
  EXPECT_TRUE(absl::IsNotFound(Jobs().Own().status()));
}

TEST_F(SparkJobsTest, ASignalIsACancellation) {
  HostSetting setting;
  setting.spark = SparkSetting{.nodes = 4};
  EXPECT_EQ(Jobs().TermsOf(setting).hosts, 4);
  EXPECT_TRUE(Jobs().TermsOf(setting).signal_cancels);
}

TEST(PlaceOfSparkTest, IsWhatTheSettingSaysOrTheDriver) {
  EXPECT_EQ(PlaceOfSpark({}), "- python3");
  EXPECT_EQ(PlaceOfSpark({.address = "yarn", .python = "/p"}), "yarn /p");
  EXPECT_EQ(SparkJobs("", {"MUSTER_DRIVER_JOB=j", "MUSTER_DRIVER_AT=yarn /q"}).at(), "yarn /q");
}

TEST(SparkDriverIdTest, HasAHostWhoseNameMayHaveDashes) {
  const auto id = SparkDriverId::Parse("a-host-7-81");
  ASSERT_TRUE(id.has_value());
  EXPECT_EQ(id->host, "a-host");
  EXPECT_EQ(id->process, (ProcessIdentity{.pid = 7, .start = 81}));
  for (const char* text : {"", "-", "7-81", "a-7", "a-x-81", "a-7-x", "a-0-8", "a--7"})
    EXPECT_FALSE(SparkDriverId::Parse(text).has_value()) << text;
}

}  // namespace
}  // namespace muster::spark_jobs_test
