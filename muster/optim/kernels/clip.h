// Clipping of gradients. The gradient itself stays as it is: clipping becomes a factor and a limit that the update
// rules apply to each element as they read it (UpdateRule::Step), so that it costs no pass over memory. Only the norms
// need one, SumOfSquares. Pure functions; thread-safe.
#pragma once

#include <cstdint>
#include <string>

#include "absl/status/status.h"
#include "muster/base/bytes.h"
#include "muster/base/dtype.h"

namespace muster {

// The numbers are written to the wire: never renumber.
enum class ClipKind : uint8_t {
  kNone = 0,
  kValue = 1,       // each element into [−limit, limit]: tf.clip_by_value
  kNorm = 2,        // each variable's gradient to an L2 norm of at most the limit: tf.clip_by_norm
  kGlobalNorm = 3,  // the same with the norm of all gradients together: tf.clip_by_global_norm
};

struct ClipSpec {
  ClipKind kind = ClipKind::kNone;
  double limit = 0;

  bool operator==(const ClipSpec&) const = default;
};

// "none", "value", "norm", "global_norm".
std::string ClipName(ClipKind kind);

// InvalidArgument unless the kind is known and the limit finite and above 0.
[[nodiscard]] absl::Status CheckClip(const ClipSpec& clip);

// Σ g² over the elements, of a floating-point type (halves are squared as floats), added up in double in an order that
// depends on nothing but their number: every machine gets the same bits. Sums of several variables or parts may be
// added.
double SumOfSquares(DType dtype, ByteSpan gradient);

// UpdateRule::Step::gradient_scale: 1, or for a norm above the limit limit / norm. `sum_of_squares` is of the variable
// (kNorm) or of all of them (kGlobalNorm) and isn't looked at otherwise. Where a norm isn't finite the answer is NaN,
// as TensorFlow's, so that a broken gradient is seen and not hidden.
double ClipScale(const ClipSpec& clip, double sum_of_squares);

// UpdateRule::Step::clip_value: the limit of kValue, else infinity.
double ClipValue(const ClipSpec& clip);

}  // namespace muster
