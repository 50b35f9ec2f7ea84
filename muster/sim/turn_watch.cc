#include "muster/sim/turn_watch.h"

#include "absl/strings/str_cat.h"

namespace muster {

void TurnWatch::Note(const IncomingRequest& request) {
  AwaitTurnRequest turn;
  if (request.method == static_cast<uint16_t>(StoreMethod::kAwaitTurn) && Decode(request.control, turn).ok() &&
      turn.leaves)
    peers_.truth->left[ps_] |= uint64_t{1} << turn.stamp.client;
}

void TurnWatch::Verify() {
  const StoreService::View view = service_.MakeView();
  if (view.arena == nullptr || !view.arena->model().ordered || peers_.truth->memory_lost) return;
  const auto& clients = view.clients->clients();
  uint64_t& left = peers_.truth->left[ps_];
  for (size_t i = 0; i < clients.size(); ++i)
    if (clients[i].done) left |= uint64_t{1} << i;
  const auto clock = [&](size_t i) { return view.arena->client(static_cast<int>(i)).numbers.clock; };
  for (size_t later = 0; later < clients.size(); ++later)
    for (size_t first = 0; first < later; ++first) {
      if (((left >> first | left >> later) & 1) != 0) continue;
      if (clock(first) != clock(later) && clock(first) != clock(later) + 1)
        return peers_.violated(absl::StrCat("ps ", ps_, ": ", clients[first].task, " is at clock ", clock(first),
                                            " and ", clients[later].task, " at ", clock(later),
                                            ", which is not in turn"));
    }
}

}  // namespace muster
