#include "muster/store/checkpoints/cut_follower.h"

#include <algorithm>
#include <atomic>
#include <limits>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/store/arena/count_lock.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {

CutFollower::CutFollower(EventLoop& loop, const ClientTable& clients, Gates& gates, PartSaver& saver,
                         const Options& options, Handle handle)
    : loop_(loop),
      clients_(clients),
      gates_(gates),
      saver_(saver),
      options_(options),
      handle_(std::move(handle)),
      recovered_(clients.clients().size()),
      begun_(clients.clients().size()),
      settled_(clients.clients().size()),
      uncounted_(clients.clients().size()) {}

CutFollower::~CutFollower() {
  if (timer_) loop_.CancelTimer(*timer_);
  if (check_timer_) loop_.CancelTimer(*check_timer_);
}

void CutFollower::Recover(Arena& arena) {
  Publish<uint64_t>(arena.header().held, 0);
  // Pushes of rows aren't waited for: see docs/store/checkpoints.md.
  recovered_ = arena.HighestSequences(/*of_tables=*/false);
  for (size_t i = 0; i < recovered_.size(); ++i) {
    const int client = static_cast<int>(i);
    const ClientNumbers& numbers = arena.client(client).numbers;
    settled_[i] = arena.client(client).settled;
    if (options_.lead && numbers.last_applied > numbers.last_counted) uncounted_[i] = numbers.last_applied;
  }
}

void CutFollower::ForgetBegun(Arena& arena, int client, uint64_t highest) {
  settled_[client] = highest;
  arena.client(client).settled = settled_[client];
  Publish<uint64_t>(arena.client(client).direct_begun, 0);
}

uint64_t CutFollower::Begun(int client) const {
  const uint64_t begun = Newest(client);
  return begun > settled_[client] ? begun : 0;
}

uint64_t CutFollower::Newest(int client) const {
  ClientRecord& record = arena_->client(client);
  return std::max(
      {recovered_[client], begun_[client], Observe(record.numbers.last_applied), Observe(record.direct_begun)});
}

void CutFollower::LetIn(int client, uint64_t through) {
  through_[client] = through;
  Publish(arena_->client(client).held_through, through);
}

void CutFollower::HoldAll(std::shared_ptr<Arena> arena) {
  arena_ = std::move(arena);
  through_.assign(clients_.clients().size(), 0);
  // See DirectApply::Begin.
  Publish<uint64_t>(arena_->header().held, cut_off_ ? kHeldCutOff : kHeldForCut);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  counted_.clear();
  for (int i = 0; i < static_cast<int>(through_.size()); ++i) {
    counted_.push_back(Observe(arena_->client(i).numbers.last_counted));
    LetIn(i, GoesOn() ? std::numeric_limits<uint64_t>::max() : Newest(i));
  }
  if (!GoesOn() && arena_->model().gated()) gates_.HoldHere();
}

bool CutFollower::BeginCutOff(std::shared_ptr<Arena> arena) {
  if (ended_) return false;
  Release();
  cut_off_ = true;
  HoldAll(std::move(arena));
  return true;
}

void CutFollower::EndCutOff() {
  if (cut_off_) Release();
}

void CutFollower::Hold(const HoldRequest& request, std::shared_ptr<Arena> arena, Responder responder) {
  const HoldId id{request.stamp.incarnation, request.stamp.sequence};
  const bool again = arena_ != nullptr && id == newest_;
  if (cut_off_)
    return responder.Fail(absl::OutOfRangeError("it is cut off from the other hosts: cut the checkpoint again"));
  if (id.first == newest_.first && id.second <= newest_.second && !again)
    return responder.Fail(absl::OutOfRangeError("this hold has run out: cut the checkpoint again"));
  if (!again) {
    Release();
    saver_.Drop();  // a cut whose part nobody has requested
    if (!saver_.idle())
      return responder.Fail(absl::OutOfRangeError("the part of an earlier checkpoint is still being written"));
    newest_ = id;
    HoldAll(std::move(arena));
    held_since_ = loop_.Now();
    holder_ = request.stamp.client;
    timer_ = loop_.CallAt(held_since_ + kLimit, [this] { RunOut(); });
  }
  HoldReply reply{.round = arena_->header().gate.round};
  for (size_t i = 0; i < clients_.clients().size(); ++i) {
    reply.begun.push_back(Begun(static_cast<int>(i)));
    reply.in_parts = reply.in_parts || begun_[i] > std::max(settled_[i], arena_->client(i).numbers.last_applied);
  }
  responder.Send(Encode(reply));
}

void CutFollower::Mark(const MarkRequest& request, Responder responder) {
  const HoldId id{request.stamp.incarnation, request.hold};
  if (request.release) {
    if (id == newest_ && !cut_off_) Release();
    if (id == marked_) saver_.Drop();
    return responder.Send(Encode(MarkReply{}));
  }
  if (id == marked_) return responder.Send(Encode(mark_reply_));  // the answer was lost
  if (arena_ == nullptr || cut_off_ || id != newest_)
    return responder.Fail(absl::OutOfRangeError("this ps is not held, or no longer: cut the checkpoint again"));
  if (request.through.size() != through_.size())
    return responder.Fail(absl::InvalidArgumentError(
        absl::StrCat("a mark through ", request.through.size(), " clients, not ", through_.size())));
  for (size_t i = 0; i < through_.size(); ++i) LetIn(static_cast<int>(i), std::max(through_[i], request.through[i]));
  round_ = request.round;
  patient_ = request.patient;
  marking_ = std::move(responder);
  if (!GoesOn() && arena_->model().gated()) gates_.HoldFrom(request.round);
  HandOn();
  Check();
}

bool CutFollower::WaitsForParts() const {
  if (!marking_ || !patient_ || loop_.Now() >= held_since_ + kLongestWait) return false;
  if (!clients_.Present(clients_.clients()[holder_], loop_.Now())) return false;
  for (size_t i = 0; i < through_.size(); ++i)
    if (!Reached(static_cast<int>(i))) return true;
  return false;
}

void CutFollower::RunOut() {
  if (WaitsForParts()) {
    timer_ = loop_.CallAt(loop_.Now() + kLimit, [this] { RunOut(); });
    return;
  }
  timer_.reset();
  LogWarning("the chief has not cut its checkpoint in time: training goes on");
  Release();
}

bool CutFollower::Reached(int client) const {
  const uint64_t through = through_[client];
  if (ended_) return !DirectIsUnderWay(client) || loop_.Now() >= held_since_ + kLimitAtEnd;
  if (through <= settled_[client] || !clients_.Present(clients_.clients()[client], loop_.Now())) return true;
  return Observe(arena_->client(client).numbers.last_applied) >= through;
}

bool CutFollower::DirectIsUnderWay(int client) const {
  const ClientRecord& record = arena_->client(client);
  const uint64_t begun = Observe(record.direct_begun);
  return begun > std::max(settled_[client], Observe(record.numbers.last_applied)) && begun <= through_[client];
}

MarkReply CutFollower::MakeReply() const {
  MarkReply reply{.global_step = Observe(arena_->header().counters.global_step)};
  if (options_.lead) reply.work = options_.save_work(*arena_);
  if (arena_->model().gated()) return reply;
  for (uint32_t i = 0; i < through_.size(); ++i) {
    const ClientNumbers& numbers = arena_->client(static_cast<int>(i)).numbers;
    // Also for a life that is over: ps 0 may have marked before it heard of the next one.
    if (Observe(numbers.last_applied) < through_[i]) reply.missing.push_back(i);
    // A retry may come after the count.
    const uint64_t over = std::max(settled_[i], Observe(numbers.last_counted));
    if (!ended_ && uncounted_[i] > over && uncounted_[i] <= through_[i]) reply.uncounted.push_back(i);
    if (options_.lead && Observe(numbers.last_counted) > counted_[i]) reply.counted.push_back(i);
  }
  return reply;
}

void CutFollower::CheckLater() {
  loop_.Post(lifetime_.Guard([this] { Check(); }));
}

bool CutFollower::GoesOn() const {
  return options_.probe != nullptr && options_.probe->Has(PlantedBug::kMarkWithoutHold);
}

void CutFollower::Check() {
  if (arena_ == nullptr || !marking_) return;
  const bool gated = arena_->model().gated();
  {
    // A worker that counts its own updates writes its numbers and the counters one after the other.
    const Arena::CountLock lock(*arena_);
    const uint64_t round = arena_->header().gate.round;
    bool reached = !gated || round == *round_ || (ended_ && round < *round_);
    for (size_t i = 0; i < through_.size() && !gated; ++i) reached = reached && Reached(static_cast<int>(i));
    if (reached || GoesOn()) {
      saver_.Prepare(arena_);
      marked_ = newest_;
      mark_reply_ = MakeReply();
    }
  }
  if (marked_ == newest_) {
    std::exchange(marking_, std::nullopt)->Send(Encode(mark_reply_));
    Release();
  } else if (gated && arena_->header().gate.round > *round_) {
    Release();
  } else if (!check_timer_) {
    // Updates that a process applies itself come without a message.
    check_timer_ = loop_.CallAt(loop_.Now() + kCheckAfter, [this] {
      check_timer_.reset();
      Check();
    });
  }
}

bool CutFollower::IsHeld(const IncomingRequest& request) const {
  PushPullRequest message;
  // Once training has ended, updates are refused, held or not.
  if (arena_ == nullptr || ended_) return false;
  const auto method = static_cast<StoreMethod>(request.method);
  if (method == StoreMethod::kPushRows) return cut_off_;  // no part of a cut, but of what would be lost
  if (method != StoreMethod::kPushPull || !Decode(request.control, message).ok() ||
      message.stamp.client >= through_.size() || message.contributes)
    return false;
  return message.Trains() && message.stamp.sequence > through_[message.stamp.client];
}

void CutFollower::KeepBack(IncomingRequest request, std::unique_ptr<BulkTarget> bulk, Responder responder) {
  kept_.push_back({std::move(request), std::move(bulk), std::move(responder)});
}

void CutFollower::Applied(const PushPullRequest& request, bool whole) {
  if (!whole) {
    begun_[request.stamp.client] = std::max(begun_[request.stamp.client], request.stamp.sequence);
    return;
  }
  uint64_t& uncounted = uncounted_[request.stamp.client];
  if (request.minibatches > 0) {
    if (uncounted <= request.stamp.sequence) uncounted = 0;
  } else if (request.update && request.part != UpdatePart::kGivenUp && options_.lead) {
    uncounted = std::max(uncounted, request.stamp.sequence);
  }
  if (marking_) CheckLater();
}

void CutFollower::Disconnect(ConnectionId connection) {
  std::erase_if(kept_, [&](const Kept& kept) { return kept.request.connection == connection; });
}

void CutFollower::End() {
  ended_ = true;
  Release();
}

void CutFollower::Release() {
  if (arena_ == nullptr) return;
  cut_off_ = false;
  if (timer_) loop_.CancelTimer(*timer_);
  timer_.reset();
  const bool gated = arena_->model().gated();
  Publish<uint64_t>(arena_->header().held, 0);
  arena_.reset();
  round_.reset();
  if (marking_)
    std::exchange(marking_, std::nullopt)->Fail(absl::OutOfRangeError("the hold has run out before the mark"));
  if (gated) gates_.Resume();
  // Later, because the caller may be in the middle of a request.
  loop_.Post(lifetime_.Guard([this] { HandOn(); }));
}

void CutFollower::HandOn() {
  for (Kept& kept : std::exchange(kept_, {}))
    handle_(std::move(kept.request), std::move(kept.bulk), std::move(kept.responder));
}

}  // namespace muster
