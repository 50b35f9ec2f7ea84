// A fixture for tests of experiments that are jobs of an engine on simulated hosts: what these tests write, wait for
// and kill. Its clusters are those of its children.
#pragma once

#include <string>
#include <vector>

#include "tests/process/testing/experiments.h"
#include "tests/process/testing/simulated_hosts.h"

namespace muster {

class JobExperiments : public ExperimentsTest {
 protected:
  using ExperimentsTest::ExperimentsTest;

  // Writes a file in which each task runs `script`, which has no "'".
  void WriteCluster(const std::string& distributed, const std::string& script);
  // Returns the id of the experiment's job, as the engine calls it.
  std::string JobOf(const std::string& id);
  // Waits until `status ID` shows this.
  void AwaitStatus(const std::string& id, const std::string& text);
  // Waits until the supervisor of experiment 1 has left what another one needs to go on with its tasks, which it does a
  // moment after their first lines and the state RUNNING.
  void AwaitHandover();
  // Waits until so many supervisors of experiment 1 have gone on with the tasks of one that was killed.
  void AwaitTakeOvers(int count);
};

// Kills what runs on a host and has `text` among its words, but none of the words `spared`. Returns how many processes
// that are.
int KillProcessesOn(const SimulatedHosts& hosts, const std::string& host, const std::string& text,
                    const std::vector<std::string>& spared = {});

}  // namespace muster
