// Sorts row numbers in ascending order and remembers their places: finds the duplicates of a batch and divides rows
// among ps. A radix sort, because its passes don't depend on the rows: with random rows, a comparison is a branch that
// is mispredicted half the time. Keeps its memory for the next batch. Not thread-safe.
#pragma once

#include <bit>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace muster {

class RowOrder {
 public:
  struct Entry {
    uint64_t key;
    uint32_t place;  // index in the input
  };

  // Sorts `key(i)` of i < count, each below `limit`; stable. The result is valid until the next call.
  template <typename Key>
  std::span<const Entry> Sort(size_t count, uint64_t limit, const Key& key) {
    entries_.resize(count);
    other_.resize(count);
    for (size_t i = 0; i < count; ++i) entries_[i] = {key(i), static_cast<uint32_t>(i)};
    for (int shift = 0, bits = std::bit_width(limit); shift < bits; shift += kDigitBits) SortByDigit(shift);
    return entries_;
  }

 private:
  static constexpr int kDigitBits = 11;  // a million takes two passes, and the counters stay in the first-level cache
  static constexpr uint64_t kDigits = uint64_t{1} << kDigitBits;

  void SortByDigit(int shift) {
    const auto digit = [shift](const Entry& entry) { return (entry.key >> shift) & (kDigits - 1); };
    starts_.assign(kDigits, 0);
    for (const Entry& entry : entries_) ++starts_[digit(entry)];
    uint32_t sum = 0;
    for (uint32_t& start : starts_) {
      const uint32_t here = start;
      start = sum;
      sum += here;
    }
    for (const Entry& entry : entries_) other_[starts_[digit(entry)]++] = entry;
    entries_.swap(other_);
  }

  std::vector<Entry> entries_, other_;
  std::vector<uint32_t> starts_;
};

}  // namespace muster
