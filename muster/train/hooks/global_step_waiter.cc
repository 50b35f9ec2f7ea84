#include "muster/train/hooks/global_step_waiter.h"

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/client/store_client.h"
#include "muster/transport/event_loop.h"

namespace muster {
namespace {

constexpr absl::Duration kBetweenQuestions = absl::Milliseconds(500);
constexpr int64_t kStepsBetweenLines = 1000;
constexpr absl::Duration kBetweenLines = absl::Seconds(30);  // if the steps are slower
constexpr char kBarrierOfOne[] = "global_step_waiter";

class GlobalStepWaiterHook final : public SessionHook {
 public:
  explicit GlobalStepWaiterHook(int64_t wait_until_step) : wait_until_(wait_until_step) {}

  absl::Status BeforeRun(RunContext& context) override {
    if (begun_) return absl::OkStatus();
    if (wait_until_ > 0) RETURN_IF_ERROR(Wait(context.session()));
    begun_ = true;
    return absl::OkStatus();
  }

 private:
  absl::Status Wait(const SessionContext& session) const {
    LogInfo("Waiting for global step ", wait_until_, " before starting training.");
    int64_t last_logged = 0;
    absl::Time logged_at = session.loop->Now();
    for (;;) {
      // After training has ended the ps still answer reads, but no barrier opens any more.
      RETURN_IF_ERROR(session.client->Barrier(kBarrierOfOne, /*parties=*/1));
      ASSIGN_OR_RETURN(const int64_t step, session.client->ReadGlobalStep());
      if (step >= wait_until_) return absl::OkStatus();
      if (step - last_logged > kStepsBetweenLines || session.loop->Now() - logged_at >= kBetweenLines) {
        LogInfo("Waiting for global step ", wait_until_, " before starting training. Current step is ", step, ".");
        last_logged = step;
        logged_at = session.loop->Now();
      }
      if (session.loop->RunUntil(session.stop_requested, session.loop->Now() + kBetweenQuestions))
        return absl::CancelledError(
            absl::StrCat("stopped while waiting for global step ", wait_until_, " (it was ", step, ")"));
    }
  }

  const int64_t wait_until_;
  bool begun_ = false;
};

}  // namespace

std::shared_ptr<SessionHook> GlobalStepWaiter(int64_t wait_until_step) {
  return std::make_shared<GlobalStepWaiterHook>(wait_until_step);
}

}  // namespace muster
