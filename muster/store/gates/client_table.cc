#include "muster/store/gates/client_table.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text/one_line.h"

namespace muster {
namespace {

constexpr size_t kMostOfWhere = 200;  // of the words by which a client says where it runs

std::string Described(const ClientTable::Client& client) {
  return client.task + (client.incarnation == 0 ? " (never joined)" : "");
}

std::string TaskNames(const std::vector<ClientTable::Client>& clients) {
  return absl::StrJoin(clients, ", ", [](std::string* out, const ClientTable::Client& c) { out->append(c.task); });
}

}  // namespace

ClientTable::ClientTable(std::vector<std::string> tasks, LeaseOptions options) : options_(options) {
  for (std::string& task : tasks) clients_.emplace_back().task = std::move(task);
}

absl::Time ClientTable::DeadAt(const Client& client) const {
  return DeadAt(client, client.on_this_host ? absl::ZeroDuration() : options_.disconnect_grace);
}

absl::Time ClientTable::DeadAt(const Client& client, absl::Duration disconnect_grace) const {
  if (client.incarnation == 0) return absl::InfinitePast();
  absl::Time dead_at = std::min(client.last_heard, client.deaf_since) + options_.lease;
  if (client.connections.empty()) dead_at = std::min(dead_at, client.disconnected_at + disconnect_grace);
  return std::max(dead_at, client.spared_until);
}

absl::Time ClientTable::GoneAt(const Client& client) const {
  return client.excluded.empty() ? DeadAt(client, options_.disconnect_grace) : absl::InfinitePast();
}

absl::StatusOr<int> ClientTable::Join(const JoinRequest& request, ConnectionId connection, absl::Time now) {
  const auto row =
      std::find_if(clients_.begin(), clients_.end(), [&](const Client& c) { return c.task == request.task; });
  if (row == clients_.end())
    return absl::NotFoundError(absl::StrCat("task ", request.task,
                                            " is not a worker of this cluster, whose workers are ", TaskNames(clients_),
                                            "; start every task with the same cluster"));
  if (request.life > 0 && request.life < row->life)
    return absl::FailedPreconditionError(absl::StrCat(request.task, " was started again since (", row->where,
                                                      "): this process, start ", request.life, " of ", row->life,
                                                      ", has been replaced"));
  if (row->incarnation != request.incarnation) {
    // A launcher that can't reach a process's host replaces it without knowing whether it lives.
    const bool replaces = row->life > 0 && request.life > row->life;
    // Here a closed connection counts as a death: the kernel closes a dead process's sockets at once.
    if (!replaces && Alive(*row, now) && !row->connections.empty() && !row->done)
      return absl::AlreadyExistsError(absl::StrCat(request.task, " is already running (", row->where,
                                                   "), last heard of ", absl::FormatDuration(now - row->last_heard),
                                                   " ago; give each process its own task index"));
    row->incarnation = request.incarnation;
    row->where = OneLine(request.where, kMostOfWhere);
    row->connections.clear();
    row->done = false;
    row->waiting_for.clear();
    row->heard = row->steps = 0;
    row->step = absl::ZeroDuration();
    row->busy.clear();
    row->spared_until = absl::InfinitePast();
  }
  row->life = std::max(row->life, request.life);
  row->excluded.clear();
  row->answered_at = row->deaf_since = absl::InfiniteFuture();
  row->on_this_host = on_this_host_.contains(connection);
  row->last_heard = last_heard_of_anyone_ = now;
  row->connections.insert(connection);
  return static_cast<int>(row - clients_.begin());
}

void ClientTable::Restore(int client, uint64_t incarnation, std::string where, bool done, absl::Time now) {
  Client& row = clients_[client];
  row.incarnation = incarnation;
  row.where = std::move(where);
  row.done = done;
  row.last_heard = last_heard_of_anyone_ = now;
}

void ClientTable::RestoreChief(int client, uint64_t epoch, uint64_t incarnation) {
  chief_ = client;
  chief_epoch_ = epoch;
  chief_incarnation_ = incarnation;
  if (chief_done()) chief_done_at_ = clients_[client].last_heard;
}

absl::StatusOr<uint64_t> ClientTable::ClaimChief(int client, absl::Time now) {
  if (chief_ >= 0 && chief_ != client && Alive(clients_[chief_], now) && !clients_[chief_].done)
    return absl::FailedPreconditionError(absl::StrCat(
        clients_[client].task, " says it is the chief, but ", clients_[chief_].task, " (", clients_[chief_].where,
        ") is the chief and alive; only one session may be created with is_chief = true"));
  const uint64_t incarnation = clients_[client].incarnation;
  if (chief_ == client && chief_incarnation_ == incarnation && !clients_[client].done) return chief_epoch_;
  chief_ = client;
  chief_incarnation_ = incarnation;
  chief_done_at_ = absl::InfiniteFuture();
  return ++chief_epoch_;
}

absl::Status ClientTable::Hear(const Stamp& stamp, ConnectionId connection, absl::Time now) {
  if (stamp.client >= clients_.size() || clients_[stamp.client].incarnation == 0)
    return absl::AbortedError("this ps does not know the sender: it was restarted and has lost the model");
  Client& client = clients_[stamp.client];
  if (client.incarnation != stamp.incarnation)
    return absl::FailedPreconditionError(
        absl::StrCat(client.task, " was replaced by a newer process (", client.where, ")"));
  client.last_heard = last_heard_of_anyone_ = now;
  if (client.connections.insert(connection).second) client.on_this_host = on_this_host_.contains(connection);
  return absl::OkStatus();
}

void ClientTable::TakeBeat(const HeartbeatRequest& message, absl::Time now) {
  Client& client = clients_[message.stamp.client];
  if (message.beat == 0) return;
  if (message.heard > client.heard || client.answered_at == absl::InfiniteFuture()) {
    client.answered_at = now;
    client.deaf_since = absl::InfiniteFuture();
  } else {
    client.deaf_since = client.answered_at;
  }
  client.heard = std::max(client.heard, message.heard);
  client.steps = message.steps;
  client.step = absl::Nanoseconds(message.step_nanos);
  client.busy = message.busy;
}

absl::Duration ClientTable::OnTurn(absl::Time now) {
  // Longer than the handlers of a loop that isn't stopped keep a timer waiting.
  constexpr absl::Duration kLate = absl::Milliseconds(200);
  if (now <= planned_ + kLate) return absl::ZeroDuration();
  for (Client& client : clients_)
    if (DeadAt(client) >= planned_) client.spared_until = now + kReadFirst;
  return now - std::exchange(planned_, absl::InfiniteFuture());
}

absl::Status ClientTable::CheckChief(const Stamp& stamp, uint64_t epoch) const {
  if (chief_ == static_cast<int>(stamp.client) && epoch == chief_epoch_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(
      clients_[stamp.client].task, " is not the chief any more: ", chief_ >= 0 ? clients_[chief_].task : "nobody",
      " holds the lease (epoch ", chief_epoch_, ")"));
}

void ClientTable::Disconnect(ConnectionId connection, absl::Time now) {
  on_this_host_.erase(connection);
  for (Client& client : clients_)
    if (client.connections.erase(connection) > 0 && client.connections.empty()) client.disconnected_at = now;
}

void ClientTable::SetDone(int client, absl::Time now) {
  clients_[client].done = true;
  if (client == chief_) chief_done_at_ = std::min(chief_done_at_, now);
}

bool ClientTable::Gone(const Client& client, absl::Time now) const {
  if (client.done) return true;
  if (client.incarnation == 0) return now >= chief_done_at_ + options_.late_join_grace;
  return now >= GoneAt(client);
}

ClientTable::Phase ClientTable::PhaseAt(absl::Time now) const {
  if (chief_done()) {
    const bool all_gone = std::all_of(clients_.begin(), clients_.end(), [&](const Client& c) { return Gone(c, now); });
    return all_gone ? Phase::kEnded : Phase::kTraining;
  }
  const bool someone_alive =
      std::any_of(clients_.begin(), clients_.end(), [&](const Client& c) { return Present(c, now); });
  const bool nobody_came = last_heard_of_anyone_ == absl::InfinitePast();
  if (someone_alive || nobody_came || now < last_heard_of_anyone_ + options_.abandoned_after) return Phase::kTraining;
  return Phase::kAbandoned;
}

absl::Time ClientTable::NextChange(absl::Time now) const {
  if (!chief_done()) return std::max(now + options_.lease, last_heard_of_anyone_ + options_.abandoned_after);
  absl::Time next = absl::InfiniteFuture();
  for (const Client& client : clients_) {
    if (Gone(client, now)) continue;
    next = std::min(next, client.incarnation == 0 ? chief_done_at_ + options_.late_join_grace : GoneAt(client));
  }
  return next;
}

absl::Time ClientTable::NextDeath(absl::Time now) const {
  absl::Time next = absl::InfiniteFuture();
  for (const Client& client : clients_)
    if (Present(client, now)) next = std::min(next, DeadAt(client));
  return next;
}

absl::Time ClientTable::LastLeaves(absl::Time now) const {
  absl::Time last = absl::InfinitePast();
  for (const Client& client : clients_)
    if (Present(client, now)) last = std::max(last, DeadAt(client));
  return last;
}

std::vector<std::string> ClientTable::WaitedFor(absl::Time now) const {
  std::vector<std::string> names;
  for (const Client& client : clients_)
    if (!Gone(client, now)) names.push_back(Described(client));
  return names;
}

std::vector<std::string> ClientTable::NotDone() const {
  std::vector<std::string> names;
  for (const Client& client : clients_)
    if (!client.done) names.push_back(Described(client));
  return names;
}

}  // namespace muster
