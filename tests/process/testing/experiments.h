// For tests of `muster train` and its companions: a MUSTER_HOME and a project's folder of their own, the command run in
// them, and nothing left behind: whatever experiments still go on when the fixture ends are killed, and that is a
// failure unless the test says it expects it, as is any process that has this MUSTER_HOME in its environment.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster {

class ExperimentsTest : public ::testing::Test {
 protected:
  ExperimentsTest();
  ~ExperimentsTest() override;

  struct Said {
    int exit_code = -1;  // 128 + N if signal N ended it
    std::string out, err;
  };
  // `muster ARGUMENTS` in the project's folder, to its end (as long as Process waits).
  Said Muster(const std::vector<std::string>& arguments);
  // The same, which must end with 0 and say nothing on stderr but how the experiment ended: its stdout.
  std::string Out(const std::vector<std::string>& arguments);
  // What `--json` prints.
  nlohmann::json Json(std::vector<std::string> arguments);
  // The same, without waiting for its end: for Ctrl-C, and two at once.
  std::unique_ptr<Process> StartMuster(const std::vector<std::string>& arguments);
  // A file of the project.
  void Write(const std::string& path, const std::string& text);
  // muster.yml: project toy, framework any, and these lines of its section `train`.
  void WriteExperiment(const std::string& train);
  std::string Read(const std::string& path) const;  // of MUSTER_HOME; "" if there is none
  // Waits until the experiment has ended, by watching its lock; fails after a minute.
  void AwaitEnd(const std::string& id);
  // The experiments that go on at the end are meant to.
  void ExpectGoingOn() { expects_going_on_ = true; }

  const std::string& home() const { return home_; }
  const std::string& project() const { return project_; }
  // Beside both: what a test writes there is no part of the project.
  std::string Aside(const std::string& name) const { return scratch_.File(name); }
  std::vector<std::string> environment_;  // "NAME=VALUE", besides MUSTER_HOME

 private:
  ProcessOptions Options() const;
  void ExpectNothingLeft() const;

  const ScratchDirectory scratch_;
  const std::string home_, project_;
  bool expects_going_on_ = false;
};

// A FIFO at which scripts wait (`read line < FIFO`) until the test lets them through.
class ScriptGate {
 public:
  explicit ScriptGate(const std::string& path);
  ~ScriptGate();
  ScriptGate(const ScriptGate&) = delete;
  ScriptGate& operator=(const ScriptGate&) = delete;

  const std::string& path() const { return path_; }
  // For so many of them, now or whenever they come.
  void LetThrough(int count = 1) const;

 private:
  const std::string path_;
  const int fd_;
};

// What `muster train` has shown of a task, `name` being "1.worker.2", without its id; of a state "--> RUNNING". A line
// of state without a time is a failure.
std::vector<std::string> LinesOf(const std::string& shown, const std::string& name);
// Reads until there are so many of them, whole ones.
void AwaitLines(Process& train, const std::string& name, size_t count);
// Its states alone: "RUNNING".
std::vector<std::string> StatesOf(const std::string& shown, const std::string& name);

}  // namespace muster
