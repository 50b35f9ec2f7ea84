#include "muster/store/gates/worker_order.h"

#include <algorithm>
#include <string>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"

namespace muster {

bool WorkerOrder::InRound(int client) const {
  return arena_->client(client).numbers.contributed == arena_->header().gate.round + 1;
}

bool WorkerOrder::Asks(int client) const {
  return std::any_of(questions_.begin(), questions_.end(),
                     [client](const Question& question) { return question.client() == client; });
}

bool WorkerOrder::Leaves(int client) const {
  return std::any_of(questions_.begin(), questions_.end(),
                     [client](const Question& question) { return question.leaves && question.client() == client; });
}

bool WorkerOrder::IsBefore(int other, const Question& question) const {
  const int client = question.client();
  if (other == client || clients_.clients()[other].done || Leaves(other)) return false;
  if (question.leaves) return true;
  if (!arena_->model().gated()) {
    if (ClockOf(client) == 0 && ClockOf(other) == 0 && !Asks(other)) return true;
    return ClockOf(other) < ClockOf(client) + (other < client ? 1 : 0);
  }
  // If the asker's earlier life is in the round here, the asker may be missing in another ps's round, where others wait
  // for it. Here it gets its turn, and is dropped.
  return other < client && !InRound(other) && !InRound(client);
}

bool WorkerOrder::IsAnswerable(const Question& question) const {
  for (int other = 0; other < static_cast<int>(clients_.clients().size()); ++other)
    if (IsBefore(other, question)) return false;
  return true;
}

void WorkerOrder::Ask(ConnectionId connection, const AwaitTurnRequest& message, absl::Time now, Responder responder) {
  const int client = static_cast<int>(message.stamp.client);
  // Its earlier life died when some ps had its push and this one hadn't: nobody sends that push again, so it is over,
  // and the others' turns go on as on those ps.
  if (!arena_->model().gated() && message.clock > ClockOf(client)) {
    Arena::Counted counted{client, arena_->client(client).numbers, arena_->header().counters, arena_->header().gate};
    counted.numbers.clock = message.clock;
    arena_->Count(counted);
  }
  questions_.push_back({connection, now, message.stamp, message.leaves, std::move(responder)});
  Recheck();
}

// All are judged before any is taken out: their questions show which workers leave, and which ask at all.
void WorkerOrder::Recheck() {
  std::vector<bool> answerable;
  for (const Question& question : questions_) answerable.push_back(IsAnswerable(question));
  std::vector<Question> all;
  all.swap(questions_);
  for (size_t i = 0; i < all.size(); ++i) {
    if (answerable[i]) {
      all[i].responder.Send(Encode(AwaitTurnReply{ClockOf(all[i].client())}));
    } else {
      questions_.push_back(std::move(all[i]));
    }
  }
}

void WorkerOrder::Replace(uint32_t client, uint64_t incarnation) {
  std::erase_if(questions_, [&](Question& question) {
    if (question.stamp.client != client || question.stamp.incarnation == incarnation) return false;
    question.responder.Fail(absl::FailedPreconditionError(
        absl::StrCat(clients_.clients()[client].task, " was replaced by a newer process")));
    return true;
  });
}

void WorkerOrder::Disconnect(ConnectionId connection) {
  std::erase_if(questions_, [connection](const Question& question) { return question.connection == connection; });
}

void WorkerOrder::FailAll(const absl::Status& status) {
  for (Question& question : std::exchange(questions_, {})) question.responder.Fail(status);
}

void WorkerOrder::Describe(std::vector<WaitingFor>& waiting) const {
  for (const Question& question : questions_) {
    std::vector<std::string> before;
    for (int other = 0; other < static_cast<int>(clients_.clients().size()); ++other)
      if (IsBefore(other, question))
        before.push_back(absl::StrCat(clients_.clients()[other].task,
                                      arena_->model().gated()
                                          ? absl::StrCat(" (not in round ", arena_->header().gate.round, ")")
                                          : absl::StrCat(" (at ", ClockOf(other), ")")));
    waiting[question.client()] = {absl::StrCat("its turn: ", absl::StrJoin(before, ", "),
                                               before.size() == 1 ? " is before it" : " are before it"),
                                  question.since};
  }
}

}  // namespace muster
