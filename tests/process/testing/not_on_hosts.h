// What experiments on hosts don't have, in the words of docs/clusters.md: all that the tests for every engine leave
// out. A cell that can't hold on an engine is a row of the page and a line here, or none.
#pragma once

#include <gtest/gtest.h>

#include <map>
#include <string>

namespace muster {

enum class NotOnHosts { kFrameworkVersion, kStepsInMonitor, kTensorboardWhileItRuns, kGpusOfRunsAtATime };

// By the first column of the page's table, in its order.
inline const std::map<NotOnHosts, std::string>& RowsOfNotOnHosts() {
  static const std::map<NotOnHosts, std::string> rows = {
      {NotOnHosts::kFrameworkVersion, "`version` of a framework"},
      {NotOnHosts::kStepsInMonitor, "steps, loss and staleness in `muster monitor`, status pages"},
      {NotOnHosts::kTensorboardWhileItRuns, "TensorBoard and `results` while it runs"},
      {NotOnHosts::kGpusOfRunsAtATime, "GPUs with `concurrency` above 1"}};
  return rows;
}

// Returns the engines of a suite about that, for INSTANTIATE_TEST_SUITE_P.
inline auto EnginesWith(NotOnHosts) { return ::testing::Values("local"); }

}  // namespace muster
