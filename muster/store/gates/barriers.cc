#include "muster/store/gates/barriers.h"

#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/status_macros.h"

namespace muster {

absl::Status Barriers::Check(const BarrierRequest& message) const {
  const size_t tasks = clients_.clients().size();
  if (message.parties == 0 || (message.parties > tasks && !message.elastic))
    return absl::InvalidArgumentError(absl::StrCat("barrier '", message.name, "' asks for ", message.parties,
                                                   " parties; the cluster has ", tasks, " workers, give 1 to ", tasks));
  const auto barrier = barriers_.find(message.name);
  if (barrier == barriers_.end()) return absl::OkStatus();
  if (barrier->second.parties != message.parties || barrier->second.elastic != message.elastic)
    return absl::InvalidArgumentError(absl::StrCat(
        "barrier '", message.name, "' asks for ", message.parties, message.elastic ? " parties (elastic)" : " parties",
        ", but the first to arrive asked for ", barrier->second.parties, barrier->second.elastic ? " (elastic)" : ""));
  return absl::OkStatus();
}

void Barriers::Arrive(ConnectionId connection, const BarrierRequest& message, absl::Time now, Responder responder) {
  const auto passed = passed_.find(message.stamp.client);
  // Its answer was lost.
  if (passed != passed_.end() && passed->second.incarnation == message.stamp.incarnation &&
      message.stamp.sequence <= passed->second.sequence)
    return responder.Send({});
  if (absl::Status status = Check(message); !status.ok()) return responder.Fail(std::move(status));
  Barrier& barrier = barriers_[message.name];
  barrier.parties = message.parties;
  barrier.elastic = message.elastic;
  barrier.arrivals[message.stamp.client].push_back({connection, now, message.stamp, std::move(responder)});
  Recheck(now);
}

bool Barriers::Complete(const Barrier& barrier, absl::Time now) const {
  if (barrier.arrivals.size() >= barrier.parties) return true;
  if (!barrier.elastic) return false;
  for (size_t i = 0; i < clients_.clients().size(); ++i)
    if (clients_.Present(clients_.clients()[i], now) && !barrier.arrivals.contains(static_cast<uint32_t>(i)))
      return false;
  return true;
}

void Barriers::Recheck(absl::Time now) {
  for (auto barrier = barriers_.begin(); barrier != barriers_.end();) {
    if (!barrier->second.arrivals.empty() && !Complete(barrier->second, now)) {
      ++barrier;
      continue;
    }
    for (auto& [client, arrivals] : barrier->second.arrivals) {
      for (Arrival& arrival : arrivals) {
        Stamp& passed = passed_[client];
        if (passed.incarnation != arrival.stamp.incarnation || passed.sequence < arrival.stamp.sequence)
          passed = arrival.stamp;
        arrival.responder.Send({});
      }
    }
    barrier = barriers_.erase(barrier);
  }
}

void Barriers::Erase(absl::FunctionRef<bool(uint32_t client, Arrival& arrival)> gone) {
  for (auto& [name, barrier] : barriers_) {
    for (auto& [client, arrivals] : barrier.arrivals)
      std::erase_if(arrivals, [&, client = client](Arrival& arrival) { return gone(client, arrival); });
    std::erase_if(barrier.arrivals, [](const auto& of_client) { return of_client.second.empty(); });
  }
  std::erase_if(barriers_, [](const auto& barrier) { return barrier.second.arrivals.empty(); });
}

void Barriers::Replace(uint32_t client, uint64_t incarnation) {
  Erase([&](uint32_t other, Arrival& arrival) {
    if (other != client || arrival.stamp.incarnation == incarnation) return false;
    arrival.responder.Fail(absl::FailedPreconditionError(
        absl::StrCat(clients_.clients()[client].task, " was replaced by a newer process")));
    return true;
  });
}

void Barriers::Disconnect(ConnectionId connection) {
  Erase([connection](uint32_t, Arrival& arrival) { return arrival.connection == connection; });
}

void Barriers::FailAll(const absl::Status& status) {
  for (auto& [name, barrier] : std::exchange(barriers_, {}))
    for (auto& [client, arrivals] : barrier.arrivals)
      for (Arrival& arrival : arrivals) arrival.responder.Fail(status);
}

void Barriers::Describe(std::vector<WaitingFor>& waiting) const {
  for (const auto& [name, barrier] : barriers_) {
    std::vector<std::string> missing;
    for (size_t i = 0; i < clients_.clients().size(); ++i)
      if (!barrier.arrivals.contains(static_cast<uint32_t>(i)) && !clients_.clients()[i].done)
        missing.push_back(clients_.clients()[i].task);
    for (const auto& [client, arrivals] : barrier.arrivals)
      waiting[client] = {absl::StrCat("barrier '", name, "', at which ", barrier.arrivals.size(), " of ",
                                      barrier.parties, " are; not there: ", absl::StrJoin(missing, ", ")),
                         arrivals.front().since};
  }
}

}  // namespace muster
