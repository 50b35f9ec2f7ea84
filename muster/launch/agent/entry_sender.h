// One direction's entries, from the sender's side: numbers them, keeps them until they are acknowledged, and sends them
// again from the lowest one on a new stream (docs/agents.md, "Numbers"). Not thread-safe.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <string>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/status/status.h"
#include "muster/launch/agent/entries.h"

namespace muster {

class EntrySender {
 public:
  struct Entry {
    uint64_t number = 0;
    EntryKind kind = EntryKind::kNone;
    std::string body;
    CommandId about;  // the command that it answers or the launch whose end it tells; else zero
  };

  // At most `in_flight_bytes` are on their way at once, but always one entry. An entry is on its way until it is
  // acknowledged, or the other end says that it has come.
  explicit EntrySender(size_t in_flight_bytes) : in_flight_bytes_(in_flight_bytes) {}

  // Returns the entry's number.
  uint64_t Add(EntryKind kind, std::string body, const CommandId& about = {});
  // Returns the next entry to send, which then counts as sent; null if there is none or too much is on its way. Valid
  // until the next call.
  const Entry* Next();
  // Removes the entries up to `number` and tells `done` of each. InvalidArgument if an entry of that number was never
  // sent, or if more than that was acknowledged before.
  [[nodiscard]] absl::Status Acknowledge(uint64_t number, absl::FunctionRef<void(const Entry&)> done);
  // The entries up to `number` have come on this stream; they are kept all the same. InvalidArgument if an entry of
  // that number was never sent.
  [[nodiscard]] absl::Status NoteReceived(uint64_t number);
  // There is a new stream: nothing is on its way any more.
  void Rewind();
  // Forgets the newest entry, so that the next one gets its number: PlantedAgentBug::kDropHighest.
  void DropNewest();

  size_t kept_bytes() const { return kept_bytes_; }
  bool empty() const { return kept_.empty(); }
  uint64_t acknowledged() const { return last_number_ - kept_.size(); }

 private:
  // What an entry takes in memory besides its body, roughly: many little ones aren't for nothing.
  static constexpr size_t kEntryOverhead = 128;
  static size_t Size(const Entry& entry) { return entry.body.size() + kEntryOverhead; }

  const size_t in_flight_bytes_;
  std::deque<Entry> kept_;  // without gaps
  uint64_t last_number_ = 0;
  size_t sent_ = 0;         // of `kept_`, on this stream
  size_t received_ = 0;     // of these
  uint64_t ever_sent_ = 0;  // the highest number
  size_t kept_bytes_ = 0;
  size_t sent_bytes_ = 0;  // of what is on its way
};

}  // namespace muster
