#include "muster/algo/sources/gradient_sum.h"

#include <algorithm>
#include <cstring>

#include "muster/optim/kernels/add_gradient.h"
#include "muster/optim/kernels/half.h"
#include "muster/optim/kernels/value_math.h"
#include "muster/optim/update_rule.h"

namespace muster {

void GradientSum::Add(GradientSource& source) {
  if (sums_.empty()) {
    variables_ = source.variables();
    sums_.resize(variables_.size());
  }
  if (minibatches_++ == 0)
    for (Sum& sum : sums_) sum.any = false;
  for (size_t i = 0; i < sums_.size(); ++i) {
    const ByteSpan gradient = source.gradient(i);
    if (gradient.empty()) continue;
    const DType dtype = variables_[i].dtype;
    Sum& sum = sums_[i];
    sum.wide.resize(variables_[i].elements() * DTypeSize(SlotDType(dtype)));
    if (!sum.any && SlotDType(dtype) == dtype) {
      std::memcpy(sum.wide.data(), gradient.data(), gradient.size());
    } else {
      if (!sum.any) std::fill(sum.wide.begin(), sum.wide.end(), std::byte{});
      AddGradient(dtype, sum.wide, gradient);
    }
    sum.any = true;
  }
}

void GradientSum::Scale(double scale) {
  for (size_t i = 0; i < sums_.size() && scale != 1; ++i) ScaleBy(SlotDType(variables_[i].dtype), sums_[i].wide, scale);
}

ByteSpan GradientSum::sum(size_t i) {
  if (minibatches_ == 0 || !sums_[i].any) return {};
  Sum& sum = sums_[i];
  if (SlotDType(variables_[i].dtype) == variables_[i].dtype) return sum.wide;
  sum.narrow.resize(variables_[i].bytes());
  HalvesFromFloats(variables_[i].dtype, reinterpret_cast<const float*>(sum.wide.data()), sum.narrow.data(),
                   static_cast<size_t>(variables_[i].elements()));
  return sum.narrow;
}

}  // namespace muster
