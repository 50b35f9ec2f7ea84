#include "muster/transport/loopback/loopback_link.h"

#include <algorithm>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Copies min(total of `from`, total of `to`, `limit`) bytes.
void CopySegments(absl::Span<const ByteSpan> from, const MutableSegments& to, size_t limit) {
  size_t target = 0;
  size_t used = 0;  // of to[target]
  for (ByteSpan piece : from) {
    while (!piece.empty() && target < to.size() && limit > 0) {
      const size_t n = std::min({piece.size(), to[target].size() - used, limit});
      if (n > 0) std::memcpy(to[target].data() + used, piece.data(), n);
      piece = piece.subspan(n);
      limit -= n;
      used += n;
      if (used == to[target].size()) {
        ++target;
        used = 0;
      }
    }
  }
}

}  // namespace

bool LoopbackMessage::CopyBulk(const MutableSegments& to, size_t bytes) {
  if (taken) {
    CopySegments({ByteSpan(*taken)}, to, bytes);
    return true;
  }
  MutexLock lock(mutex);
  if (live) CopySegments(bulk, to, bytes);
  return live;
}

std::optional<absl::StatusOr<Reply>> LoopbackMessage::Take(absl::Status status, absl::string_view control,
                                                           absl::Span<const ByteSpan> answer) {
  if (!status.ok()) return status;
  const size_t bytes = TotalBytes(answer);
  MutexLock lock(mutex);
  if (!live) return std::nullopt;
  if (bytes > TotalBytes(into))
    return absl::DataLossError(absl::StrCat("a reply of ", bytes, " bytes doesn't fit into ", TotalBytes(into)));
  CopySegments(answer, into, bytes);
  return Reply{std::string(control), bytes};
}

}  // namespace muster
