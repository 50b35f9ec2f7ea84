#include "muster/optim/kernels/clip.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/optim/kernels/half.h"
#include "muster/optim/kernels/kernel.h"

namespace muster {
namespace {

// Element i is added to lane i mod kLanes. These are as many lanes as keep a processor's adders busy, and the same
// number everywhere.
constexpr size_t kLanes = 16;
using Lanes = std::array<double, kLanes>;

struct SquaresLoop {
  template <typename T>
  [[gnu::always_inline]] static void Run(const Loose<T>* __restrict g, size_t count, Lanes* lanes) {
    Lanes sums = *lanes;
    size_t i = 0;
    for (; i + kLanes <= count; i += kLanes) {
      for (size_t lane = 0; lane < kLanes; ++lane) {
        const double element = g[i + lane].value;
        sums[lane] += element * element;
      }
    }
    for (size_t lane = 0; i < count; ++i, ++lane) {
      const double element = g[i].value;
      sums[lane] += element * element;
    }
    *lanes = sums;
  }
};

template <typename T>
void AddSquares(const std::byte* elements, size_t count, Lanes& lanes) {
  RunLoop<SquaresLoop>(reinterpret_cast<const Loose<T>*>(elements), count, &lanes);
}

}  // namespace

std::string ClipName(ClipKind kind) {
  switch (kind) {
    case ClipKind::kNone:
      return "none";
    case ClipKind::kValue:
      return "value";
    case ClipKind::kNorm:
      return "norm";
    case ClipKind::kGlobalNorm:
      return "global_norm";
  }
  return absl::StrCat("clip ", static_cast<int>(kind));
}

absl::Status CheckClip(const ClipSpec& clip) {
  if (clip.kind == ClipKind::kNone) return absl::OkStatus();
  if (clip.kind > ClipKind::kGlobalNorm)
    return absl::InvalidArgumentError(absl::StrCat("unknown clipping number ", static_cast<int>(clip.kind),
                                                   "; accepted: 0 (none), 1 (value), 2 (norm), 3 (global_norm)"));
  if (std::isfinite(clip.limit) && clip.limit > 0) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat("clipping by ", ClipName(clip.kind), ": limit is ", clip.limit,
                                                 "; accepted: a finite number above 0"));
}

double SumOfSquares(DType dtype, ByteSpan gradient) {
  MUSTER_CHECK(IsFloatingPoint(dtype));
  const size_t count = gradient.size() / DTypeSize(dtype);
  Lanes lanes = {};
  if (dtype == DType::kFloat32) {
    AddSquares<float>(gradient.data(), count, lanes);
  } else if (dtype == DType::kFloat64) {
    AddSquares<double>(gradient.data(), count, lanes);
  } else {
    HalfBlock block;
    for (size_t from = 0; from < count; from += block.size()) {
      const size_t some = std::min(block.size(), count - from);
      FloatsFromHalves(dtype, gradient.data() + from * kHalfBytes, block.data(), some);
      AddSquares<float>(AsBytes(block.data(), some).data(), some, lanes);
    }
  }
  double total = 0;
  for (const double lane : lanes) total += lane;
  return total;
}

double ClipScale(const ClipSpec& clip, double sum_of_squares) {
  if (clip.kind != ClipKind::kNorm && clip.kind != ClipKind::kGlobalNorm) return 1;
  if (!std::isfinite(sum_of_squares)) return std::numeric_limits<double>::quiet_NaN();
  const double norm = std::sqrt(sum_of_squares);
  return norm > clip.limit ? clip.limit / norm : 1;
}

double ClipValue(const ClipSpec& clip) {
  return clip.kind == ClipKind::kValue ? clip.limit : std::numeric_limits<double>::infinity();
}

}  // namespace muster
