#include "muster/store/calls/gate_wait_notice.h"

#include <nlohmann/json.hpp>

#include "muster/base/log.h"
#include "muster/store/calls/ps_calls.h"

namespace muster {
namespace {

constexpr absl::Duration kBeforeFirst = absl::Seconds(10);

// Returns what `task` waits for according to ps 0's status; empty if that says nothing.
std::string WhomFor(const std::string& status, const std::string& task) {
  const nlohmann::json page = nlohmann::json::parse(status, nullptr, /*allow_exceptions=*/false);
  if (!page.is_object() || !page.contains("clients")) return "";
  for (const nlohmann::json& client : page.at("clients"))
    if (client.is_object() && client.value("task", "") == task) return client.value("waiting_for", "");
  return "";
}

}  // namespace

GateWaitNotice::GateWaitNotice(PsCalls& ps_calls, const std::string& task, absl::Time now)
    : ps_calls_(ps_calls), task_(task), notices_(now, kBeforeFirst) {}

GateWaitNotice::~GateWaitNotice() {
  if (said_ && ps_calls_.options().track != nullptr) ps_calls_.options().track->SetWaitingFor("");
}

void GateWaitNotice::Check(absl::Time now) {
  if (!notices_.Due(now)) return;
  const auto status = ps_calls_.Status(0);
  const std::string whom = status.ok() ? WhomFor(*status, task_) : "";
  if (whom.empty()) return;
  said_ = true;
  LogInfo(task_, " waits ", notices_.Since(now), " for ", whom);
  if (ps_calls_.options().track != nullptr) ps_calls_.options().track->SetWaitingFor(whom);
}

}  // namespace muster
