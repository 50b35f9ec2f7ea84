#include "muster/launch/system/random_hex.h"

#include <sys/random.h>

#include <cerrno>

#include "absl/strings/escaping.h"
#include "muster/base/check.h"

namespace muster {

std::string RandomHex(size_t bytes) {
  std::string random(bytes, '\0');
  ssize_t got;
  do {
    got = getrandom(random.data(), bytes, 0);  // never returns fewer for up to 256 bytes
  } while (got < 0 && errno == EINTR);
  MUSTER_CHECK(got == static_cast<ssize_t>(bytes));
  return absl::BytesToHexString(random);
}

}  // namespace muster
