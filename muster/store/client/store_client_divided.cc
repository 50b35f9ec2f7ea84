// A round of the synchronous gate on ps of this host: how the client waits in it. What it does there is DividedRound's.
#include <algorithm>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/store/client/gradient_policy.h"
#include "muster/store/client/long_wait.h"
#include "muster/store/client/store_client_direct.h"

namespace muster {
namespace {

// After so long a wait the client is behind a slow worker and looks less often: the bell wakes it anyway, and it only
// looks for what doesn't ring: a death, the end. Looking every 5 ms took 2 % of a core (`./dev bench ps`).
constexpr absl::Duration kLong = absl::Milliseconds(100);
constexpr int kLongerSleep = 10;

}  // namespace

absl::Status StoreClient::Direct::CheckPatience(StoreClient& client, absl::Time give_up, LongWait& wait) {
  wait.Look(client.loop_.Now());
  if (client.options_.stop_requested()) return absl::CancelledError("a stop was requested");
  if (client.loop_.Now() >= give_up)
    return absl::UnavailableError(absl::StrCat("round ", client.direct_->apply_.round(),
                                               " has not had its contributors within ",
                                               absl::FormatDuration(client.options_.gate_patience)));
  return client.direct_->apply_.hosts_alive() ? absl::OkStatus() : Open(client);
}

absl::StatusOr<StorePushResult> StoreClient::Direct::Contribute(StoreClient& client,
                                                                absl::FunctionRef<ByteSpan(size_t)> gradient,
                                                                const std::vector<double>& scales,
                                                                const StorePushOptions& options) {
  const auto piece = [&](int ps, int slice) -> const SlicePiece& { return client.direct_->apply_.piece(ps, slice); };
  const auto bytes = [&](int ps, int slice) {
    const SlicePiece& at = piece(ps, slice);
    ByteSpan whole;
    if (at.kind == VariableKind::kTrainable) whole = gradient(at.variable);
    if (at.kind == VariableKind::kBuffer && options.publish_buffers) whole = client.binding_.values[at.variable];
    return whole.empty() ? whole : whole.subspan(at.offset, at.bytes);
  };
  const auto scale = [&](int ps, int slice) { return scales.empty() ? 1 : scales[piece(ps, slice).variable]; };
  DividedRound round = client.direct_->apply_.MakeRound({.sequence = ++client.sequence_,
                                                         .generation = client.generation_,
                                                         .local_step = *options.local_step,
                                                         .minibatches = options.minibatches,
                                                         .work = client.push_.Work()});
  const absl::Time began = client.loop_.Now();
  const absl::Time give_up = began + client.options_.gate_patience;
  LongWait wait(client, client.options_.task, began);
  const auto advance = [&] {
    const Track::Span apply(client.options_.track, Activity::kApply);
    return round.Advance({bytes, scale});
  };
  for (uint32_t rings = round.rings(); !advance(); rings = round.rings()) {
    const Track::Span waits(client.options_.track, Activity::kWait);
    const absl::Time now = client.loop_.Now();
    const int longer = now - began < kLong ? 1 : kLongerSleep;
    const absl::Time slept = now + longer * StoreClientOptions::kRoundSleep;
    if (round.Wait(rings, longer * client.options_.round_sleep)) continue;
    // Really the time has passed; in a simulated world the others go on here.
    client.loop_.RunUntil([] { return false; }, slept);
    RETURN_IF_ERROR(CheckPatience(client, give_up, wait));
    if (client.direct_ == nullptr) {
      // Under the number of this contribution: what has arrived of it isn't added again.
      --client.sequence_;
      return client.PushPullAll(gradient, scales, options);
    }
  }
  if (round.other_values()) return absl::AbortedError("the values were loaded anew: they have to be pulled again");
  if (round.ended()) return absl::CancelledError("training has ended");
  ASSIGN_OR_RETURN(StorePushResult result,
                   PushPull(client, [](size_t) { return ByteSpan(); }, {}, {.pull = options.pull, .minibatches = 0}));
  result.dropped = round.dropped();
  return result;
}

}  // namespace muster
