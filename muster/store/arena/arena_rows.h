// Single rows of an arena's tables: what look-ups read and what row gradients update, at a cost that doesn't grow with
// the table. A stripe, with its lock, its header and its numbers, is the same as for whole variables; all that one push
// changes in a stripe is one atomic step, of which the undo slot keeps the touched pieces alone. (A whole stripe of a
// table of width 64 is 256 rows; a push of 4,096 out of a million rows touches one or two of them.)
//
// The rule's step counter of a table is that of the first stripe of its slice, which every push commits last, whichever
// rows it has: Adam's t is the number of pushes, as in TensorFlow's LazyAdam, however the table is partitioned. Other
// stripes note the t of their last update.
//
// As thread-safe as the Arena, whose private parts it is a friend of.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/store/arena/arena.h"
#include "muster/store/arena/stripe_parts.h"
#include "muster/store/model/row_order.h"

namespace muster {

// Some rows of one slice and their gradients.
struct RowGradients {
  std::span<const int64_t> rows;      // within the slice; ascending, each once
  const std::byte* values = nullptr;  // [rows, width] of the type of slots, at any address
  // Of the pieces of a push under one number. No two of them may have rows of one stripe, and the last alone may have
  // some of the slice's first, which counts the push.
  bool last = true;
};

// Some rows of one slice to be copied out.
struct RowReads {
  std::span<const int64_t> rows;            // within the slice; in any order
  std::span<const uint32_t> places;         // of each: which row of the result it becomes; empty: one behind the other
  std::optional<uint64_t> generation = {};  // that the values have to be of
};

// Keeps what it needs for an operation, so that the next one allocates nothing.
class ArenaRows {
 public:
  // The arena must outlive it.
  explicit ArenaRows(Arena& arena) : arena_(arena) {}

  // row ← rule(row, slots, gradient) for each of them, once for each number of a client. False: other values have been
  // loaded since, and the rest of the push was not applied.
  bool Push(int slice, const ArenaPush& push, const RowGradients& gradients);

  // Copies rows out, stripe by stripe in one lock each. What they have of a stripe is of one moment (that is all of a
  // row, if the width divides the stripe). False: other values have been loaded since `generation`.
  bool Gather(int slice, const RowReads& reads, MutableByteSpan into);

  // Under the stripe's lock: what a valid undo slot of content kRows has saved is put back. For Arena alone.
  void RestorePieces(UndoHeader& slot);

 private:
  // Consecutive elements of one row in one stripe.
  struct Piece {
    int64_t first;  // within the slice
    int64_t count;
    const std::byte* gradient;
  };
  // Of a slice: the value, then its slots.
  struct Part {
    std::byte* data = nullptr;
    size_t element_size = 0;
  };
  class StripeWalk;

  void PartsOf(int slice);
  std::span<const Part> parts() const { return {parts_.data(), num_parts_}; }
  // False: other values.
  bool UpdateStripe(int slice, int64_t stripe, const ArenaPush& push, uint64_t t, std::span<const Piece> pieces);
  void Save(int64_t stripe, std::span<const Piece> pieces, UndoHeader& slot);
  // Of the rows behind `row`; those up to `fetched` have been asked for.
  void PrefetchRows(int slice, std::span<const int64_t> rows, size_t row, size_t& fetched, bool slots) const;
  void Prefetch(int slice, int64_t first, int64_t count, bool slots) const;
  std::byte* undo_data(UndoHeader& slot) const;

  Arena& arena_;
  // Of the slice at hand.
  std::array<Part, StripeParts::kMaxParts> parts_{};
  size_t num_parts_ = 0;
  std::vector<Piece> pieces_, first_pieces_;
  RowOrder order_;
  std::vector<int64_t> ordered_rows_;
};

}  // namespace muster
