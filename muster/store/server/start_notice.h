// Logs that a ps waits for the chief to bring the model, and which tasks have joined so far: after 10 s, and again as
// WaitNotices, until there is a model. Lives on the ps's loop.
#pragma once

#include "absl/time/time.h"
#include "muster/base/wait_notices.h"
#include "muster/store/service/store_service.h"

namespace muster {

class StartNotice {
 public:
  explicit StartNotice(absl::Time now) : notices_(now, absl::Seconds(10)) {}

  // When to call Check again; in the infinite future once there has been a model.
  absl::Time next() const { return over_ ? absl::InfiniteFuture() : notices_.next(); }
  void Check(absl::Time now, const StoreView& view);

 private:
  WaitNotices notices_;
  bool over_ = false;
};

}  // namespace muster
