// A fixture for tests of `muster train` and its companions: a MUSTER_HOME and a project's folder of their own, in which
// the command runs. Nothing may be left behind: it kills experiments that still run when the fixture ends, and fails
// the test if there are any, or if any process has this MUSTER_HOME in its environment.
#pragma once

#include <gtest/gtest.h>

#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/muster_command.h"

namespace muster {

class ExperimentsTest : public ::testing::Test {
 protected:
  // `base`: an absolute folder for the home and the project, made if it is missing; "": one of its own.
  explicit ExperimentsTest(const std::string& base = "");
  ~ExperimentsTest() override;

  // Runs `muster ARGUMENTS` in the project's folder to its end (as long as Process waits).
  Said Muster(const std::vector<std::string>& arguments);
  // The same, but it must end with 0 and print nothing on stderr except where its supervisor is
  // and how the experiment ended. Returns its stdout.
  std::string Out(const std::vector<std::string>& arguments);
  // Returns what `--json` prints.
  nlohmann::json Json(std::vector<std::string> arguments);
  // Expects that `muster ARGUMENTS` ends with 2 and prints nothing but a message under its name. Returns the message.
  std::string Mistake(const std::vector<std::string>& arguments);
  // Returns the state of an experiment or run ("FINISHED"), and its tasks as `status --json` shows them, by id.
  std::string StateOf(const std::string& id);
  nlohmann::json TasksOf(const std::string& id);
  // Kills the supervisor of a running experiment, or of a run of a grid.
  void KillSupervisor(const std::string& id);
  // `muster ARGUMENTS` without waiting for its end: for Ctrl-C, and for two commands at once.
  std::unique_ptr<Process> StartMuster(const std::vector<std::string>& arguments);
  // Writes a file of the project.
  void Write(const std::string& path, const std::string& text);
  // Writes muster.yml: project toy, framework any, and these lines of its section `train`.
  void WriteExperiment(const std::string& train);
  // Trains a model of 160 MB whose ps may have 100 MB, as muster.yml states, and which must fail before training.
  Said TrainALargerModelThanItsPsMayHave();
  // Writes a shell script into a folder beside the project, and returns the folder: for PATH.
  std::string WriteProgram(const std::string& name, const std::string& script) const;
  std::string Read(const std::string& path) const;  // a file (below MUSTER_HOME if relative); "" if there is none
  // Waits until the experiment has ended, by watching its lock and then its state; fails after a minute.
  void AwaitEnd(const std::string& id);

  const std::string& home() const { return home_; }
  const std::string& project() const { return project_; }
  // Returns a path beside both, which tasks see, too: what a test writes there isn't part of the project.
  virtual std::string Aside(const std::string& name) const { return base_ + "/" + name; }
  // Returns the words that run `muster ARGUMENTS`.
  virtual std::vector<std::string> Command(const std::vector<std::string>& arguments) const;
  // What commands run with: the home, the folder, environment_.
  ProcessOptions Options() const;
  // What every muster.yml or riseml.yml has besides, in lines.
  virtual std::string MoreOfFile() const { return ""; }
  std::vector<std::string> environment_;  // "NAME=VALUE", besides MUSTER_HOME

 private:
  void ExpectNothingLeft() const;

  const ScratchFolder scratch_;
  const std::string base_, home_, project_;
};

// A FIFO at which scripts wait (`read line < FIFO`) until the test lets them through.
class ScriptGate {
 public:
  explicit ScriptGate(const std::string& path);
  ~ScriptGate();
  ScriptGate(const ScriptGate&) = delete;
  ScriptGate& operator=(const ScriptGate&) = delete;

  const std::string& path() const { return path_; }
  // Lets `count` of them through, now or whenever they come.
  void LetThrough(int count = 1) const;

 private:
  const std::string path_;
  const int fd_;
};

// Returns what `muster train` has shown of a task (`name` is "1.worker.2"), without its id; for a state "--> RUNNING".
// A state without a time is a failure.
std::vector<std::string> LinesOf(const std::string& shown, const std::string& name);
// Reads until there are that many whole lines.
void AwaitLines(Process& train, const std::string& name, size_t count);
// Returns only its states: "RUNNING".
std::vector<std::string> StatesOf(const std::string& shown, const std::string& name);

}  // namespace muster
