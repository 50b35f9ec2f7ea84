// Which runs of a grid are started when: so many at a time, in their order, until all have ended or there shall be no
// more. A state machine; it starts through a function, so tests need no processes. Not thread-safe.
#pragma once

#include <deque>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "muster/launch/registry/run_state.h"

namespace muster {

class GridSchedule {
 public:
  // Starts one. Nothing: it runs; otherwise what it has ended with at once, which is the end of this run alone.
  using Start = std::function<std::optional<RunState>(int run)>;

  // `runs`: those to be started. `concurrency` >= 1.
  GridSchedule(const std::vector<int>& runs, int concurrency, Start start);

  // Starts as many as may run.
  void Fill();
  // A started one has ended. Fill starts the next.
  void OnEnd(int run, RunState state);
  // Starts none any more. Returns those that now never will be.
  std::vector<int> Stop();

  const std::set<int>& running() const { return running_; }
  bool done() const { return running_.empty() && waiting_.empty(); }
  // Of the whole grid, once done: FINISHED if all are, KILLED if it was stopped, else FAILED.
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
