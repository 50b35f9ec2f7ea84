#include "muster/store/calls/ps_calls.h"

#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/store/calls/gate_wait_notice.h"
#include "muster/store/calls/shutdown_wait.h"
#include "muster/store/calls/silence_notice.h"

namespace muster {

PsCalls::PsCalls(Transport& transport, std::vector<std::string> addresses, const StoreClientOptions& options)
    : loop_(transport.loop()), options_(options), addresses_(std::move(addresses)) {
  for (const std::string& address : addresses_) servers_.emplace_back().channel = transport.Connect(address);
}

std::string PsCalls::Name(int ps) const { return absl::StrCat("ps:", ps, " (", addresses_[ps], ")"); }

std::string PsCalls::Named(int ps, absl::string_view message) const {
  // The channel begins its own messages with the address.
  const bool by_channel = absl::ConsumePrefix(&message, addresses_[ps]);
  return absl::StrCat(Name(ps), by_channel ? "" : ": ", message);
}

absl::Status PsCalls::Annotate(int ps, const absl::Status& status) const {
  if (status.ok()) return status;
  // A caller that waited long enough gets the code for "worth trying again", however the silence ended.
  const absl::StatusCode code =
      status.code() == absl::StatusCode::kDeadlineExceeded ? absl::StatusCode::kUnavailable : status.code();
  return absl::Status(code, Named(ps, status.message()));
}

void PsCalls::Send(StoreCall& call, absl::Time deadline, int& unanswered) {
  ++call.attempts;
  Request& request = request_;
  request.method = static_cast<uint16_t>(call.method);
  request.control = call.control;
  request.bulk = call.bulk;
  request.into = call.into;
  request.deadline = deadline;
  call.deadline = deadline;
  call.unanswered = &unanswered;
  // Two pointers fit into a ReplyCallback, more would be allocated.
  call.in_flight = servers_[call.ps].channel->Call(request, [this, &call](absl::StatusOr<Reply>& answer) {
    call.in_flight.reset();
    // The connection broke: the ps may or may not have got it. The same sequence number makes trying again safe.
    if (call.send_again && absl::IsUnavailable(answer.status()) && loop_.Now() < call.deadline) {
      LogWarning(Named(call.ps, answer.status().message()), "; trying again (attempt ", call.attempts + 1, ")");
      return Send(call, call.deadline, *call.unanswered);
    }
    std::swap(call.answer, answer);  // the memory of the one before is the channel's again
    --*call.unanswered;
  });
}

void PsCalls::Cancel(const StoreCall& call) { servers_[call.ps].channel->Cancel(*call.in_flight); }

absl::Status PsCalls::Exchange(std::vector<StoreCall>& calls, absl::Time deadline, bool stoppable) {
  int unanswered = static_cast<int>(calls.size());
  for (StoreCall& call : calls) Send(call, deadline, unanswered);
  const auto done = [&] { return unanswered == 0 || (stoppable && options_.stop_requested()); };
  const auto silent = [&] {
    std::vector<int> ps;
    for (const StoreCall& call : calls)
      if (call.in_flight) ps.push_back(call.ps);
    return ps;
  };
  ShutdownWait wait(*this, silent);
  SilenceNotice notice(*this, calls, deadline);
  absl::StatusOr<bool> waited = false;
  for (;;) {
    waited = wait.RunUntil(done, notice.next());
    if (!waited.ok() || *waited) break;
    notice.Check();
  }
  if (unanswered > 0) {
    Abandon(calls, unanswered);
    return waited.ok() ? absl::CancelledError("a stop was requested") : waited.status();
  }
  for (const StoreCall& call : calls) RETURN_IF_ERROR(Annotate(call.ps, call.answer.status()));
  return absl::OkStatus();
}

void PsCalls::Abandon(std::vector<StoreCall>& calls, int& unanswered) {
  for (StoreCall& call : calls)
    if (call.in_flight) Cancel(call);
  loop_.RunUntil([&unanswered] { return unanswered == 0; }, absl::InfiniteFuture());
}

// A channel would wait for a dead ps as long as for one that keeps an answer back: it has to answer a question
// meanwhile.
absl::Status PsCalls::AskWhoIsSilent(const std::vector<StoreCall>& calls) {
  std::vector<StoreCall> questions;
  for (const StoreCall& call : calls)
    if (call.in_flight)
      questions.push_back({.ps = call.ps,
                           .method = StoreMethod::kHeartbeat,
                           .control = Encode(HeartbeatRequest{MakeStamp(call.ps, 0)})});
  return Exchange(questions, loop_.Now() + options_.patience, /*stoppable=*/true);
}

absl::Status PsCalls::ExchangeHeldBack(std::vector<StoreCall>& calls) {
  const absl::Time deadline = loop_.Now() + options_.gate_patience;
  int unanswered = static_cast<int>(calls.size());
  for (StoreCall& call : calls) Send(call, deadline, unanswered);
  const auto done = [&] { return unanswered == 0 || options_.stop_requested(); };
  absl::Status there;
  GateWaitNotice notice(*this, options_.task, loop_.Now());
  while (there.ok() && !loop_.RunUntil(done, loop_.Now() + kSilenceBeforeNotice)) {
    there = AskWhoIsSilent(calls);
    if (there.ok() && unanswered > 0) notice.Check(loop_.Now());
  }
  if (unanswered > 0) {
    Abandon(calls, unanswered);
    return there.ok() ? absl::CancelledError("a stop was requested") : there;
  }
  for (const StoreCall& call : calls) RETURN_IF_ERROR(Annotate(call.ps, call.answer.status()));
  return absl::OkStatus();
}

absl::Status PsCalls::Ask(std::vector<StoreCall>& calls) {
  RETURN_IF_ERROR(Exchange(calls, loop_.Now() + options_.patience));
  for (const StoreCall& call : calls)
    if (call.answer->bulk_bytes != TotalBytes(call.into))
      return Annotate(call.ps,
                      absl::DataLossError(absl::StrCat("an answer of ", TotalBytes(call.into),
                                                       " bytes was asked for, it brought ", call.answer->bulk_bytes)));
  return absl::OkStatus();
}

absl::Status PsCalls::ExchangeOne(StoreCall& call, absl::Duration patience, bool stoppable) {
  std::vector<StoreCall> calls;
  calls.push_back(std::move(call));
  const absl::Status status = Exchange(calls, loop_.Now() + patience, stoppable);
  call = std::move(calls[0]);
  return status;
}

// Before each attempt the ps has to answer a question: a channel would wait for a dead one as long as for a busy one.
absl::Status PsCalls::Transfer(StoreCall& call) {
  const absl::Time deadline = loop_.Now() + options_.transfer_patience;
  call.send_again = false;
  for (;;) {
    StoreCall question{.ps = call.ps, .method = StoreMethod::kStatus};
    RETURN_IF_ERROR(ExchangeOne(question, options_.patience));
    const absl::Status status = ExchangeOne(call, deadline - loop_.Now());
    if (!absl::IsUnavailable(status) || loop_.Now() >= deadline) return status;
    LogWarning(status.message(), "; trying again");
  }
}

absl::StatusOr<std::string> PsCalls::Status(int ps) {
  StoreCall call{.ps = ps, .method = StoreMethod::kStatus};
  RETURN_IF_ERROR(ExchangeOne(call, options_.patience));
  return call.answer->control;
}

}  // namespace muster
