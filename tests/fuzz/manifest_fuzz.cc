// Any bytes as a manifest, with a matching checksum so that they reach the parser: parsing fails with a Status or gives
// a valid manifest that is unchanged when written and parsed again.
#include <cstdint>
#include <string>

#include "absl/strings/str_format.h"
#include "muster/base/bytes.h"
#include "muster/base/check.h"
#include "muster/base/crc32c.h"
#include "muster/checkpoint/manifest.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string covered(reinterpret_cast<const char*>(data), size);
  const uint32_t checksum = muster::Crc32c(muster::AsBytes(covered.data(), covered.size()));
  const auto manifest = muster::ParseManifest(absl::StrFormat("{\"crc32c\":\"%08x\",%s", checksum, covered), "fuzzed");
  muster::ParseManifest(covered, "fuzzed").status().IgnoreError();
  if (!manifest.ok()) return 0;
  MUSTER_CHECK(muster::ValidateManifest(*manifest).ok());
  const auto again = muster::ParseManifest(muster::SerializeManifest(*manifest), "written");
  MUSTER_CHECK(again.ok() && *again == *manifest);
  return 0;
}
