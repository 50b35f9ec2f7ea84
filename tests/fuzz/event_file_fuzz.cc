// Any bytes as an event file, or as events in records with correct checksums, give events or nothing.
#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/crc32c.h"
#include "muster/summary/event_file_reader.h"

namespace {

std::string Masked(const std::string& of) {
  const uint32_t checksum = muster::MaskedCrc32c(muster::AsBytes(of.data(), of.size()));
  return {reinterpret_cast<const char*>(&checksum), sizeof checksum};
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  for (const muster::SummaryEvent& event : muster::ReadEventFile(bytes)) event.ToString();
  const uint64_t length = size;
  const std::string header(reinterpret_cast<const char*>(&length), sizeof length);
  const std::string record = absl::StrCat(header, Masked(header), bytes, Masked(bytes));
  for (const muster::SummaryEvent& event : muster::ReadEventFile(record)) event.ToString();
  return 0;
}
