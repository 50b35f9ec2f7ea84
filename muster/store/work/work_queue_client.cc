#include "muster/store/work/work_queue_client.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

// How often to check whether there is work, or a stop: the most that a worker loses at the end of the last epoch.
constexpr absl::Duration kStopPoll = absl::Milliseconds(100);
// After this, asks a silent ps again; the number says that it is the same question.
constexpr absl::Duration kAskForWorkAgain = absl::Seconds(5);

// Whether this came from the network, and not from the ps.
bool IsSilence(const absl::Status& status) { return absl::IsUnavailable(status) || absl::IsDeadlineExceeded(status); }

}  // namespace

WorkQueueClient::WorkQueueClient(Transport& transport, std::string address, WorkSpec spec,
                                 std::shared_ptr<WorkTally> tally, WorkQueueClientOptions options)
    : transport_(transport),
      loop_(transport.loop()),
      address_(std::move(address)),
      spec_(std::move(spec)),
      tally_(std::move(tally)),
      options_(std::move(options)) {}

absl::Status WorkQueueClient::Named(const absl::Status& status) const {
  return {status.code(),
          absl::StrCat("work queue '", spec_.name, "' on ", options_.ps, " (", address_, "): ", status.message())};
}

bool WorkQueueClient::Pause() {
  loop_.RunUntil([this] { return stopping(); }, loop_.Now() + kStopPoll);
  return !stopping();
}

absl::StatusOr<TakeWorkReply> WorkQueueClient::Ask(const TakeWorkRequest& request) {
  const absl::Time give_up = loop_.Now() + options_.patience;
  bool said = false;
  if (channel_ == nullptr) channel_ = transport_.Connect(address_);
  for (;;) {
    bool answered = false;
    absl::StatusOr<Reply> answer = absl::UnknownError("not answered");
    const Channel::CallId call = channel_->Call({.method = static_cast<uint16_t>(StoreMethod::kTakeWork),
                                                 .control = Encode(request),
                                                 .deadline = std::min(give_up, loop_.Now() + kAskForWorkAgain)},
                                                [&](absl::StatusOr<Reply>& reply) {
                                                  answer = std::move(reply);
                                                  answered = true;
                                                });
    while (!answered && !stopping()) loop_.RunUntil([&] { return answered || stopping(); }, loop_.Now() + kStopPoll);
    const bool given_up = !answered;
    if (given_up) {
      channel_->Cancel(call);
      loop_.RunUntil([&] { return answered; }, absl::InfiniteFuture());
    }
    TakeWorkReply reply;
    if (answer.ok()) {
      RETURN_IF_ERROR(Named(Decode(answer->control, reply)));
      return reply;
    }
    if (given_up) return Named(absl::CancelledError("a stop was requested"));
    // Training has ended: there is nothing to do any more.
    if (absl::IsCancelled(answer.status())) return TakeWorkReply{.answer = WorkAnswer::kEnd};
    // The ps was restarted without its memory. The session joins again once it hears of that: by its next push or, if
    // the training thread waits for this very unit, from here.
    if (absl::IsAborted(answer.status()))
      return tally_->Idle() ? absl::StatusOr<TakeWorkReply>(Named(answer.status())) : TakeWorkReply();
    if (!IsSilence(answer.status())) return Named(answer.status());
    if (loop_.Now() >= give_up) return Named(absl::UnavailableError(answer.status().message()));
    if (!std::exchange(said, true)) LogWarning(Named(answer.status()).message(), "; trying again");
    if (!Pause()) return Named(absl::CancelledError("a stop was requested"));
  }
}

absl::StatusOr<std::optional<WorkUnit>> WorkQueueClient::Take() {
  for (;;) {
    if (stopping()) return Named(absl::CancelledError("a stop was requested"));
    TakeWorkRequest request = tally_->Ask();
    request.spec = spec_;
    if (request.stamp.incarnation != 0) {
      ASSIGN_OR_RETURN(const TakeWorkReply reply, Ask(request));
      if (reply.answer == WorkAnswer::kEnd) return std::nullopt;
      if (reply.answer == WorkAnswer::kUnit) {
        tally_->Taken(reply.ticket);
        return WorkUnit{reply.epoch, reply.begin, reply.end};
      }
    }
    if (!Pause()) return Named(absl::CancelledError("a stop was requested"));
  }
}

absl::Status WorkQueueClient::Done() {
  tally_->Over();
  return absl::OkStatus();
}

}  // namespace muster
