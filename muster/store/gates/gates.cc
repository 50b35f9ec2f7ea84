#include "muster/store/gates/gates.h"

#include <algorithm>
#include <utility>

#include "absl/status/status.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {
namespace {

// How often to look whether workers of the ps's host have fired a round that clients contributed to by message.
constexpr absl::Duration kRoundPoll = absl::Milliseconds(1);

}  // namespace

Gates::Gates(EventLoop& loop, ClientTable& clients, bool lead, ArenaProbe* probe, AnswerPush answer)
    : loop_(loop),
      clients_(clients),
      answer_(std::move(answer)),
      synchronous_(clients, lead, probe, answer_),
      stalls_(clients, probe),
      order_(clients),
      clock_(clients, order_, answer_),
      barriers_(clients),
      presence_(clients) {}

Gates::~Gates() {
  if (timer_) loop_.CancelTimer(*timer_);
}

void Gates::Attach(Arena& arena) {
  const absl::Status loaded = absl::AbortedError("other values were loaded: they have to be pulled again");
  synchronous_.FailAll(loaded);
  clock_.FailAll(loaded);
  order_.FailAll(loaded);
  arena_ = &arena;
  if (arena.model().gated()) {
    synchronous_.Attach(arena);
    stalls_.Attach(arena);
  }
  // Workers that fire their rounds themselves use what the ps last announced.
  synchronous_.Recheck(loop_.Now());
  if (arena.model().clock_limit > 0) clock_.Attach(arena);
  if (arena.model().ordered) order_.Attach(arena);
}

absl::Status Gates::Check(const StoreModel& model, const PushPullRequest& message) {
  if (message.contributes && !model.gated())
    return absl::InvalidArgumentError("the push contributes to a round, but the model has no synchronous gate");
  const bool updates = std::any_of(message.pushed.begin(), message.pushed.end(), [&model](uint32_t i) {
    return model.variable(model.slices[i]).kind == VariableKind::kTrainable;
  });
  if (model.gated() && !message.contributes && (updates || message.minibatches > 0))
    return absl::InvalidArgumentError("the model has a synchronous gate, but the push names no round");
  return absl::OkStatus();
}

void Gates::Contribute(ConnectionId connection, const PushPullRequest& message, ByteSpan bulk, Responder responder) {
  stalls_.OnPush(static_cast<int>(message.stamp.client));
  synchronous_.Contribute(connection, message, bulk, loop_.Now(), std::move(responder));
  order_.Recheck();
  CheckStalls();
  ScheduleCheck();
}

void Gates::AnswerApplied(ConnectionId connection, const PushPullRequest& message, const PushPullReply& reply,
                          Responder responder) {
  if (!clock_.attached() || message.clock == 0) {
    answer_(PullOf(message), reply, std::move(responder));
  } else {
    clock_.Answer(connection, message, reply, loop_.Now(), std::move(responder));
    ScheduleCheck();
  }
  order_.Recheck();
}

void Gates::OnBarrier(ConnectionId connection, const BarrierRequest& message, Responder responder) {
  barriers_.Arrive(connection, message, loop_.Now(), std::move(responder));
  ScheduleCheck();
}

void Gates::OnAwaitTurn(ConnectionId connection, const AwaitTurnRequest& message, Responder responder) {
  if (synchronous_.attached()) synchronous_.CatchUp(message.local_step, loop_.Now());
  order_.Ask(connection, message, loop_.Now(), std::move(responder));
  clock_.Recheck(loop_.Now());  // nobody waits for the clock of a client that leaves
  ScheduleCheck();
}

void Gates::HoldFrom(uint64_t round) {
  synchronous_.HoldFrom(round);
  synchronous_.Recheck(loop_.Now());
  order_.Recheck();
}

void Gates::HoldHere() { synchronous_.HoldHere(); }

void Gates::Resume() {
  synchronous_.Resume();
  synchronous_.Recheck(loop_.Now());
  order_.Recheck();
}

void Gates::Replace(int client, uint64_t incarnation) {
  order_.Replace(static_cast<uint32_t>(client), incarnation);
  barriers_.Replace(static_cast<uint32_t>(client), incarnation);
}

void Gates::Join(int client) {
  if (clock_.attached()) clock_.Join(client, loop_.Now());
}

void Gates::Disconnect(ConnectionId connection) {
  synchronous_.Disconnect(connection);
  clock_.Disconnect(connection);
  order_.Disconnect(connection);
  barriers_.Disconnect(connection);
}

void Gates::OnTurn() {
  const absl::Duration late = clients_.OnTurn(loop_.Now());
  if (late > absl::ZeroDuration()) stalls_.Forgive(late);
}

// A worker that writes in the arena itself, and of which nobody hears, may be stopped or cut off for long: others go on
// without it, and when it is back it must join before it writes.
void Gates::FenceTheLost(absl::Time now) {
  if (arena_ == nullptr) return;
  for (size_t i = 0; i < clients_.clients().size(); ++i) {
    const ClientTable::Client& client = clients_.clients()[i];
    uint64_t& fenced = arena_->client(static_cast<int>(i)).fenced;
    if (client.incarnation != 0 && !client.done && fenced == 0 && clients_.Lost(client, now))
      Publish<uint64_t>(fenced, 1);
  }
}

void Gates::CheckStalls() {
  if (!synchronous_.attached()) return;
  const absl::Time now = loop_.Now();
  if (stalls_.Recheck(now, synchronous_.held_back())) synchronous_.Recheck(now);
}

void Gates::Recheck() {
  OnTurn();
  const absl::Time now = loop_.Now();
  FenceTheLost(now);
  synchronous_.Recheck(now);
  CheckStalls();
  clock_.Recheck(now);
  order_.Recheck();
  barriers_.Recheck(now);
  presence_.Recheck(now, [&] { return synchronous_.Effect(now); });
  ScheduleCheck();
}

// No message announces that a lease runs out.
void Gates::ScheduleCheck() {
  if (timer_) loop_.CancelTimer(*timer_);
  timer_.reset();
  // Wakes for every death until training has ended; nobody waits for anybody after that.
  absl::Time next = std::min(presence_.NextCheck(loop_.Now()), stalls_.NextCheck());
  clients_.Plan(next);
  if (synchronous_.waiting() && synchronous_.divided()) next = std::min(next, loop_.Now() + kRoundPoll);
  if (next == absl::InfiniteFuture()) return;
  timer_ = loop_.CallAt(next, [this] {
    timer_.reset();
    Recheck();
  });
}

void Gates::FailAll(const absl::Status& status) {
  synchronous_.FailAll(status);
  clock_.FailAll(status);
  order_.FailAll(status);
  barriers_.FailAll(status);
  presence_.End();
}

std::vector<WaitingFor> Gates::Describe() const {
  std::vector<WaitingFor> waiting(clients_.clients().size());
  const absl::Time now = loop_.Now();
  synchronous_.Describe(now, waiting);
  clock_.Describe(now, waiting);
  order_.Describe(waiting);
  barriers_.Describe(waiting);
  return waiting;
}

}  // namespace muster
