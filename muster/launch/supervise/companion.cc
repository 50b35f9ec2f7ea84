#include "muster/launch/supervise/companion.h"

#include "absl/strings/str_cat.h"
#include "muster/base/clock.h"

namespace muster {
namespace {

constexpr absl::Duration kCompanionGrace = absl::Seconds(5);

}  // namespace

void Companion::Launch() {
  runs_ = true;
  backend_.Launch(process_);
}

void Companion::OnNotStarted(const absl::Status& why) {
  runs_ = false;
  say_(absl::StrCat(process_.task.ToString(), " could not be started: ", std::string(why.message()),
                    "; the run goes on without it"));
}

void Companion::OnExit(const ExitStatus& status, bool early) {
  runs_ = false;
  if (early) say_(absl::StrCat(process_.task.ToString(), " ", status.ToString(), "; the run goes on without it"));
}

void Companion::End(FdLoop& loop) {
  if (!runs_) return;
  backend_.End(process_.task, EndMode::kGently);
  const absl::Time deadline = RealClock().Now() + kCompanionGrace;
  while (runs_ && RealClock().Now() < deadline) loop.RunOnce(deadline);
}

}  // namespace muster
