// What the other side of a stream between a supervisor and an agent may send. Any bytes as every entry: decoding fails
// or gives an entry that is the same when written and read again. Any bytes as a stream in either direction: frames in
// their order within the limits, or an error; with a MAC nothing.
#include <cstdint>
#include <string>
#include <vector>

#include "muster/base/bytes.h"
#include "muster/base/check.h"
#include "muster/launch/agent/agent_frame.h"
#include "muster/launch/agent/entries.h"

namespace muster {
namespace {

template <typename Entry>
void FuzzEntry(const std::string& bytes) {
  const auto entry = DecodeEntry<Entry>(bytes);
  if (!entry.ok()) return;
  const auto written = EncodeEntry(*entry);
  if (!written.ok()) return;  // one byte may become ten
  const auto again = DecodeEntry<Entry>(*written);
  MUSTER_CHECK(again.ok() && *EncodeEntry(*again) == *written);
}

void FuzzStream(ByteSpan input, FrameDirection direction) {
  AgentFrameReader reader(direction);
  reader.Add(input);
  for (uint64_t number = 1;; ++number) {
    const auto frame = reader.Next();
    if (!frame.ok() || !frame->has_value()) return;
    MUSTER_CHECK((*frame)->number == number && (*frame)->body.size() <= kMaxEntryBytes);
  }
}

// Nobody without the key makes a frame.
void FuzzMac(ByteSpan input) {
  AgentFrameReader reader(FrameDirection::kToAgent, FrameMac("secret", "hellos"));
  reader.Add(input);
  const auto frame = reader.Next();
  MUSTER_CHECK(!frame.ok() || !frame->has_value());
}

}  // namespace
}  // namespace muster

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const muster::ByteSpan input = muster::AsBytes(data, size);
  const std::string bytes(reinterpret_cast<const char*>(data), size);
  muster::ForEachEntry([&]<typename Entry>() { muster::FuzzEntry<Entry>(bytes); });
  muster::FuzzStream(input, muster::FrameDirection::kToAgent);
  muster::FuzzStream(input, muster::FrameDirection::kToSupervisor);
  muster::FuzzMac(input);
  return 0;
}
