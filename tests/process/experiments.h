// For tests of `muster train` and its companions: a MUSTER_HOME and a project's folder of their own, the command run in
// them, and nothing left behind: whatever experiments still go on when the fixture ends are killed, and that is a
// failure unless the test says it expects it.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <vector>

#include "tests/process/process.h"

namespace muster {

class ExperimentsTest : public ::testing::Test {
 protected:
  ExperimentsTest();
  ~ExperimentsTest() override;

  struct Said {
    int exit_code = -1;  // 128 + N if signal N ended it
    std::string out, err;
  };
  // `muster ARGUMENTS` in the project's folder, to its end (a minute at most).
  Said Muster(const std::vector<std::string>& arguments);
  // The same, without waiting for its end: for Ctrl-C, and two at once.
  std::unique_ptr<Process> StartMuster(const std::vector<std::string>& arguments);
  // A file of the project.
  void Write(const std::string& path, const std::string& text);
  std::string Read(const std::string& path) const;  // of MUSTER_HOME; "" if there is none
  // Waits until the experiment has ended, by watching its lock; fails after a minute.
  void AwaitEnd(const std::string& id);

  const std::string& home() const { return home_; }
  const std::string& project() const { return project_; }
  std::vector<std::string> environment_;  // "NAME=VALUE", besides MUSTER_HOME

 private:
  std::string home_, project_;
};

}  // namespace muster
