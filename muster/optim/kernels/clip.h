// Clipping of gradients. The gradient itself doesn't change: clipping becomes a factor and a limit that the update
// rules apply to each element as they read it (UpdateRule::Step), so that it costs no pass over memory. Only the norms
// need one, SumOfSquares. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// The numbers are part of the wire format: never renumber.
enum class ClipKind : uint8_t {
  kNone = 0,
  kValue = 1,       // each element into [−limit, limit]: tf.clip_by_value
  kNorm = 2,        // each variable's gradient to an L2 norm of at most the limit: tf.clip_by_norm
  kGlobalNorm = 3,  // likewise with the norm of all gradients together: tf.clip_by_global_norm
};

struct ClipSpec {
  ClipKind kind = ClipKind::kNone;
  double limit = 0;

  bool operator==(const ClipSpec&) const = default;
};

// Returns "none", "value", "norm" or "global_norm".
std::string ClipName(ClipKind kind);

// InvalidArgument unless the kind is known and the limit finite and above 0.
[[nodiscard]] absl::Status CheckClip(const ClipSpec& clip);

// Returns Σ g² over the elements, of a floating-point type (halves are squared as floats), summed in double in an order
// that depends only on their number: every machine gets the same bits. Sums of several variables or parts may be added.
double SumOfSquares(DType dtype, ByteSpan gradient);

// Returns UpdateRule::Step::gradient_scale: 1, or limit / norm for a norm above the limit. `sum_of_squares` is the
// variable's (kNorm) or that of all variables (kGlobalNorm); other kinds ignore it. For a norm that isn't finite it
// returns NaN, as TensorFlow does, so that a broken gradient is seen and not hidden.
double ClipScale(const ClipSpec& clip, double sum_of_squares);

// Returns UpdateRule::Step::clip_value: the limit of kValue, else infinity.
double ClipValue(const ClipSpec& clip);

}  // namespace muster
