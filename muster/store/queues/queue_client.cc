#include "muster/store/queues/queue_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wait_notices.h"

namespace muster {
namespace {

// How often to check whether a stop is requested.
constexpr absl::Duration kCheckInterval = absl::Milliseconds(500);
// After this silence, asks whether the ps is there.
constexpr absl::Duration kSilence = absl::Seconds(2);
// Longer than a ps takes to start.
constexpr absl::Duration kBeforeNotice = absl::Seconds(5);
// After this, sends the request again: it, or its answer, may be lost.
constexpr absl::Duration kAskAgain = absl::Seconds(10);
// Bytes per second. On a slower link an element may never arrive.
constexpr double kSlowestLink = 1 << 20;
// How long after the caller's deadline the ps's answer to it may come.
constexpr absl::Duration kLastWord = absl::Seconds(1);

uint64_t WaitOf(absl::Duration left) {
  if (left == absl::InfiniteDuration()) return QueueRequest::kNoLimit;
  return static_cast<uint64_t>(
      std::max<int64_t>(0, absl::ToInt64Milliseconds(absl::Ceil(left, absl::Milliseconds(1)))));
}

}  // namespace

ByteSpan QueueBatch::Component(const QueueSpec& spec, size_t component) const {
  size_t from = 0;
  for (size_t i = 0; i < component; ++i) from += elements * ComponentBytes(spec.components[i]);
  return ByteSpan(bytes).subspan(from, elements * ComponentBytes(spec.components[component]));
}

QueueClient::QueueClient(Transport& transport, std::string address, QueueSpec spec, QueueClientOptions options)
    : loop_(transport.loop()),
      transport_(transport),
      address_(std::move(address)),
      spec_(std::move(spec)),
      options_(std::move(options)) {}

absl::Status QueueClient::Named(const absl::Status& status) const {
  if (status.ok()) return status;
  // The channel put its address before the ps's text, and the ps the queue's name.
  absl::string_view text = status.message();
  while (absl::ConsumePrefix(&text, absl::StrCat(address_, ": "))) {
  }
  const std::string queue = absl::StrCat("queue '", spec_.name, "' ");
  if (absl::ConsumePrefix(&text, queue))
    return absl::Status(status.code(), absl::StrCat(queue, "on ", options_.ps, " ", text));
  const std::string address = absl::StrContains(text, address_) ? "" : absl::StrCat(" (", address_, ")");
  return absl::Status(status.code(), absl::StrCat(queue, "on ", options_.ps, address, ": ", text));
}

// A request that is sent again before it has arrived cuts off its own bytes, and would never arrive.
absl::Duration QueueClient::Call::MovingTime() const {
  size_t bytes = 0;
  for (const ByteSpan segment : bulk) bytes += segment.size();
  for (const MutableByteSpan segment : into) bytes += segment.size();
  return absl::Seconds(1) * (static_cast<double>(bytes) / kSlowestLink);
}

absl::Status QueueClient::CheckCall(const Call& call, absl::Time deadline) const {
  const absl::Time now = loop_.Now();
  if (call.stoppable() && options_.stop_requested()) return absl::CancelledError("a stop was requested");
  if (now >= deadline + kLastWord)
    return absl::DeadlineExceededError(
        "the deadline has passed, and the ps is silent: it can't be reached, or is stuck");
  if (now - heard_ >= options_.patience + call.MovingTime())
    return absl::UnavailableError(absl::StrCat("no answer for ", absl::FormatDuration(now - heard_)));
  return absl::OkStatus();
}

void QueueClient::AskWhetherItIsThere() {
  if (asking_ || lane_ == 0) return;
  asking_ = true;
  const Request question{.method = static_cast<uint16_t>(StoreMethod::kQueueSize),
                         .control = Encode(QueueRequest{.lane = lane_}),
                         .deadline = loop_.Now() + kAskAgain};
  channel_->Call(question, [this](absl::StatusOr<Reply>& answer) {
    asking_ = false;
    // Any answer from the ps will do; these errors come from the channel.
    if (!absl::IsUnavailable(answer.status()) && !absl::IsDeadlineExceeded(answer.status()) &&
        !absl::IsCancelled(answer.status()))
      heard_ = loop_.Now();
  });
}

absl::StatusOr<Reply> QueueClient::Ask(const Call& call, absl::Time deadline) {
  heard_ = loop_.Now();
  settled_ = true;
  bool said = false;
  WaitNotices notices(heard_, kBeforeNotice);
  absl::Status why;
  while (why.ok()) {
    if (channel_ == nullptr) channel_ = transport_.Connect(address_);
    bool answered = false;
    absl::StatusOr<Reply> answer = absl::UnknownError("not answered");
    const absl::Time sent = loop_.Now();
    const absl::Time again = sent + kAskAgain + call.MovingTime();
    const Channel::CallId sent_as = channel_->Call({.method = static_cast<uint16_t>(call.method),
                                                    .control = call.control(deadline - sent),
                                                    .bulk = call.bulk,
                                                    .into = call.into,
                                                    .deadline = absl::InfiniteFuture()},
                                                   [&](absl::StatusOr<Reply>& reply) {
                                                     answer = std::move(reply);
                                                     answered = true;
                                                   });
    while (!answered && why.ok() && loop_.Now() < again) {
      const auto settled = [&] { return answered || (call.stoppable() && options_.stop_requested()); };
      loop_.RunUntil(settled, std::min({loop_.Now() + kCheckInterval, again, deadline + kLastWord}));
      if (answered) break;
      if (const std::string trouble = channel_->trouble(); !trouble.empty() && notices.Due(loop_.Now()))
        LogInfo("waiting ", notices.Since(loop_.Now()), " for ", Named(absl::UnavailableError(trouble)).message());
      if (loop_.Now() - sent >= kSilence) AskWhetherItIsThere();
      why = CheckCall(call, deadline);
    }
    if (answered && !absl::IsUnavailable(answer.status())) {
      if (answer.ok()) return answer;
      return Named(answer.status());
    }
    if (answered && !std::exchange(said, true)) LogWarning(Named(answer.status()).message(), "; trying again");
    if (why.ok()) why = CheckCall(call, deadline);
    if (answered) continue;
    // Given up: breaking the connection takes the request out of the ps's line, where it otherwise keeps its place.
    if (!why.ok()) {
      channel_.reset();
    } else {
      channel_->Cancel(sent_as);
      loop_.RunUntil([&] { return answered; }, absl::InfiniteFuture());
    }
  }
  settled_ = false;
  return Named(why);
}

absl::Status QueueClient::Open(absl::Time deadline) { return OpenLane(deadline, /*before_close=*/false); }

absl::Status QueueClient::OpenLane(absl::Time deadline, bool before_close) {
  if (lane_ != 0) return absl::OkStatus();
  const OpenQueueRequest open{options_.task, options_.new_lane(), spec_.name, spec_.capacity, spec_.components};
  RETURN_IF_ERROR(
      Ask({StoreMethod::kOpenQueue, [&](absl::Duration) { return Encode(open); }, {}, {}, before_close}, deadline)
          .status());
  lane_ = open.lane;
  sequence_ = 0;
  return absl::OkStatus();
}

absl::StatusOr<Reply> QueueClient::Do(StoreMethod method, QueueRequest message, absl::Time deadline, Segments bulk,
                                      MutableSegments into) {
  message.lane = lane_;
  const auto control = [&](absl::Duration left) {
    message.wait_ms = WaitOf(left);
    return Encode(message);
  };
  auto answer = Ask({method, control, std::move(bulk), std::move(into)}, deadline);
  if (absl::IsAborted(answer.status())) {
    lane_ = 0;
    owed_.reset();
  }
  return answer;
}

absl::Status QueueClient::Enqueue(const Segments& element, absl::Time deadline) {
  if (element.size() != spec_.components.size())
    return Named(absl::InvalidArgumentError(absl::StrCat(
        "its elements have ", spec_.components.size(), " tensors, not ", element.size(), ": ", DescribeQueue(spec_))));
  for (size_t i = 0; i < element.size(); ++i)
    if (element[i].size() != ComponentBytes(spec_.components[i]))
      return Named(absl::InvalidArgumentError(
          absl::StrCat("component ", i, " is ", DescribeComponent(spec_.components[i]), ", ",
                       ComponentBytes(spec_.components[i]), " bytes, not ", element[i].size())));
  RETURN_IF_ERROR(Open(deadline));
  Segments bulk;
  for (const ByteSpan component : element)
    if (!component.empty()) bulk.push_back(component);
  owed_.reset();
  return Do(StoreMethod::kEnqueue, {.sequence = ++sequence_}, deadline, std::move(bulk)).status();
}

absl::StatusOr<QueueBatch> QueueClient::Fetch(const QueueRequest& message, absl::Time deadline) {
  QueueBatch batch;
  batch.bytes.resize(message.count * ElementBytes(spec_));
  owed_ = message;
  MutableSegments into;
  if (!batch.bytes.empty()) into.emplace_back(batch.bytes);
  const auto answer = Do(StoreMethod::kDequeue, message, deadline, {}, std::move(into));
  if (settled_) owed_.reset();
  RETURN_IF_ERROR(answer.status());
  QueueReply reply;
  RETURN_IF_ERROR(Named(Decode(answer->control, reply)));
  batch.elements = reply.elements;
  if (reply.elements > message.count || answer->bulk_bytes != reply.elements * ElementBytes(spec_))
    return Named(absl::DataLossError(
        absl::StrCat("an answer of ", reply.elements, " elements has ", answer->bulk_bytes, " bytes")));
  batch.bytes.resize(answer->bulk_bytes);
  return batch;
}

absl::StatusOr<QueueBatch> QueueClient::Dequeue(uint64_t count, bool small_batch, absl::Time deadline) {
  RETURN_IF_ERROR(Named(ValidateDequeue(spec_, count)));
  RETURN_IF_ERROR(Open(deadline));
  QueueRequest message{.count = count, .small_batch = small_batch};
  if (Owes(count, small_batch)) {
    message.sequence = owed_->sequence;
    auto batch = Fetch(message, deadline);
    // This answers the earlier call's deadline, not this one's.
    if (!absl::IsDeadlineExceeded(batch.status()) || !settled_ || loop_.Now() >= deadline) return batch;
  }
  message.sequence = ++sequence_;
  return Fetch(message, deadline);
}

absl::Status QueueClient::Close(bool cancel_pending, absl::Time deadline) {
  RETURN_IF_ERROR(OpenLane(deadline, /*before_close=*/true));
  owed_.reset();
  return Do(StoreMethod::kCloseQueue, {.sequence = ++sequence_, .cancel_pending = cancel_pending}, deadline).status();
}

absl::StatusOr<QueueReply> QueueClient::Size(absl::Time deadline) {
  RETURN_IF_ERROR(Open(deadline));
  ASSIGN_OR_RETURN(const Reply answer, Do(StoreMethod::kQueueSize, {}, deadline));
  QueueReply reply;
  RETURN_IF_ERROR(Named(Decode(answer.control, reply)));
  return reply;
}

}  // namespace muster
