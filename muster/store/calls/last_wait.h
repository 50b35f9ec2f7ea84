// A wait for ps after a stop was requested. Work under way is finished even then, so that the ps are left with whole
// updates and the chief with its checkpoint; but not with a ps that is gone, for which a worker otherwise waits as long
// as its patience lasts. So a silent ps must answer a question within StoreClientOptions::stop_patience, unless bytes
// move on its channel, where the question may have to queue. Used by the client's thread.
#pragma once

#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "absl/time/time.h"

namespace muster {

class PsCalls;

// A Cancelled error: a stop was requested, and this ps was gone while the last work was being finished.
absl::Status InterruptedError(const absl::Status& why);
bool IsInterrupted(const absl::Status& status);

class LastWait {
 public:
  // `silent`: the ps whose answers are still due. Both must outlive it.
  LastWait(PsCalls& ps_calls, absl::FunctionRef<std::vector<int>()> silent) : ps_calls_(ps_calls), silent_(silent) {}

  // As EventLoop::RunUntil. InterruptedError: a stop was requested, and a silent ps doesn't answer a question.
  absl::StatusOr<bool> RunUntil(absl::FunctionRef<bool()> settled, absl::Time deadline);

 private:
  // Returns early when `settled`.
  [[nodiscard]] absl::Status Ask(absl::FunctionRef<bool()> settled);

  PsCalls& ps_calls_;
  const absl::FunctionRef<std::vector<int>()> silent_;
  bool said_ = false;
};

}  // namespace muster
