// Finds the pieces of memory that a range of bytes covers in a list of segments. Pure functions.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstring>

#include "muster/base/bytes.h"

namespace muster {

// Calls visit(piece) for the bytes [begin, begin + bytes) of `segments`, in order. Pieces aren't empty.
template <typename Spans, typename Visit>
void VisitRange(const Spans& segments, size_t begin, size_t bytes, const Visit& visit) {
  for (const auto& segment : segments) {
    if (bytes == 0) return;
    if (begin >= segment.size()) {
      begin -= segment.size();
      continue;
    }
    const size_t some = std::min(bytes, segment.size() - begin);
    visit(segment.subspan(begin, some));
    begin = 0;
    bytes -= some;
  }
}

// Calls visit(piece of `in`, its place in `out`) for `bytes` bytes of both, from `in_begin` and `out_begin` on.
template <typename Visit>
void VisitBoth(const Segments& in, size_t in_begin, const MutableSegments& out, size_t out_begin, size_t bytes,
               const Visit& visit) {
  VisitRange(in, in_begin, bytes, [&](ByteSpan from) {
    VisitRange(out, out_begin, from.size(), [&](MutableByteSpan to) {
      visit(from.first(to.size()), to.data());
      from = from.subspan(to.size());
      out_begin += to.size();
    });
  });
}

inline void CopyOut(const Segments& from, size_t begin, size_t bytes, std::byte* to) {
  VisitRange(from, begin, bytes, [&](ByteSpan piece) {
    std::memcpy(to, piece.data(), piece.size());
    to += piece.size();
  });
}

inline void CopyIn(const std::byte* from, const MutableSegments& to, size_t begin, size_t bytes) {
  VisitRange(to, begin, bytes, [&](MutableByteSpan piece) {
    std::memcpy(piece.data(), from, piece.size());
    from += piece.size();
  });
}

inline MutableSegments RangeOf(const MutableSegments& segments, size_t begin, size_t bytes) {
  MutableSegments range;
  VisitRange(segments, begin, bytes, [&](MutableByteSpan piece) { range.push_back(piece); });
  return range;
}

inline Segments ReadOnly(const MutableSegments& segments) { return {segments.begin(), segments.end()}; }

}  // namespace muster
