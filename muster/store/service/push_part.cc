#include "muster/store/service/push_part.h"

#include <algorithm>

#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

absl::Status CheckRanges(const Arena& arena, const PushPullRequest& message) {
  if (message.ranges.empty()) return absl::OkStatus();
  if (message.ranges.size() != 2 * message.pushed.size())
    return absl::InvalidArgumentError(absl::StrCat("a push of ", message.pushed.size(), " slices came with ",
                                                   message.ranges.size(),
                                                   " numbers of stripes; accepted: two a slice"));
  for (size_t i = 0; i < message.pushed.size(); ++i) {
    const int64_t stripes = arena.layout().slices()[message.pushed[i]].num_stripes;
    const int64_t first = message.ranges[2 * i];
    const int64_t count = message.ranges[2 * i + 1];
    if (count == 0 || first + count > stripes)
      return absl::InvalidArgumentError(absl::StrCat("push of ", count, " stripes from ", first, " on of slice ",
                                                     message.pushed[i], ", which has ", stripes));
  }
  return absl::OkStatus();
}

}  // namespace

absl::Status PushPart::Check(const Arena& arena, const PushPullRequest& message) {
  if (message.part == UpdatePart::kWhole) {
    if (message.ranges.empty() && message.earlier.empty()) return absl::OkStatus();
    return absl::InvalidArgumentError("a push that is whole has no ranges of stripes and nothing earlier");
  }
  if (message.part > UpdatePart::kGivenUp)
    return absl::InvalidArgumentError(absl::StrCat("unknown part ", static_cast<int>(message.part), " of an update"));
  if (!message.update || message.pull == PullWhat::kEverything)
    return absl::InvalidArgumentError("a part of an update must set `update`, and may pull trainable variables only");
  if (arena.model().gated() || message.contributes || message.clock > 0 || message.with_pulled ||
      message.exchange > 0 || message.non_finite || !message.scales.empty() ||
      message.staleness_scale != StalenessScale::kNone)
    return absl::InvalidArgumentError(
        "an update comes in parts only without gates, elastic exchange, pulled copies, and scales of its gradients or "
        "by its staleness");
  if (message.part == UpdatePart::kGivenUp &&
      (!message.pushed.empty() || message.pull != PullWhat::kNothing || message.minibatches > 0))
    return absl::InvalidArgumentError("an update that is given up pushes, pulls and counts nothing more");
  if (message.part == UpdatePart::kOpen && (message.minibatches > 0 || !message.earlier.empty()))
    return absl::InvalidArgumentError("only the last part of an update counts it and names what came earlier");
  int64_t previous = -1;
  for (const uint32_t slice : message.earlier) {
    if (slice >= arena.model().slices.size() || static_cast<int64_t>(slice) <= previous)
      return absl::InvalidArgumentError(absl::StrCat("the last part of an update names slice ", slice, " of ",
                                                     arena.model().slices.size(), " (ascending order, each once)"));
    previous = slice;
  }
  return CheckRanges(arena, message);
}

StripeRange PushPart::range(size_t pushed) const {
  if (message_.ranges.empty()) return {};
  return {message_.ranges[2 * pushed], message_.ranges[2 * pushed + 1]};
}

size_t PushPart::bytes(size_t pushed) const {
  const uint32_t slice = message_.pushed[pushed];
  return WireForm(message_.pushed_as, arena_.model().variable_of(slice))
      .bytes(arena_.layout().slices()[slice].bytes_of(range(pushed)));
}

size_t PushPart::PullBytes(size_t slice, int64_t pushed) const {
  const VariableSpec& variable = arena_.model().variable_of(slice);
  if (!Pulls(message_.pull, variable.kind)) return 0;
  const ArenaLayout::Slice& placed = arena_.layout().slices()[slice];
  const WireForm wanted(message_.pulled_as, variable);
  const size_t all = wanted.bytes(placed.bytes);
  if (message_.part == UpdatePart::kWhole) return all;
  if (pushed >= 0) return wanted.bytes(placed.bytes_of(range(static_cast<size_t>(pushed))));
  if (message_.part == UpdatePart::kOpen) return 0;
  return std::binary_search(message_.earlier.begin(), message_.earlier.end(), slice) ? 0 : all;
}

size_t PushPart::PullBytes() const {
  size_t bytes = 0;
  size_t pushed = 0;
  for (size_t slice = 0; slice < arena_.model().slices.size(); ++slice) {
    const bool names = pushed < message_.pushed.size() && message_.pushed[pushed] == slice;
    bytes += PullBytes(slice, names ? static_cast<int64_t>(pushed) : -1);
    if (names) ++pushed;
  }
  return bytes;
}

bool PushPart::CompletesUpdate() const {
  if (message_.part == UpdatePart::kWhole || message_.part == UpdatePart::kGivenUp) return true;
  if (message_.part == UpdatePart::kOpen) return false;
  return std::all_of(message_.earlier.begin(), message_.earlier.end(), [this](uint32_t slice) {
    return arena_.HasApplied(static_cast<int>(slice), static_cast<int>(message_.stamp.client), message_.stamp.sequence);
  });
}

bool PushPart::UpdatesSomething() const {
  const auto trainable = [this](uint32_t slice) {
    return arena_.model().variable(arena_.model().slices[slice]).kind == VariableKind::kTrainable;
  };
  return std::any_of(message_.pushed.begin(), message_.pushed.end(), trainable) ||
         std::any_of(message_.earlier.begin(), message_.earlier.end(), trainable);
}

}  // namespace muster
