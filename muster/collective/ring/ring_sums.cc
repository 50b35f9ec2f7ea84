#include "muster/collective/ring/ring_sums.h"

#include <array>

#include "muster/collective/rank_sum.h"
#include "muster/collective/segment_range.h"
#include "muster/optim/kernels/half.h"

namespace muster {
namespace {

DType TravellingAs(DType dtype) { return dtype == DType::kFloat64 ? DType::kFloat64 : DType::kFloat32; }

}  // namespace

RingSums::RingSums(DType dtype, const RingPieces& pieces, int rank, int size, std::vector<std::byte>& memory)
    : dtype_(dtype),
      travelling_as_(TravellingAs(dtype)),
      element_(DTypeSize(dtype)),
      travelling_(DTypeSize(travelling_as_)),
      pieces_(pieces),
      rank_(rank),
      size_(size),
      memory_(memory) {
  const size_t needed = (pieces_.elements() + kRingRoom * pieces_.piece_elements()) * travelling_;
  if (memory_.size() < needed) memory_.resize(needed);
}

void RingSums::Begin(const Segments& in) {
  const int share = (rank_ + size_ - 1) % size_;
  for (size_t piece = 0; piece < pieces_.count(); ++piece) Widen(in, share, piece, PartialAt(share, piece));
}

// Writes this rank's contribution in the type in which it travels.
void RingSums::Widen(const Segments& in, int share, size_t piece, std::byte* to) const {
  const auto [begin, bytes] = pieces_.At(share, piece);
  if (dtype_ == travelling_as_) return CopyOut(in, begin, bytes, to);
  VisitRange(in, begin, bytes, [&](ByteSpan some) {
    FloatsFromHalves(dtype_, some.data(), reinterpret_cast<float*>(to), some.size() / element_);
    to += some.size() / element_ * travelling_;
  });
}

ByteSpan RingSums::Partial(int share, size_t piece) const {
  return {PartialAt(share, piece), ElementsOf(share, piece) * travelling_};
}

MutableByteSpan RingSums::Room(size_t number, int share, size_t piece) {
  return {RoomAt(number), ElementsOf(share, piece) * travelling_};
}

void RingSums::Add(size_t number, int share, size_t piece, const Segments& in) {
  std::byte* sum = PartialAt(share, piece);
  Widen(in, share, piece, sum);
  const std::array<const std::byte*, 2> both = {RoomAt(number), sum};
  SumOfRanks(travelling_as_, Reduction::kSum, both, ElementsOf(share, piece), sum, nullptr);
}

void RingSums::Finish(size_t piece, Reduction reduction, const MutableSegments& out, size_t out_begin) {
  const auto [begin, bytes] = pieces_.At(rank_, piece);
  std::byte* sum = PartialAt(rank_, piece);
  const size_t elements = bytes / element_;
  if (reduction == Reduction::kMean) DivideBy(travelling_as_, size_, sum, elements);
  VisitRange(out, begin - out_begin, bytes, [&](MutableByteSpan to) {
    const size_t some = to.size() / element_;
    if (dtype_ == travelling_as_) {
      std::memcpy(to.data(), sum, to.size());
    } else {
      HalvesFromFloats(dtype_, reinterpret_cast<const float*>(sum), to.data(), some);
    }
    sum += some * travelling_;
  });
}

}  // namespace muster
