// `./dev demo` at reduced size: its output for scripts, and that it fails when it should.
#include <gmock/gmock.h>
#include <sys/wait.h>

#include <cstdio>
#include <string>

#include "muster/base/testing/built_at.h"

namespace muster::demo_test {
namespace {

struct Outcome {
  int exit_code = -1;
  std::string last_line;
};

Outcome RunDemo(const std::string& arguments) {
  const std::string command =
      "MUSTER_BIN_DIR=" + BinFolder() + " python3 " + SourceFolder() + "/tools/demo.py " + arguments + " 2>/dev/null";
  FILE* pipe = popen(command.c_str(), "r");
  Outcome outcome;
  char line[4096];
  while (std::fgets(line, sizeof line, pipe) != nullptr) outcome.last_line = line;
  const int status = pclose(pipe);
  outcome.exit_code = WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  return outcome;
}

TEST(Demo, EndsWithTheLineForScripts) {
  const Outcome outcome = RunDemo("--steps 400 --min_accuracy 0.9 --max_seconds 1000");
  EXPECT_EQ(outcome.exit_code, 0);
  EXPECT_THAT(outcome.last_line, testing::MatchesRegex("demo: accuracy=(0\\.9[0-9]*|1\\.0+) global_steps=[0-9]+ "
                                                       "steps_per_second=[0-9.]+ processes=5 leftover=0\n"));
}

TEST(Demo, FailsBelowTheAccuracyAskedFor) {
  EXPECT_EQ(RunDemo("--steps 20 --min_accuracy 1.1 --max_seconds 1000").exit_code, 1);
}

}  // namespace
}  // namespace muster::demo_test
