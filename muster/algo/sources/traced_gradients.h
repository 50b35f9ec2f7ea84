// Calls GradientSource::ComputeGradients as every algorithm must: recorded on the training thread's track, and with the
// gradients shown to the tap's observers.
#pragma once

#include "absl/status/statusor.h"
#include "muster/algo/sources/gradient_source.h"
#include "muster/algo/sources/gradient_tap.h"
#include "muster/observe/track.h"
#include "muster/store/client/store_client.h"

namespace muster {

// Shows gradients to the observers; the time is recorded as spent in hooks.
inline void ShowGradients(const StoreClient& client, const GradientTap& tap, const GradientView& view) {
  if (!tap.observed()) return;
  const Track::Span hooks(client.track(), Activity::kHooks);
  tap.Show(view);
}

// Doesn't show the gradients: for an algorithm that still changes them.
inline absl::StatusOr<double> TracedGradients(GradientSource& source, const StoreClient& client) {
  const Track::Span compute(client.track(), Activity::kCompute);
  return source.ComputeGradients();
}

inline absl::StatusOr<double> TracedGradients(GradientSource& source, const StoreClient& client,
                                              const GradientTap& tap) {
  absl::StatusOr<double> loss = TracedGradients(source, client);
  const auto gradient = [&source](size_t variable) { return source.gradient(variable); };
  if (loss.ok()) ShowGradients(client, tap, {source.variables(), gradient, source.row_gradients()});
  return loss;
}

}  // namespace muster
