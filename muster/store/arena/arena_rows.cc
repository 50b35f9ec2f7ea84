#include "muster/store/arena/arena_rows.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "muster/base/check.h"
#include "muster/store/arena/shared_memory_order.h"
#include "muster/store/arena/stripe_lock.h"

namespace muster {
namespace {

// Rows lie anywhere in the table, most of them on a page of their own. Prefetches this many at a time, one such block
// ahead: a lock waits until every address before it is translated, so prefetching row by row between the locks would do
// one page walk after the other.
constexpr size_t kRowsAtOnce = 16;

// The format of a piece in an undo slot: at most 2^14 elements from one of the 2^14 of its stripe.
constexpr int kCountBits = 32;
uint64_t Extent(int64_t from, int64_t count) { return static_cast<uint64_t>(from) << kCountBits | count; }

}  // namespace

// Divides rows into pieces, stripe by stripe.
class ArenaRows::StripeWalk {
 public:
  StripeWalk(const RowGradients& gradients, int64_t width, size_t gradient_size, std::vector<Piece>& pieces)
      : gradients_(gradients), width_(width), gradient_size_(gradient_size), pieces_(pieces) {
    Next();
  }

  bool done() const { return pieces_.empty(); }
  int64_t stripe() const { return stripe_; }  // within the slice
  std::span<const Piece> pieces() const { return pieces_; }
  size_t row() const { return row_; }  // the first row that reaches into the next stripe

  void Next() {
    pieces_.clear();
    if (row_ == gradients_.rows.size()) return;
    stripe_ = element() / kStripeElements;
    const int64_t end = (stripe_ + 1) * kStripeElements;
    while (row_ < gradients_.rows.size() && element() < end) {
      const int64_t count = std::min(width_ - in_row_, end - element());
      pieces_.push_back({element(), count, gradients_.values + (row_ * width_ + in_row_) * gradient_size_});
      in_row_ += count;
      if (in_row_ < width_) continue;  // the rest is in the next stripe
      in_row_ = 0;
      ++row_;
    }
  }

 private:
  int64_t element() const { return gradients_.rows[row_] * width_ + in_row_; }

  const RowGradients& gradients_;
  const int64_t width_;
  const size_t gradient_size_;
  size_t row_ = 0;
  int64_t in_row_ = 0;
  int64_t stripe_ = 0;
  std::vector<Piece>& pieces_;
};

void ArenaRows::PartsOf(int slice_index) {
  const ArenaLayout::Slice& slice = arena_.layout_.slices()[slice_index];
  parts_[0] = {arena_.base_ + slice.value_offset, slice.element_size};
  num_parts_ = 1;
  for (const uint64_t offset : slice.slot_offsets)
    parts_[num_parts_++] = {arena_.base_ + offset, slice.slot_element_size};
}

std::byte* ArenaRows::undo_data(UndoHeader& slot) const {
  return reinterpret_cast<std::byte*>(&slot) + arena_.layout_.undo_header_bytes();
}

void ArenaRows::PrefetchRows(int slice, std::span<const int64_t> rows, size_t row, size_t& fetched, bool slots) const {
  if (fetched >= rows.size() || row + kRowsAtOnce < fetched) return;
  const int64_t width = arena_.model_.variable(arena_.model_.slices[slice]).row_elements();
  for (const size_t until = std::min(row + 2 * kRowsAtOnce, rows.size()); fetched < until; ++fetched)
    Prefetch(slice, rows[fetched] * width, width, slots);
}

void ArenaRows::Prefetch(int slice, int64_t first, int64_t count, bool slots) const {
  __builtin_prefetch(&arena_.stripe(arena_.layout_.slices()[slice].first_stripe + first / kStripeElements), 1);
  for (size_t part = 0; part < (slots ? num_parts_ : 1); ++part) {
    const std::byte* data = parts_[part].data + first * parts_[part].element_size;
    for (size_t at = 0; at < count * parts_[part].element_size; at += kCacheLine) __builtin_prefetch(data + at, 1);
  }
}

bool ArenaRows::Push(int slice_index, const ArenaPush& push, const RowGradients& gradients) {
  const ArenaLayout::Slice& slice = arena_.layout_.slices()[slice_index];
  const VariableSpec& variable = arena_.model_.variable(arena_.model_.slices[slice_index]);
  MUSTER_CHECK(variable.kind == VariableKind::kRows);
  if (slice.num_stripes == 0) return true;
  PartsOf(slice_index);
  uint64_t t = 0;
  {
    const Arena::StripeLock lock(arena_, slice.first_stripe);
    StripeHeader& head = arena_.stripe(slice.first_stripe);
    // A retry of an earlier piece, after the push has been counted, still belongs to that push.
    t = head.t + (head.last_sequence()[push.client] < push.sequence ? 1 : 0);
  }
  const int64_t width = variable.row_elements();
  StripeWalk walk(gradients, width, slice.slot_element_size, pieces_);
  first_pieces_.clear();
  if (!walk.done() && walk.stripe() == 0) {
    first_pieces_.swap(pieces_);
    walk.Next();
  }
  size_t fetched = 0;
  for (; !walk.done(); walk.Next()) {
    PrefetchRows(slice_index, gradients.rows, walk.row(), fetched, /*slots=*/true);
    if (!UpdateStripe(slice_index, slice.first_stripe + walk.stripe(), push, t, walk.pieces())) return false;
  }
  MUSTER_CHECK(gradients.last || first_pieces_.empty());
  return !gradients.last || UpdateStripe(slice_index, slice.first_stripe, push, t, first_pieces_);
}

bool ArenaRows::UpdateStripe(int slice_index, int64_t stripe, const ArenaPush& push, uint64_t t,
                             std::span<const Piece> pieces) {
  {
    const Arena::StripeLock lock(arena_, stripe);
    if (Observe(arena_.header().generation) != push.generation) return false;
    StripeHeader& head = arena_.stripe(stripe);
    if (head.last_sequence()[push.client] >= push.sequence && !arena_.Has(PlantedBug::kIgnoreSequence)) return true;
    UndoHeader& slot = arena_.undo(push.client);
    if (head.mark < Observe(arena_.header().mark)) arena_.SaveAside(stripe);
    Save(stripe, pieces, slot);
    const bool first = stripe == arena_.layout_.slices()[slice_index].first_stripe;
    const uint64_t now = first ? head.t + 1 : std::max(head.t, t);
    const PlacedSlice& placed = arena_.model_.slices[slice_index];
    const UpdateRule::Step step = {.learning_rate = push.learning_rate,
                                   .t = now,
                                   .gradient_scale = push.gradient_scale,
                                   .clip_value = ClipValue(arena_.model_.rule(placed).clip)};
    const DType dtype = arena_.model_.variable(placed).dtype;
    std::array<MutableByteSpan, StripeParts::kMaxParts> spans;
    constexpr int64_t kRow = 0;
    for (const Piece& piece : pieces) {
      for (size_t part = 0; part < num_parts_; ++part)
        spans[part] = {parts_[part].data + piece.first * parts_[part].element_size,
                       piece.count * parts_[part].element_size};
      arena_.rules_[slice_index].rule->ApplyToRows(
          dtype, spans[0], std::span(spans).subspan(1, num_parts_ - 1),
          {.width = static_cast<size_t>(piece.count), .rows = {&kRow, 1}, .gradients = {&piece.gradient, 1}}, step);
      arena_.At(ArenaPoint::kBlockChanged);
    }
    if (arena_.Has(PlantedBug::kCommitBeforeHeader)) {
      Publish<uint64_t>(slot.valid, 0);
      arena_.At(ArenaPoint::kCommitted);
    }
    ++head.updates;
    head.t = now;
    head.last_sequence()[push.client] = push.sequence;
    arena_.At(ArenaPoint::kHeaderWritten);
    Publish<uint64_t>(slot.valid, 0);  // this is the commit
    arena_.At(ArenaPoint::kCommitted);
  }
  arena_.At(ArenaPoint::kUnlocked);
  return true;
}

// Saves all pieces before the first is changed: they are few, and stay in the cache.
void ArenaRows::Save(int64_t stripe, std::span<const Piece> pieces, UndoHeader& slot) {
  if (arena_.header().one_process != 0) return;
  std::memcpy(slot.saved_header(), &arena_.stripe(stripe).updates, arena_.header_bytes());
  slot.stripe = stripe;
  slot.content = StripeContent::kRows;
  arena_.At(ArenaPoint::kHeaderSaved);
  std::byte* into = undo_data(slot);
  for (const Piece& piece : pieces) {
    const uint64_t extent = Extent(piece.first % kStripeElements, piece.count);
    std::memcpy(into, &extent, sizeof extent);
    into += sizeof extent;
    for (const Part& part : parts()) {
      std::memcpy(into, part.data + piece.first * part.element_size, piece.count * part.element_size);
      into += piece.count * part.element_size;
    }
    arena_.At(ArenaPoint::kBlockSaved);
  }
  Publish<uint64_t>(slot.valid, 1 + pieces.size());
  arena_.At(ArenaPoint::kUndoValid);
}

void ArenaRows::RestorePieces(UndoHeader& slot) {
  const int64_t stripe = static_cast<int64_t>(slot.stripe);
  const int slice = arena_.layout_.SliceOf(stripe);
  const int64_t begin = (stripe - arena_.layout_.slices()[slice].first_stripe) * kStripeElements;
  PartsOf(slice);
  const std::byte* from = undo_data(slot);
  for (uint64_t piece = 0; piece + 1 < slot.valid; ++piece) {
    uint64_t extent = 0;
    std::memcpy(&extent, from, sizeof extent);
    from += sizeof extent;
    const int64_t first = begin + static_cast<int64_t>(extent >> kCountBits);
    const size_t count = extent & ((uint64_t{1} << kCountBits) - 1);
    for (const Part& part : parts()) {
      std::memcpy(part.data + first * part.element_size, from, count * part.element_size);
      from += count * part.element_size;
    }
    arena_.At(ArenaPoint::kBlockRestored);
  }
}

bool ArenaRows::Gather(int slice_index, const RowReads& reads, MutableByteSpan into) {
  const ArenaLayout::Slice& slice = arena_.layout_.slices()[slice_index];
  const int64_t width = arena_.model_.variable(arena_.model_.slices[slice_index]).row_elements();
  const size_t row_bytes = width * slice.element_size;
  MUSTER_CHECK(!reads.places.empty() || into.size() == reads.rows.size() * row_bytes);
  PartsOf(slice_index);
  // In ascending order: fewer locks, and neighbours share page tables, which saves many times the cost of sorting.
  const auto order = order_.Sort(reads.rows.size(), arena_.model_.slices[slice_index].shape[0],
                                 [&](size_t k) { return static_cast<uint64_t>(reads.rows[k]); });
  ordered_rows_.clear();
  for (const RowOrder::Entry& entry : order) ordered_rows_.push_back(static_cast<int64_t>(entry.key));
  size_t fetched = 0;
  std::optional<Arena::StripeLock> lock;
  int64_t locked = -1;
  for (size_t k = 0; k < order.size(); ++k) {
    PrefetchRows(slice_index, ordered_rows_, k, fetched, /*slots=*/false);
    const size_t place = reads.places.empty() ? order[k].place : reads.places[order[k].place];
    std::byte* out = into.data() + place * row_bytes;
    for (int64_t first = ordered_rows_[k] * width, end = first + width; first < end;) {
      const int64_t stripe = first / kStripeElements;
      if (stripe != locked) {
        lock.reset();
        lock.emplace(arena_, slice.first_stripe + stripe);
        locked = stripe;
        if (reads.generation && Observe(arena_.header().generation) != *reads.generation) return false;
      }
      const int64_t count = std::min(end, (stripe + 1) * kStripeElements) - first;
      std::memcpy(out, parts_[0].data + first * slice.element_size, count * slice.element_size);
      out += count * slice.element_size;
      first += count;
    }
  }
  return true;
}

}  // namespace muster
