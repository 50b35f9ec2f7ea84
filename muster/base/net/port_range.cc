#include "muster/base/net/port_range.h"

#include <algorithm>
#include <fstream>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr int kLargest = 65535;
constexpr int kFirstForUsers = 1024;
constexpr int kUsualFirst = 20000, kUsualLast = 32767;
constexpr int kFirstOfLinux = 32768, kLastOfLinux = 60999;  // for outgoing connections, unless configured otherwise
// With fewer numbers, several runs would often choose the same ones.
constexpr int kEnough = 2000;

// `last` may be below `first`: there are none.
PortRange Between(int first, int last) {
  return {.first = static_cast<uint16_t>(first), .count = static_cast<uint16_t>(std::max(0, last - first + 1))};
}

bool IsPort(int number) { return number >= 1 && number <= kLargest; }

}  // namespace

std::string PortRange::ToString() const { return absl::StrCat(first, "-", first + count - 1); }

absl::StatusOr<PortRange> ParsePortRange(absl::string_view text) {
  const size_t dash = text.find('-');
  int first = 0, last = 0;
  if (dash != absl::string_view::npos && absl::SimpleAtoi(text.substr(0, dash), &first) &&
      absl::SimpleAtoi(text.substr(dash + 1), &last) && IsPort(first) && IsPort(last) && first <= last)
    return Between(first, last);
  return absl::InvalidArgumentError(absl::StrCat("'", text, "' is no range of ports; accepted: ", kPortRangeForm));
}

PortRange PortsOutside(const PortRange& outgoing) {
  const int first = outgoing.first, last = outgoing.first + outgoing.count - 1;
  if (outgoing.count == 0 || last < kUsualFirst || first > kUsualLast) return Between(kUsualFirst, kUsualLast);
  const std::vector<PortRange> parts = {Between(kUsualFirst, std::min(first - 1, kUsualLast)),
                                        Between(std::max(last + 1, kUsualFirst), kLargest),
                                        Between(kFirstForUsers, first - 1)};
  for (const PortRange& part : parts)
    if (part.count >= kEnough) return part;
  const PortRange largest = *std::max_element(parts.begin(), parts.end(),
                                              [](const PortRange& a, const PortRange& b) { return a.count < b.count; });
  return largest.count > 0 ? largest : Between(kUsualFirst, kUsualLast);
}

PortRange UsualPorts(const std::string& file) {
  std::ifstream text(file);
  int first = kFirstOfLinux, last = kLastOfLinux;
  if (!(text >> first >> last) || !IsPort(first) || !IsPort(last) || last < first)
    return PortsOutside(Between(kFirstOfLinux, kLastOfLinux));
  return PortsOutside(Between(first, last));
}

}  // namespace muster
