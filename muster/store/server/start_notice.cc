#include "muster/store/server/start_notice.h"

#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"

namespace muster {
namespace {

std::string Joined(const ClientTable& clients) {
  std::vector<std::string> joined;
  for (int i = 0; i < static_cast<int>(clients.clients().size()); ++i)
    if (clients.clients()[i].incarnation != 0)
      joined.push_back(absl::StrCat(clients.clients()[i].task, i == clients.chief() ? " (the chief, " : " (",
                                    clients.clients()[i].where, ")"));
  if (joined.empty()) return "no task has joined";
  return absl::StrCat(absl::StrJoin(joined, ", "), joined.size() == 1 ? " has joined" : " have joined");
}

}  // namespace

void StartNotice::Check(absl::Time now, const StoreView& view) {
  over_ = over_ || view.arena != nullptr;
  if (over_ || !notices_.Due(now)) return;
  LogInfo(view.options->task, " waits ", notices_.Since(now),
          " for the chief to initialise the model: ", Joined(*view.clients));
}

}  // namespace muster
