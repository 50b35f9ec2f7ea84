// Addresses for the servers that a test is about to start. For tests.
#pragma once

#include <deque>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/net/free_ports.h"

namespace muster {

// `count` different ones of the loopback. They stay this process's for a long while (until 100 later calls): a test
// program that runs beside it, and its connections, take none of them. Not thread-safe.
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
