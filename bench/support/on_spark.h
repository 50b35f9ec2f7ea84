// A real Spark on this machine, a local-cluster of two executors, for the benchmark of what an experiment there takes
// beyond an application of Spark's own. Used by one thread.
#pragma once

#include <string>
#include <vector>

#include "absl/status/statusor.h"
#include "bench/support/on_engine.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster::bench {

inline constexpr int kExecutorsOfSpark = 2;

class OnSpark final : public OnEngine {
 public:
  // Returns why there is no Spark here; empty: there is.
  static std::string WhyNot();
  // `greeting`: what each task prints.
  explicit OnSpark(const std::string& greeting);
  OnSpark(const OnSpark&) = delete;
  OnSpark& operator=(const OnSpark&) = delete;

  int tasks() const override { return kExecutorsOfSpark; }
  // From before the fork of `spark-submit` until its program has had an answer of a barrier stage on each executor.
  absl::StatusOr<double> OfItself() const override;
  std::vector<std::string> Train(const std::string& muster) const override;
  EnvironmentChanges environment() const override;

 private:
  const ScratchFolder folder_;
};

}  // namespace muster::bench
