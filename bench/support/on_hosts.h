// The way of a benchmark on simulated hosts, which are those of the tests, from its options to its exit code.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <exception>
#include <string>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/base/status_macros.h"

namespace muster::bench {

// Measures with a Bench, which has Measure() and Report(). Returns 0; 1 if a goal is missed or the measurement fails,
// which is said on stderr. `why_not`: why there can be no such hosts here; then nothing is measured.
template <typename Bench, typename Options>
int MeasureOnHosts(const std::string& name, const std::string& why_not, const Options& options) {
  if (!why_not.empty()) {
    std::fprintf(stderr, "SKIPPED: %s\n", why_not.c_str());
    return 0;
  }
  // What the hosts check of themselves is an exception here: this is no test.
  GTEST_FLAG_SET(throw_on_failure, true);
  const auto measure = [&options]() -> absl::StatusOr<bool> {
    try {
      Bench bench(options);
      RETURN_IF_ERROR(bench.Measure());
      return bench.Report();
    } catch (const std::exception& failure) {
      return absl::InternalError(failure.what());
    }
  };
  const absl::StatusOr<bool> met = measure();
  if (met.ok()) return *met ? 0 : 1;
  std::fprintf(stderr, "bench %s: %s\n", name.c_str(), std::string(met.status().message()).c_str());
  return 1;
}

}  // namespace muster::bench
