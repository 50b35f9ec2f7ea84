#include "muster/train/hooks/feed_fn.h"

#include <utility>

#include "muster/base/status_macros.h"

namespace muster {
namespace {

class FeedFnHook final : public SessionHook {
 public:
  explicit FeedFnHook(FeedFunction feed_fn) : feed_fn_(std::move(feed_fn)) {}

  absl::Status BeforeRun(RunContext& context) override {
    for (auto& [name, value] : feed_fn_()) RETURN_IF_ERROR(context.Feed(name, std::move(value)));
    return absl::OkStatus();
  }

 private:
  const FeedFunction feed_fn_;
};

}  // namespace

std::shared_ptr<SessionHook> FeedFn(FeedFunction feed_fn) { return std::make_shared<FeedFnHook>(std::move(feed_fn)); }

}  // namespace muster
