// A run of toy_worker under `muster run` whose processes a test kills with SIGKILL, and what its last checkpoint says.
// Every update adds one to every element, so that each element says how many are in it. Used by one thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster {

// The program and the flags that make every update add one.
std::vector<std::string> ToyThatCounts();

// What the last checkpoint of a directory says.
struct FinalValues {
  int64_t global_step = 0;
  std::string work;  // the work queue's state, a WorkState; empty: nothing was shared out
  std::vector<float> w;
  std::vector<float> b = std::vector<float>(2);
};
FinalValues ReadFinal(const std::string& directory, int64_t width);

// Some ps and workers, the first of which is the chief; the launcher starts everybody again. Training goes on until
// it is interrupted, so however fast it is, it isn't over before the last death.
class KilledRun {
 public:
  // `width`: elements of `w`, which lies on ps 0; `b` lies on ps 1, if there are two.
  KilledRun(int workers, int64_t width, const std::vector<std::string>& flags, int ps = 2);

  // Waits until the chief has gone on, kills the task, and waits until it has been started again.
  void Kill(const std::string& task);
  // Waits until the chief has gone on, and interrupts all. The exit code of the launcher.
  int End();
  const std::string& log() const { return run_.err; }
  FinalValues ReadFinal() const { return muster::ReadFinal(model_.path(), width_); }

 private:
  // Until the chief has logged some more.
  void WaitForSteps();
  // Of its newest life; -1, and a failure: there is none.
  pid_t PidOf(const std::string& task);

  ScratchDirectory model_;
  const int64_t width_;
  Process run_;
};

}  // namespace muster
