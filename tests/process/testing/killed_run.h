// A run of toy_worker under `muster run` whose processes a test kills with SIGKILL, and the content of its last
// checkpoint. Every update adds one to every element, so each element shows how many updates it has. Used by one
// thread.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/by_hand.h"
#include "tests/process/testing/process.h"

namespace muster {

// Returns the program and the flags that make every update add one.
std::vector<std::string> ToyThatCounts();

// The content of the last checkpoint in a directory.
struct FinalValues {
  int64_t global_step = 0;
  std::string work;  // the work queue's state, a WorkState; empty if there was no shared work
  std::vector<float> w;
  std::vector<float> b = std::vector<float>(2);
};
FinalValues ReadFinal(const std::string& directory, int64_t width);

// Some ps and workers, the first of which is the chief. The launcher restarts every killed process. Training goes on
// until it is interrupted, so it never ends before the last death, however fast it is.
class KilledRun {
 public:
  // `width` is the number of elements of `w`, on ps 0; `b` is on ps 1, if there are two.
  KilledRun(int workers, int64_t width, const std::vector<std::string>& flags, int ps = 2);

  // Waits until the chief has made progress, kills the task, and waits until it has been started again.
  void Kill(const std::string& task);
  // The same with SIGTERM, which a host that is shut down sends to all its processes; for a ps.
  void Terminate(const std::string& task);
  // Waits until the chief has made progress, and interrupts the run. Returns the exit code of the launcher.
  int End();
  const std::string& log() const { return run_.err; }
  FinalValues ReadFinal() const { return muster::ReadFinal(model_.path(), width_); }

 private:
  // Waits until the chief has logged more steps.
  void WaitForSteps();
  void EndAndAwaitNext(const std::string& task, int signal, const std::string& how_it_ends);
  // Returns the process of its newest life; -1, and a failure, if there is none.
  pid_t PidOf(const std::string& task);

  ScratchFolder model_;
  const int64_t width_;
  Process run_;
};

}  // namespace muster
