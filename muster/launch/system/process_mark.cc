#include "muster/launch/system/process_mark.h"

#include <algorithm>
#include <charconv>
#include <cstdint>

namespace muster {
namespace {

// Each mark has this bit and is less than twice that, so that a signed number can hold it.
constexpr rlim_t kMarkBit = rlim_t{1} << 62;
constexpr size_t kMarkDigits = 15;  // hexadecimal ones of the id: 60 bits

bool IsMark(rlim_t limit) { return (limit >> 62) == 1; }

}  // namespace

rlim_t MarkOf(const std::string& agent_id) {
  uint64_t number = 0;
  const size_t digits = std::min(agent_id.size(), kMarkDigits);
  std::from_chars(agent_id.data(), agent_id.data() + digits, number, 16);
  return kMarkBit | number;
}

void SetMark(rlim_t mark) {
  rlimit limit{};
  if (getrlimit(RLIMIT_RTTIME, &limit) != 0) return;
  limit.rlim_cur = mark;
  setrlimit(RLIMIT_RTTIME, &limit);
}

void ClearMark() {
  rlimit limit{};
  if (getrlimit(RLIMIT_RTTIME, &limit) != 0 || !IsMark(limit.rlim_cur)) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_RTTIME, &limit);
}

rlim_t MarkIn(std::string_view limits) {
  constexpr std::string_view kName = "Max realtime timeout";
  const size_t at = limits.find(kName);
  if (at == std::string_view::npos) return 0;
  std::string_view rest = limits.substr(at + kName.size());
  rest.remove_prefix(std::min(rest.find_first_not_of(' '), rest.size()));
  rlim_t limit = 0;  // unless it is "unlimited"
  std::from_chars(rest.data(), rest.data() + rest.size(), limit);
  return IsMark(limit) ? limit : 0;
}

}  // namespace muster
