// Any bytes as a program give an error or names from inside of them.

#include "muster/base/check.h"
#include "muster/launch/system/elf_needs.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const auto needs = muster::NeedsOfElf({reinterpret_cast<const char*>(data), size});
  if (!needs.ok()) return 0;
  for (const std::string& library : needs->libraries) MUSTER_CHECK(library.size() < size);
  return 0;
}
