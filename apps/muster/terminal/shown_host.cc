#include "apps/muster/terminal/shown_host.h"

#include <cstdlib>

namespace muster {
namespace {

std::string& TakenHost() {
  static std::string host;
  return host;
}

}  // namespace

void TakeShownHost() {
  const char* const host = getenv(kShownHostVariable);
  TakenHost() = host == nullptr ? "" : host;
  unsetenv(kShownHostVariable);
}

const std::string& ShownHost() { return TakenHost(); }

}  // namespace muster
