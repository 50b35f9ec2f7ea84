#include "muster/cluster/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>

#include <array>
#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

absl::Status BadAddress(std::string_view text, std::string_view why) {
  return absl::InvalidArgumentError(absl::StrCat("address ", Quoted(text), " ", std::string(why),
                                                 "; accepted: host:port, 10.0.0.1:port or [::1]:port"));
}

absl::StatusOr<uint16_t> ParsePort(std::string_view text, std::string_view port) {
  int number = 0;
  bool digits = !port.empty() && port.size() <= 5;
  for (char c : port) digits = digits && absl::ascii_isdigit(static_cast<unsigned char>(c));
  if (!digits || !absl::SimpleAtoi(absl::string_view(port.data(), port.size()), &number) || number < 1 ||
      number > 65535) {
    return BadAddress(text, "has no port from 1 to 65535");
  }
  return static_cast<uint16_t>(number);
}

// Returns the shortest form, so that two spellings of one address are equal. The zone ("%eth0") stays as it is.
absl::StatusOr<std::string> CanonicalIpv6(std::string_view text, std::string_view host) {
  std::string_view zone;
  if (size_t percent = host.find('%'); percent != std::string_view::npos) {
    zone = host.substr(percent);
    host = host.substr(0, percent);
    for (char c : zone.substr(1)) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)) && c != '.' && c != '_' && c != '-') zone = "%";
    }
    if (zone.size() < 2) return BadAddress(text, "has a zone that isn't one after \"%\"");
  }
  in6_addr parsed;
  std::array<char, INET6_ADDRSTRLEN> shortest;
  // inet_pton takes a C string: a zero byte inside would hide what follows it from the check.
  if (host.find('\0') != std::string_view::npos || inet_pton(AF_INET6, std::string(host).c_str(), &parsed) != 1 ||
      inet_ntop(AF_INET6, &parsed, shortest.data(), shortest.size()) == nullptr) {
    return BadAddress(text, "has something in brackets that isn't an IPv6 address");
  }
  return absl::StrCat(shortest.data(), std::string(zone));
}

// Accepts RFC 1123 names, and '_', which container networks put into theirs.
absl::Status ValidateName(std::string_view text, const std::string& host) {
  if (host.empty()) return BadAddress(text, "has no host");
  if (host.size() > 253) return BadAddress(text, "has a host of more than 253 letters");
  std::string_view name = host;
  if (name.size() > 1 && name.back() == '.') name.remove_suffix(1);
  std::vector<std::string> labels = absl::StrSplit(absl::string_view(name.data(), name.size()), '.');
  for (const std::string& label : labels) {
    bool good = !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-';
    for (char c : label) good = good && (absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '-');
    if (!good) return BadAddress(text, "has a host that is neither a name nor an IPv4 address");
  }
  // A host name can't end in a number (RFC 3696): "10.0.0.256" is a mistyped IPv4 address.
  bool numeric = true;
  for (char c : labels.back()) numeric = numeric && absl::ascii_isdigit(static_cast<unsigned char>(c));
  in_addr parsed;
  if (numeric && inet_pton(AF_INET, host.c_str(), &parsed) != 1) {
    return BadAddress(text, "has a host that isn't an IPv4 address but looks like one");
  }
  return absl::OkStatus();
}

}  // namespace

std::string HostPort::ToString() const {
  return is_ipv6 ? absl::StrCat("[", host, "]:", port) : absl::StrCat(host, ":", port);
}

absl::StatusOr<HostPort> ParseHostPort(std::string_view text) {
  HostPort result;
  if (!text.empty() && text.front() == '[') {
    size_t close = text.find(']');
    if (close == std::string_view::npos || close + 1 >= text.size() || text[close + 1] != ':') {
      return BadAddress(text, "lacks \"]:\" after its IPv6 address");
    }
    ASSIGN_OR_RETURN(result.host, CanonicalIpv6(text, text.substr(1, close - 1)));
    ASSIGN_OR_RETURN(result.port, ParsePort(text, text.substr(close + 2)));
    result.is_ipv6 = true;
    return result;
  }
  size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return BadAddress(text, "has no port");
  if (text.find(':') != colon) return BadAddress(text, "has more than one \":\"; an IPv6 address needs brackets");
  ASSIGN_OR_RETURN(result.port, ParsePort(text, text.substr(colon + 1)));
  result.host = absl::AsciiStrToLower(std::string(text.substr(0, colon)));
  RETURN_IF_ERROR(ValidateName(text, result.host));
  return result;
}

}  // namespace muster
