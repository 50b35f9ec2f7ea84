#include "muster/store/calls/clock_probe.h"

#include <optional>

#include "muster/store/messages/messages.h"
#include "muster/transport/choice/transport_choice.h"

namespace muster {
namespace {

constexpr int kQuestions = 8;
constexpr absl::Duration kPatience = absl::Seconds(2);
constexpr absl::Duration kPause = absl::Seconds(5);

}  // namespace

ClockProbe::ClockProbe(JobToken token, const std::string& ps_address, Tracer& tracer)
    : tracer_(tracer),
      transport_(MakeTransport(TransportChoice::kAuto, loop_, std::move(token))),
      channel_(transport_->Connect(ps_address)),
      thread_([this] { Work(); }) {}

ClockProbe::~ClockProbe() {
  loop_.Post([this] { stopping_ = true; });
  thread_.join();
}

void ClockProbe::Work() {
  while (!stopping_) {
    Measure();
    loop_.RunUntil([this] { return stopping_; }, loop_.Now() + kPause);
  }
}

void ClockProbe::Measure() {
  std::optional<ClockSample> best;
  for (int i = 0; i < kQuestions && !stopping_; ++i) {
    std::optional<absl::StatusOr<Reply>> answer;
    const int64_t sent = tracer_.Nanos();
    int64_t received = 0;
    const Channel::CallId call =
        channel_->Call({.method = static_cast<uint16_t>(StoreMethod::kClock), .deadline = loop_.Now() + kPatience},
                       [&](absl::StatusOr<Reply> reply) {
                         received = tracer_.Nanos();
                         answer = std::move(reply);
                       });
    if (!loop_.RunUntil([&] { return answer.has_value() || stopping_; }, absl::InfiniteFuture()) || !answer) {
      channel_->Cancel(call);
      loop_.RunUntil([&] { return answer.has_value(); }, absl::InfiniteFuture());
      return;
    }
    ClockReply reply;
    if (!answer->ok() || !Decode((*answer)->control, reply).ok()) break;
    const int64_t half = (received - sent) / 2;
    if (!best || half < best->uncertainty)
      best = {.at = sent + half, .offset = reply.nanos - (sent + half), .uncertainty = half};
  }
  if (best) tracer_.AddClockSample(*best);
}

}  // namespace muster
