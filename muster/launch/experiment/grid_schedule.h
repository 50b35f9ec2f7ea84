// Decides which runs of a grid start when: a fixed number at a time, in order, until all have ended or the grid is
// stopped. A state machine that starts runs through a function, so tests need no processes. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <set>
#include <string>
#include <vector>

#include "muster/launch/registry/run_state.h"

namespace muster {

class GridSchedule {
 public:
  // Starts one run. Returns RUNNING if it runs; PENDING if it couldn't be started now, and the next Fill tries again;
  // or the state in which it ended at once, which ends only this run.
  using Start = std::function<RunState(int run)>;

  // `runs`: those to start. `finished`: how many others an earlier attempt has finished. `concurrency` >= 1.
  GridSchedule(const std::vector<int>& runs, int finished, int concurrency, Start start);

  // Starts as many runs as may run.
  void Fill();
  // Must be called when a started run has ended. Fill starts the next.
  void OnEnd(int run, RunState state);
  // Starts no more runs. Returns those that will never start.
  std::vector<int> Stop();

  const std::set<int>& running() const { return running_; }
  bool done() const { return running_.empty() && waiting_.empty(); }
  // Returns, once done, the state of the whole grid: FINISHED if all runs are, KILLED if it was stopped, otherwise
  // FAILED.
  RunState state() const;
  // "2 of 9 runs failed"; empty if all have finished.
  std::string reason() const;

 private:
  void Count(RunState end);

  // Constant after construction.
  const size_t runs_;
  const size_t concurrency_;
  const Start start_;

  std::deque<int> waiting_;
  std::set<int> running_;
  size_t finished_ = 0, failed_ = 0, killed_ = 0;
  bool stopped_ = false;
};

}  // namespace muster
