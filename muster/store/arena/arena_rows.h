// Single rows of an arena's tables: look-ups read them and row gradients update them, at a cost that doesn't grow with
// the table. A stripe has the same lock, header and numbers as for whole variables; all changes of one push in a stripe
// are one atomic step, for which the undo slot saves only the touched pieces. (A whole stripe of a table of width 64 is
// 256 rows; a push of 4,096 out of a million rows touches one or two of them.)
//
// A table's step counter is that of its slice's first stripe, which every push commits last, whichever rows it has:
// Adam's t is the number of pushes, as in TensorFlow's LazyAdam, however the table is partitioned. Other stripes note
// the t of their last update.
//
// As thread-safe as Arena, of which it is a friend.
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
  // Whether this is the last piece of a push under one number. No two pieces may have rows of the same stripe, and only
  // the last may have rows of the slice's first stripe, which counts the push.
  bool last = true;
};

// Some rows of one slice to copy out.
struct RowReads {
  std::span<const int64_t> rows;            // within the slice; in any order
  std::span<const uint32_t> places;         // for each, its row in the result; empty: in order
  std::optional<uint64_t> generation = {};  // the values must be of this generation
};

// Keeps its buffers, so that later operations allocate nothing.
class ArenaRows {
 public:
  // The arena must outlive it.
  explicit ArenaRows(Arena& arena) : arena_(arena) {}

  // row ← rule(row, slots, gradient) for each row, once for each push number of a client. False: other values were
  // loaded meanwhile, and the rest of the push was not applied.
  bool Push(int slice, const ArenaPush& push, const RowGradients& gradients);

  // Copies rows out, stripe by stripe under one lock each. What it copies of a stripe is of one moment (so a whole row
  // is, if the width divides the stripe). False: other values have been loaded since `generation`.
  bool Gather(int slice, const RowReads& reads, MutableByteSpan into);

  // Restores what a valid undo slot of content kRows has saved. Under the stripe's lock; for Arena alone.
  void RestorePieces(UndoHeader& slot);

 private:
  // Consecutive elements of one row in one stripe.
  struct Piece {
    int64_t first;  // within the slice
    int64_t count;
    const std::byte* gradient;
  };
  // The value of a slice, or one of its slots.
  struct Part {
    std::byte* data = nullptr;
    size_t element_size = 0;
  };
  class StripeWalk;

  void PartsOf(int slice);
  std::span<const Part> parts() const { return {parts_.data(), num_parts_}; }
  // False: other values were loaded.
  bool UpdateStripe(int slice, int64_t stripe, const ArenaPush& push, uint64_t t, std::span<const Piece> pieces);
  void Save(int64_t stripe, std::span<const Piece> pieces, UndoHeader& slot);
  // Prefetches rows after `row`; those up to `fetched` were prefetched already.
  void PrefetchRows(int slice, std::span<const int64_t> rows, size_t row, size_t& fetched, bool slots) const;
  void Prefetch(int slice, int64_t first, int64_t count, bool slots) const;
  std::byte* undo_data(UndoHeader& slot) const;

  Arena& arena_;
  // The parts of the current slice: its value, then its slots.
  std::array<Part, StripeParts::kMaxParts> parts_{};
  size_t num_parts_ = 0;
  std::vector<Piece> pieces_, first_pieces_;
  RowOrder order_;
  std::vector<int64_t> ordered_rows_;
};

}  // namespace muster
