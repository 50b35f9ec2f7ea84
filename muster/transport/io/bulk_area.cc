#include "muster/transport/io/bulk_area.h"

#include <sys/mman.h>

#include <algorithm>
#include <cerrno>
#include <new>

namespace muster {
namespace {

constexpr uint64_t kExtentHeader = 64;
// More than the calls usually in flight; searching them must stay cheap.
constexpr size_t kMostBusy = 256;
// If the last this many bulk parts didn't need some memory, it is taken as not needed any more.
constexpr int kWindow = 256;

// The header in front of each bulk part.
struct ExtentHeader {
  std::atomic<uint64_t> ready;
  std::atomic<uint32_t> done;
};
static_assert(sizeof(ExtentHeader) <= kExtentHeader);

ExtentHeader* HeaderAt(MutableByteSpan area, uint64_t offset) {
  return reinterpret_cast<ExtentHeader*>(area.data() + offset);
}

uint64_t RoundUp(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

}  // namespace

// The store is sequentially consistent with the words that say which side sleeps, as a ring's counts are.
void Extent::Publish(uint64_t bytes) { HeaderAt(area_->area_, offset_)->ready.store(bytes); }

void Extent::HandOver() {
  for (OutgoingArea::Busy& busy : area_->busy_)
    if (busy.begin == offset_) busy.handed_over = true;
  handed_over_ = true;
}

void Extent::Free() {
  const std::shared_ptr<OutgoingArea> area = std::exchange(area_, nullptr);
  if (area != nullptr && !handed_over_)
    std::erase_if(area->busy_, [this](const OutgoingArea::Busy& busy) { return busy.begin == offset_; });
}

void OutgoingArea::TakeBack() {
  std::erase_if(busy_, [this](const Busy& busy) {
    return busy.handed_over && HeaderAt(area_, busy.begin)->done.load(std::memory_order_acquire) == 1;
  });
}

Extent OutgoingArea::Reserve(size_t bytes) {
  TakeBack();
  if (busy_.size() >= kMostBusy || bytes > area_.size() || area_.size() - bytes < kExtentHeader) return {};
  const uint64_t length = RoundUp(kExtentHeader + bytes, kExtentHeader);
  // Takes the first gap, so that the same memory is used again and again and stays in the cache.
  uint64_t begin = 0;
  auto next = busy_.begin();
  for (; next != busy_.end() && next->begin - begin < length; ++next) begin = next->end;
  if (length > area_.size() - begin || !Commit(begin + length)) return {};
  busy_.insert(next, {begin, begin + length, false});
  auto* header = new (area_.data() + begin) ExtentHeader;
  header->ready.store(0, std::memory_order_relaxed);
  header->done.store(0, std::memory_order_relaxed);
  CheckUse(begin + length);
  return {shared_from_this(), begin, area_.subspan(begin + kExtentHeader, bytes)};
}

// Commits memory in one call: that is cheaper than page by page, and a system without memory returns an error instead
// of sending a signal.
bool OutgoingArea::Commit(uint64_t end) {
  const uint64_t needed = RoundUp(end, kShmPage);
  if (needed <= committed_) return true;
#ifdef MADV_POPULATE_WRITE
  // EINVAL: the kernel is older than 5.14 and commits page by page.
  if (madvise(area_.data() + committed_, needed - committed_, MADV_POPULATE_WRITE) != 0 && errno != EINVAL)
    return false;
#endif
  committed_ = needed;
  return true;
}

void OutgoingArea::CheckUse(uint64_t end) {
  highest_ = std::max(highest_, end);
  if (++taken_ < kWindow) return;
  const uint64_t used = std::max(highest_, busy_.empty() ? 0 : busy_.back().end);
  const uint64_t half = RoundUp(committed_ / 2, kShmPage);
  if (used <= half && madvise(area_.data() + half, committed_ - half, MADV_REMOVE) == 0) committed_ = half;
  taken_ = 0;
  highest_ = 0;
}

bool IncomingArea::Begin(uint64_t offset, uint64_t bytes) {
  if (offset % kExtentHeader != 0 || offset > area_.size() || area_.size() - offset < kExtentHeader ||
      bytes > area_.size() - offset - kExtentHeader)
    return false;
  ExtentHeader* header = HeaderAt(area_, offset);
  ready_ = &header->ready;
  done_ = &header->done;
  bytes_ = area_.subspan(offset + kExtentHeader, bytes);
  taken_ = 0;
  borrowed_ = false;
  return true;
}

uint64_t IncomingArea::Ready() const { return std::min<uint64_t>(ready_->load(), bytes_.size()); }

bool IncomingArea::HasBytes() const { return active() && Ready() > taken_; }

ByteSpan IncomingArea::Take(size_t most) {
  const uint64_t ready = Ready();
  if (ready <= taken_) return {};
  const ByteSpan next = bytes_.subspan(taken_, std::min<uint64_t>(most, ready - taken_));
  taken_ += next.size();
  return next;
}

BorrowedBytes IncomingArea::Borrow() {
  borrowed_ = true;
  return {bytes_, memory_, done_};
}

void IncomingArea::End() {
  if (active() && !borrowed_) done_->store(1, std::memory_order_release);
  done_ = nullptr;
}

}  // namespace muster
