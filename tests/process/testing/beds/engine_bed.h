// What the tests for every engine need to run on one of them: its hosts, how the experiment file says so, and that
// nothing is left there. Beds last as long as the suite, and those of ssh, of commands and of Slurm share their hosts.
// Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "tests/process/testing/simulated_hosts.h"

namespace muster {

class EngineBed {
 public:
  // What a muster.yml says of where it runs.
  struct Place {
    std::vector<std::string> hosts;
    // Pods take all with them when they end. If this is stated, what later experiments need is on a volume below it.
    std::string kept = "";
  };

  virtual ~EngineBed() = default;

  virtual SimulatedHosts& hosts() = 0;
  // Returns a folder of the next test for its home and its project; "": one that no host sees.
  virtual std::string NewFolder() { return ""; }
  // Returns a folder that the tasks see, too, at the same path.
  virtual std::string shared() { return hosts().shared(); }
  // Makes what the hosts need before each test.
  virtual void Begin() {}
  // Returns the words that run `words` on h0. `index`: a file for MUSTER_INDEX where a supervisor elsewhere has
  // another.
  virtual std::vector<std::string> OnH0(const std::vector<std::string>& words, const std::string& index);
  // Returns lines of muster.yml.
  virtual std::string Lines(const Place& place) = 0;
  // Waits until nothing of a test is left on any host.
  virtual void AwaitNothingLeft();
  // Returns the hosts of tasks that the submitter needn't reach.
  virtual std::vector<std::string> HiddenFromH0() { return {}; }
};

// Returns why an engine can't be used here, or with its command at another place (OtherPlaces); "" where it must work.
std::string WhyNoBed(const std::string& place);
// Returns the bed of an engine or other place, which is made for the first who asks; null for "local".
EngineBed* BedOf(const std::string& place);
// Ends all of them.
void EndBeds();

}  // namespace muster
