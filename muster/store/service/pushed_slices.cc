#include "muster/store/service/pushed_slices.h"

#include "muster/base/check.h"
#include "muster/store/service/elastic_force.h"

namespace muster {
namespace {

// Returns the part of a push's bulk after the gradients.
ByteSpan PulledCopies(const StoreModel& model, const PushPullRequest& message, ByteSpan bulk) {
  for (const uint32_t index : message.pushed)
    bulk =
        bulk.subspan(WireForm(message.pushed_as, model.variable(model.slices[index])).bytes(model.slices[index].bytes));
  return bulk;
}

}  // namespace

PushedSlices::PushedSlices(Arena& arena, const PushPullRequest& message, ByteSpan bulk, MutableByteSpan pulled)
    : arena_(arena),
      message_(message),
      part_(arena, message),
      compensation_(message.compensation),
      adaptive_(message.adaptive),
      gradients_(bulk),
      pulled_copies_(message.with_pulled ? PulledCopies(arena.model(), message, bulk) : ByteSpan()),
      pulled_(pulled) {}

void PushedSlices::Apply(int64_t global_step, uint64_t staleness) {
  scale_ = ScaleOf(message_.staleness_scale, staleness);
  for (size_t slice = 0; slice < arena_.layout().slices().size(); ++slice) {
    const bool pushes = next_push_ < message_.pushed.size() && message_.pushed[next_push_] == slice;
    const MutableByteSpan into =
        pulled_.first(pulled_.empty() ? 0 : part_.PullBytes(slice, pushes ? static_cast<int64_t>(next_push_) : -1));
    if (pushes) {
      Push(slice, global_step, into);
    } else if (!into.empty()) {
      arena_.Read(static_cast<int>(slice), into, message_.pulled_as);
    }
    pulled_ = pulled_.subspan(into.size());
  }
}

const GradientChange* PushedSlices::PulledCopyChange() const {
  if (message_.adaptive > 0) return &adaptive_;
  return &compensation_;
}

void PushedSlices::Push(size_t slice, int64_t global_step, MutableByteSpan into) {
  Arena::Push push{.client = static_cast<int>(message_.stamp.client),
                   .sequence = message_.stamp.sequence,
                   .generation = message_.generation,
                   .sent_as = message_.pushed_as,
                   .pulled_as = message_.pulled_as};
  // Buffers have no learning rate.
  const RuleSpec& rule = arena_.rule(static_cast<int>(slice));
  push.learning_rate = scale_ * LearningRateAt(rule.schedule, rule.learning_rate, global_step);
  push.gradient_scale = message_.scales.empty() ? 1 : message_.scales[next_push_];
  // The only rule without a learning rate.
  if (rule.kind == RuleKind::kAdd) push.gradient_scale *= scale_;
  const bool changes = message_.with_pulled && arena_.model().variable_of(slice).kind == VariableKind::kTrainable;
  const bool exchanges = message_.exchange > 0;
  const ElasticForce force(
      message_.exchange, exchanges ? ExchangeAnswer(arena_, push.client, static_cast<int>(slice)) : MutableByteSpan());
  push.change = changes ? PulledCopyChange() : exchanges ? static_cast<const GradientChange*>(&force) : nullptr;
  push.computed_from = pulled_copies_.first(changes ? arena_.layout().slices()[slice].bytes : 0);
  pulled_copies_ = pulled_copies_.subspan(push.computed_from.size());
  const ByteSpan gradient = gradients_.first(part_.bytes(next_push_));
  // The generation can't change meanwhile: only this process loads values, on this loop.
  MUSTER_CHECK(arena_.Apply(static_cast<int>(slice), push, gradient, into, part_.range(next_push_)));
  gradients_ = gradients_.subspan(gradient.size());
  ++next_push_;
}

}  // namespace muster
