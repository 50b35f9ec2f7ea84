#include "muster/store/calls/ask_ps.h"

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/identity/job_token.h"
#include "muster/transport/choice/transport_choice.h"
#include "muster/transport/io/tcp_event_loop.h"

namespace muster {
namespace {

// A user who asks by hand has no token unless one was exported; `muster run` draws one.
absl::Status WithAdvice(const absl::Status& status) {
  if (!absl::IsPermissionDenied(status)) return status;
  return absl::PermissionDeniedError(
      absl::StrCat("export the same MUSTER_JOB_TOKEN before muster run and before this command: ", status.message()));
}

}  // namespace

absl::StatusOr<std::string> AskPs(const std::string& address, const JobToken& token, StoreMethod method,
                                  std::string control, absl::Duration patience) {
  RETURN_IF_ERROR(CheckJobToken(token.secret));
  TcpEventLoop loop;
  const auto transport = MakeTransport(TransportChoice::kTcp, loop, token);
  const auto channel = transport->Connect(address);
  absl::StatusOr<Reply> answer = absl::UnknownError("");
  bool answered = false;
  channel->Call(
      {.method = static_cast<uint16_t>(method), .control = std::move(control), .deadline = loop.Now() + patience},
      [&](absl::StatusOr<Reply> reply) {
        answer = std::move(reply);
        answered = true;
      });
  loop.RunUntil([&] { return answered; }, absl::InfiniteFuture());
  if (absl::IsDeadlineExceeded(answer.status())) return absl::UnavailableError(answer.status().message());
  if (!answer.ok()) return WithAdvice(answer.status());
  return answer->control;
}

}  // namespace muster
