#include "muster/store/client/elastic_exchange.h"

#include <utility>

#include "muster/base/status_macros.h"
#include "muster/optim/kernels/value_math.h"

namespace muster {

ElasticExchange::ElasticExchange(StoreClient& client, double alpha) : client_(client), alpha_(alpha) {
  for (const VariableSpec& variable : client.binding().variables)
    moved_.emplace_back(variable.kind == VariableKind::kTrainable ? variable.bytes() : 0);
}

absl::StatusOr<StorePushResult> ElasticExchange::Exchange(uint32_t minibatches, uint64_t clock) {
  const ModelBinding& binding = client_.binding();
  const auto values = [&](size_t i) { return moved_[i].empty() ? ByteSpan() : ByteSpan(binding.values[i]); };
  to_move_ = false;
  ASSIGN_OR_RETURN(const StorePushResult result,
                   client_.PushPull(values, {.pull = PullWhat::kNothing,
                                             .minibatches = minibatches,
                                             .clock = clock,
                                             .exchange = alpha_,
                                             .moved = [this](size_t i) { return MutableByteSpan(moved_[i]); }}));
  // A dropped exchange moved nothing: `moved_` is then that of an earlier one.
  to_move_ = !result.dropped;
  return result;
}

void ElasticExchange::Move() {
  if (!std::exchange(to_move_, false)) return;
  const ModelBinding& binding = client_.binding();
  for (size_t i = 0; i < moved_.size(); ++i)
    if (!moved_[i].empty()) AddScaled(binding.variables[i].dtype, binding.values[i], moved_[i], -1);
}

}  // namespace muster
