// Addresses for the servers that a test is about to start. For tests only.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/net/free_ports.h"

namespace muster {

// Returns `count` different loopback addresses. They stay reserved for this process for a long while (until 100 later
// calls): no test program that runs at the same time, and none of its connections, takes them. Not thread-safe.
inline std::vector<std::string> FreeAddresses(int count) {
  static std::deque<FreePorts> kept;
  if (kept.size() == 100) kept.pop_front();
  auto ports = FreePorts::Reserve(count);
  MUSTER_CHECK(ports.ok());
  kept.push_back(*std::move(ports));
  std::vector<std::string> addresses;
  for (int i = 0; i < count; ++i) {
    kept.back().Release(i);
    addresses.push_back(absl::StrCat("127.0.0.1:", kept.back().port(i)));
  }
  return addresses;
}

}  // namespace muster
