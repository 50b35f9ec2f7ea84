// Tests how a task's flags and environment say how it is watched.
#include <gmock/gmock.h>

#include "absl/strings/str_cat.h"
#include "muster/cluster/identity/task_config.h"

namespace muster::task_watching_test {
namespace {

using ::testing::HasSubstr;

absl::StatusOr<TaskConfig> Config(std::vector<std::string> arguments, const Environment& environment = {}) {
  return TaskConfig::FromArguments(arguments, environment);
}

const std::vector<std::string> kWorker = {"--ps_hosts=h:1", "--worker_hosts=h:2", "--job_name=worker", "--task_index=0",
                                          "--trace=run.json"};

TEST(TaskWatchingTest, APartIsNamedAfterItsTaskUnlessTheProcessIsAlone) {
  EXPECT_EQ(Config(kWorker)->trace_part(), "run.json.worker-0");
  EXPECT_EQ(Config({"--trace=run.json"})->trace_part(), "run.json");
  EXPECT_EQ(Config({})->trace_part(), "");
  std::vector<std::string> evaluator = kWorker;
  evaluator.push_back("--job_name=evaluator");
  EXPECT_EQ(Config(evaluator)->trace_part(), "run.json.evaluator-0");
}

TEST(TaskWatchingTest, FlagsWinOverTheEnvironment) {
  const Environment environment = {.trace = "other.json", .status_port = "9100"};
  EXPECT_EQ(Config({}, environment)->trace_part(), "other.json");
  EXPECT_EQ(Config({}, environment)->status_address()->port, 9100);
  EXPECT_EQ(Config({"--trace=a", "--status_port=0.0.0.0:1"}, environment)->trace_part(), "a");
  EXPECT_EQ(*Config({"--status_port=0.0.0.0:1"}, environment)->status_address(), (StatusAddress{"0.0.0.0", 1}));
  EXPECT_EQ(Config({}, {.trace = "", .status_port = ""})->status_address(), std::nullopt);
}

TEST(TaskWatchingTest, APortThatIsNoneIsRefusedByName) {
  const auto config = Config({"--status_port=many"});
  EXPECT_TRUE(absl::IsInvalidArgument(config.status()));
  EXPECT_THAT(config.status().message(), HasSubstr("--status_port: 'many'"));
}

TEST(TaskWatchingTest, AStallLimitIsANumberOfSecondsFromZero) {
  EXPECT_EQ(Config({})->stall_limit(), std::nullopt);
  EXPECT_EQ(Config({"--stall_limit=2.5"})->stall_limit(), absl::Milliseconds(2500));
  EXPECT_EQ(Config({"--stall_limit=0"})->stall_limit(), absl::ZeroDuration());
  for (const char* wrong : {"-1", "never", "inf", "nan"}) {
    const auto config = Config({absl::StrCat("--stall_limit=", wrong)});
    EXPECT_TRUE(absl::IsInvalidArgument(config.status())) << wrong;
    EXPECT_THAT(config.status().message(), HasSubstr(absl::StrCat("--stall_limit: \"", wrong, "\"")));
  }
}

TEST(TaskWatchingTest, ALauncherSaysHowATaskBeginsAndEnds) {
  EXPECT_EQ(Config({})->join_timeout(), std::nullopt);
  EXPECT_EQ(Config({})->linger(), std::nullopt);
  EXPECT_FALSE(Config({})->leaves_on_signal());
  const Environment environment = {.join_timeout = "1800", .linger = "600", .on_signal = "leave"};
  EXPECT_EQ(Config({}, environment)->join_timeout(), absl::Minutes(30));
  EXPECT_EQ(Config({}, environment)->linger(), absl::Minutes(10));
  EXPECT_TRUE(Config({}, environment)->leaves_on_signal());
  EXPECT_EQ(Config({"--join_timeout=5"}, environment)->join_timeout(), absl::Seconds(5));
  EXPECT_EQ(Config({"--linger=0.5"}, environment)->linger(), absl::Milliseconds(500));
  EXPECT_FALSE(Config({"--on_signal=end"}, environment)->leaves_on_signal());
  EXPECT_THAT(Config({"--join_timeout=soon"}).status().message(), HasSubstr("--join_timeout: \"soon\""));
  EXPECT_THAT(Config({"--linger=-1"}).status().message(), HasSubstr("--linger: \"-1\""));
  EXPECT_THAT(Config({"--on_signal=stay"}).status().message(), HasSubstr("\"stay\"; accepted: end, leave"));
}

TEST(TaskWatchingDeathTest, AProgramWithoutFlagsOfItsOwnRefusesOthersAndShowsWhatThereIs) {
  const auto run = [](std::string word) {
    std::string program = "train";
    char* argv[] = {program.data(), word.data(), nullptr};
    int argc = 2;
    TaskConfig::FromWholeCommandLine(argc, argv);
    std::exit(7);
  };
  EXPECT_EXIT(run("--lr=1"), ::testing::ExitedWithCode(2), "unknown argument \"--lr=1\"");
  EXPECT_EXIT(run("--help"), ::testing::ExitedWithCode(0), "");
  EXPECT_EXIT(run("--trace=x"), ::testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace muster::task_watching_test
