#include "muster/launch/agent/entry_sender.h"

#include <algorithm>

#include "absl/strings/str_cat.h"

namespace muster {

uint64_t EntrySender::Add(EntryKind kind, std::string body, const CommandId& about) {
  kept_.push_back({++last_number_, kind, std::move(body), about});
  kept_bytes_ += Size(kept_.back());
  return last_number_;
}

const EntrySender::Entry* EntrySender::Next() {
  if (sent_ == kept_.size()) return nullptr;
  const Entry& entry = kept_[sent_];
  if (sent_ > received_ && sent_bytes_ + Size(entry) > in_flight_bytes_) return nullptr;
  ++sent_;
  sent_bytes_ += Size(entry);
  ever_sent_ = std::max(ever_sent_, entry.number);
  return &entry;
}

absl::Status EntrySender::Acknowledge(uint64_t number, absl::FunctionRef<void(const Entry&)> done) {
  if (number < acknowledged())
    return absl::InvalidArgumentError(absl::StrCat("entry ", number, " is acknowledged after entry ", acknowledged()));
  if (number > ever_sent_)
    return absl::InvalidArgumentError(
        absl::StrCat("entry ", number, " is acknowledged, but only ", ever_sent_, " were sent"));
  while (!kept_.empty() && kept_.front().number <= number) {
    const Entry entry = std::move(kept_.front());
    kept_.pop_front();
    kept_bytes_ -= Size(entry);
    if (received_ > 0) {
      --received_;
    } else if (sent_ > 0) {
      sent_bytes_ -= Size(entry);
    }
    if (sent_ > 0) --sent_;
    done(entry);
  }
  return absl::OkStatus();
}

absl::Status EntrySender::NoteReceived(uint64_t number) {
  if (number > ever_sent_)
    return absl::InvalidArgumentError(
        absl::StrCat("entry ", number, " is said to have come, but only ", ever_sent_, " were sent"));
  for (; received_ < sent_ && kept_[received_].number <= number; ++received_) sent_bytes_ -= Size(kept_[received_]);
  return absl::OkStatus();
}

void EntrySender::Rewind() {
  sent_ = 0;
  received_ = 0;
  sent_bytes_ = 0;
}

void EntrySender::DropNewest() {
  if (kept_.empty()) return;
  kept_bytes_ -= Size(kept_.back());
  kept_.pop_back();
  --last_number_;
}

}  // namespace muster
