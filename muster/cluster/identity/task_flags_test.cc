#include "muster/cluster/identity/task_flags.h"

#include <gmock/gmock.h>

namespace muster::task_flags_test {
namespace {

using ::testing::ElementsAre, ::testing::HasSubstr;

TEST(TaskFlags, AreTakenInBothFormsAndTheOthersStay) {
  std::vector<std::string> arguments = {"--ps_hosts=a:1,b:1", "train",      "--task_index", "-1",
                                        "--lr=0.1",           "--job_name", "worker",       "-v",
                                        "--chief_hosts=",     "--",         "--model_dir=x"};
  const auto flags = TakeTaskFlags(arguments).value();
  EXPECT_EQ(flags.ps_hosts, "a:1,b:1");
  EXPECT_EQ(flags.task_index, "-1");
  EXPECT_EQ(flags.job_name, "worker");
  EXPECT_EQ(flags.chief_hosts, std::nullopt);  // an empty list counts as no flag
  EXPECT_EQ(flags.model_dir, std::nullopt);    // after "--"
  EXPECT_THAT(arguments, ElementsAre("train", "--lr=0.1", "-v", "--", "--model_dir=x"));
}

TEST(TaskFlags, TheLastOfTwoCounts) {
  std::vector<std::string> arguments = {"--job_name=ps", "--job_name=worker"};
  EXPECT_EQ(TakeTaskFlags(arguments)->job_name, "worker");
}

TEST(TaskFlags, AFlagNeedsAValue) {
  for (std::vector<std::string> arguments :
       {std::vector<std::string>{"--job_name"}, {"--job_name", "--task_index=0"}}) {
    const std::vector<std::string> before = arguments;
    const auto flags = TakeTaskFlags(arguments);
    EXPECT_THAT(std::string(flags.status().message()), HasSubstr("--job_name has no value; accepted"));
    EXPECT_EQ(arguments, before);
  }
}

TEST(TaskFlags, AnEmptyNumberOrChoiceIsAMistake) {
  for (const char* flag :
       {"job_name", "task_index", "device", "status_port", "stall_limit", "join_timeout", "linger", "on_signal"}) {
    std::vector<std::string> arguments = {std::string("--") + flag + "="};
    EXPECT_THAT(std::string(TakeTaskFlags(arguments).status().message()),
                HasSubstr(std::string("--") + flag + " has no value; accepted: "));
  }
  std::vector<std::string> none = {"--ps_hosts=", "--worker_hosts=", "--chief_hosts=", "--model_dir=", "--trace="};
  EXPECT_EQ(TakeTaskFlags(none)->model_dir, std::nullopt);
  EXPECT_TRUE(none.empty());
}

TEST(TaskFlags, AreTakenOutOfMainsArguments) {
  std::string words[] = {"program", "--job_name", "ps", "--lr=1", "ps", "--task_index=0"};
  char* argv[] = {words[0].data(), words[1].data(), words[2].data(), words[3].data(),
                  words[4].data(), words[5].data(), nullptr};
  int argc = 6;
  const auto flags = TakeTaskFlags(argc, argv).value();
  EXPECT_EQ(flags.job_name, "ps");
  ASSERT_EQ(argc, 3);
  EXPECT_STREQ(argv[0], "program");
  EXPECT_STREQ(argv[1], "--lr=1");
  EXPECT_EQ(argv[2], words[4].data());
  EXPECT_EQ(argv[3], nullptr);
}

TEST(TaskFlags, ASimilarFlagIsTheProgramsOwn) {
  std::vector<std::string> arguments = {"--ps_host=a:1", "--ps_hosts_file=x", "-job_name=ps", "--"};
  const std::vector<std::string> before = arguments;
  ASSERT_TRUE(TakeTaskFlags(arguments).ok());
  EXPECT_EQ(arguments, before);
}

TEST(TaskFlags, HelpNamesEveryFlag) {
  for (const char* flag :
       {"--ps_hosts", "--worker_hosts", "--chief_hosts", "--job_name", "--task_index", "--model_dir", "--trace",
        "--status_port", "--device", "--stall_limit", "--join_timeout", "--linger", "--on_signal"}) {
    EXPECT_THAT(TaskFlagsHelp(), HasSubstr(flag));
  }
}

}  // namespace
}  // namespace muster::task_flags_test
