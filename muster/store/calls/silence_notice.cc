#include "muster/store/calls/silence_notice.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/store/calls/ps_calls.h"

namespace muster {
namespace {

// The session has said already that it waits for the chief.
constexpr absl::Duration kBeforeFirstOfChief = absl::Seconds(10);
constexpr absl::Duration kQuestionPatience = absl::Seconds(2);
constexpr size_t kMostNamed = 8;

absl::Duration BeforeFirst(const std::vector<StoreCall>& calls) {
  return !calls.empty() && calls[0].method == StoreMethod::kAwaitReady ? kBeforeFirstOfChief : kSilenceBeforeNotice;
}

std::string ChiefIn(const std::string& status) {
  const nlohmann::json page = nlohmann::json::parse(status, nullptr, /*allow_exceptions=*/false);
  if (!page.is_object() || !page.contains("chief") || !page.contains("clients")) return "";
  const std::string chief = page.at("chief").value("task", "");
  if (chief.empty()) return "no task has joined as the chief";
  for (const nlohmann::json& client : page.at("clients"))
    if (client.value("task", "") == chief)
      return absl::StrCat(chief, " is the chief (", client.value("where", ""), "), ", client.value("state", ""));
  return "";
}

}  // namespace

SilenceNotice::SilenceNotice(PsCalls& ps_calls, const std::vector<StoreCall>& calls, absl::Time deadline)
    : ps_calls_(ps_calls), calls_(calls), deadline_(deadline), notices_(ps_calls.loop().Now(), BeforeFirst(calls)) {}

void SilenceNotice::Check() {
  const absl::Time now = ps_calls_.loop().Now();
  if (!notices_.Due(now)) return;
  const std::string whom = Whom();
  if (whom.empty()) return;
  std::string left;
  if (deadline_ != absl::InfiniteFuture())
    left = absl::FormatDuration(std::max(absl::Ceil(deadline_ - now, absl::Seconds(1)), absl::Seconds(1)));
  LogInfo("waiting ", notices_.Since(now), " for ", whom, left.empty() ? "" : "; giving up in ", left);
}

std::string SilenceNotice::Whom() const {
  std::vector<std::string> whom;
  std::vector<int> without_model;
  for (const StoreCall& call : calls_) {
    if (!call.in_flight) continue;
    const std::string trouble = ps_calls_.Trouble(call.ps);
    if (!trouble.empty()) {
      whom.push_back(absl::StrCat(ps_calls_.Name(call.ps), ": ", trouble));
    } else if (call.method == StoreMethod::kAwaitReady) {
      without_model.push_back(call.ps);
    } else {
      whom.push_back(absl::StrCat(ps_calls_.Name(call.ps), ": it is connected and doesn't answer"));
    }
  }
  if (whom.empty() && !without_model.empty())
    whom.push_back(absl::StrCat("the chief to bring ", ps_calls_.Name(without_model[0]), " the model",
                                ChiefAccordingTo(without_model[0])));
  if (whom.size() > kMostNamed) {
    const size_t more = whom.size() - kMostNamed;
    whom.resize(kMostNamed);
    whom.push_back(absl::StrCat(more, " more"));
  }
  return absl::StrJoin(whom, "; ");
}

std::string SilenceNotice::ChiefAccordingTo(int ps) const {
  StoreCall question{.ps = ps, .method = StoreMethod::kStatus};
  if (!ps_calls_.ExchangeOne(question, kQuestionPatience, /*stoppable=*/true).ok()) return "";
  const std::string chief = ChiefIn(question.answer->control);
  return chief.empty() ? "" : absl::StrCat(": ", chief);
}

}  // namespace muster
