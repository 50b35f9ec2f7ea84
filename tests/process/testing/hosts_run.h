// A fixture for tests of `muster run` over simulated hosts: new hosts for each test, and a folder that all of them see,
// in which the command runs and its tasks, too. Nothing may be left behind: it fails the test if in the end anything
// but sshd runs on a host or an agent's folder is there.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/process/testing/left_behind.h"
#include "tests/process/testing/process.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

class HostsRunTest : public ::testing::Test {
 protected:
  // The least that is accepted: how long tasks go on without their supervisor.
  static constexpr char kGrace[] = "10";

  explicit HostsRunTest(int hosts = 2) : count_(hosts) {}
  void SetUp() override;  // h1, h2, …
  void TearDown() override;

  SimulatedHosts& hosts() { return *hosts_; }
  // A path that all hosts see.
  std::string Shared(const std::string& name) const { return hosts_->shared() + "/" + name; }
  // Starts `muster run FLAGS -- PROGRAM` on h0, over h1 and h2 unless the flags name hosts, and
  // with kGrace unless they have another.
  std::unique_ptr<Process> Run(const std::vector<std::string>& flags, const std::vector<std::string>& program);
  // Starts training that never ends by itself, whose updates all add one: one ps on h1, and two workers, the chief on
  // h1. Waits until both hosts have made progress.
  std::unique_ptr<Process> Train();
  // Waits until the chief has logged more steps.
  static void AwaitSteps(Process& run, const std::string& worker = "0");
  // Interrupts training, which must end as it does on one machine: with 0 and without a failure.
  static void EndTraining(Process& run);
  // Returns the process of a task's newest life: its number on its host, which `run` has said.
  static std::string PidOf(const Process& run, const std::string& task);
  // Set for every run, in addition.
  std::vector<std::pair<std::string, std::string>> environment_;
  // An agent that has ended because nobody answered it leaves its log to those who look for what happened.
  void AllowAgentFolders() { allows_agent_folders_ = true; }

 private:
  const LeftBehind left_behind_;
  const int count_;
  std::unique_ptr<SimulatedHosts> hosts_;
  bool allows_agent_folders_ = false;
};

}  // namespace muster
