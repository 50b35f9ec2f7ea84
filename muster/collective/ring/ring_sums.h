// The arithmetic of a ring's reduction: cuts shares into pieces and adds up partial sums as they travel. Halves travel
// as floats, so that each element is rounded once. Not thread-safe.
#pragma once

#include <algorithm>
#include <cstddef>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/base/dtype.h"
#include "muster/collective/collective.h"
#include "muster/collective/share.h"

namespace muster {

// The largest number of pieces on their way to a rank at one time.
constexpr size_t kRingRoom = 8;

class RingPieces {
 public:
  RingPieces(size_t elements, size_t element_bytes, int size)
      : elements_(elements),
        element_bytes_(element_bytes),
        size_(size),
        piece_elements_(std::max<size_t>(1, kPieceBytes / element_bytes)) {}

  // The number of pieces of each share, that is, of the longest one; at least one.
  size_t count() const {
    return std::max<size_t>(1, (ShareOf(elements_, 0, size_).elements + piece_elements_ - 1) / piece_elements_);
  }
  size_t elements() const { return elements_; }
  size_t piece_elements() const { return piece_elements_; }
  struct Range {
    size_t begin = 0;  // bytes into the whole
    size_t bytes = 0;
  };
  Range At(int share, size_t piece) const {
    const Share whole = ShareOf(elements_, share, size_);
    const size_t from = std::min(whole.elements, piece * piece_elements_);
    return {(whole.begin + from) * element_bytes_, std::min(piece_elements_, whole.elements - from) * element_bytes_};
  }
  size_t ShareBegin(int share) const { return ShareOf(elements_, share, size_).begin * element_bytes_; }

 private:
  // Large enough that the cost of a request is negligible, small enough that links work at the same time.
  static constexpr size_t kPieceBytes = size_t{256} << 10;

  const size_t elements_;
  const size_t element_bytes_;
  const int size_;
  const size_t piece_elements_;
};

class RingSums {
 public:
  // `memory` keeps its size for the next reduction.
  RingSums(DType dtype, const RingPieces& pieces, int rank, int size, std::vector<std::byte>& memory);

  // Starts with this rank's contribution `in` to the share that it begins (the share of the rank before): the first
  // partial sum.
  void Begin(const Segments& in);
  // Returns a partial sum in the form in which it travels.
  ByteSpan Partial(int share, size_t piece) const;
  // Returns where the `number`-th arrival goes; it stays valid until kRingRoom later ones have been requested.
  MutableByteSpan Room(size_t number, int share, size_t piece);
  // Handles that arrival: partial sum ← the arrival + this rank's contribution.
  void Add(size_t number, int share, size_t piece, const Segments& in);
  // Writes the sum, or mean, of this rank's own share to `out`, which begins `out_begin` bytes into the whole. Call
  // after the last Add.
  void Finish(size_t piece, Reduction reduction, const MutableSegments& out, size_t out_begin);

 private:
  void Widen(const Segments& in, int share, size_t piece, std::byte* to) const;
  size_t ElementsOf(int share, size_t piece) const { return pieces_.At(share, piece).bytes / element_; }
  std::byte* PartialAt(int share, size_t piece) const {
    return memory_.data() + pieces_.At(share, piece).begin / element_ * travelling_;
  }
  std::byte* RoomAt(size_t number) const {
    return memory_.data() + (pieces_.elements() + number % kRingRoom * pieces_.piece_elements()) * travelling_;
  }

  const DType dtype_;
  const DType travelling_as_;
  const size_t element_;
  const size_t travelling_;  // bytes per element of a partial sum
  const RingPieces& pieces_;
  const int rank_;
  const int size_;
  std::vector<std::byte>& memory_;  // the partial sums of all shares, then the room for arrivals
};

}  // namespace muster
