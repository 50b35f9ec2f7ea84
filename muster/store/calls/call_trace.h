// Traces one push-and-pull through the ps, as seen by the thread that waits for it: handing the gradients over (push),
// until the first byte of the last ps's answer (wait), until its last byte (pull). A transport that doesn't say when
// bytes went out and came in counts as one that needs no time for it. Used by one thread.
#pragma once

#include <algorithm>

#include "muster/observe/track.h"
#include "muster/store/calls/store_call.h"

namespace muster {

class CallTrace {
 public:
  // Begins now. `track` may be null.
  explicit CallTrace(Track* track) : track_(track) {
    if (track_ == nullptr) return;
    begin_ = track_->Nanos();
    track_->NowDoing(Activity::kPush, begin_);
  }
  // The calls have been handed to their channels.
  void Sent() {
    if (track_ == nullptr) return;
    sent_ = track_->Nanos();
    track_->NowDoing(Activity::kWait, sent_);
  }
  // All calls in [first, last) have been answered. `flow`: of the update; 0: there was none.
  template <typename Iterator>
  void Answered(Iterator first, Iterator last, uint64_t flow) {
    if (track_ == nullptr) return;
    const int64_t end = track_->Nanos();
    int64_t began = 0;
    SpanDetail pushed{.flow = flow};
    SpanDetail pulled{.flow = flow};
    for (; first != last; ++first) {
      sent_ = std::max(sent_, first->answer->sent_at);
      began = std::max(began, first->answer->began_at);
      pushed.bytes += TotalBytes(first->bulk);
      pulled.bytes += first->answer->bulk_bytes;
    }
    sent_ = std::min(sent_, end);
    began = began > 0 ? std::clamp(began, sent_, end) : end;
    track_->Record(Activity::kPush, begin_, sent_, pushed);
    track_->Record(Activity::kWait, sent_, began);
    track_->Record(Activity::kPull, began, end, pulled);
    track_->NowDoing(Activity::kStep, end);
  }

 private:
  Track* const track_;
  int64_t begin_ = 0;
  int64_t sent_ = 0;
};

}  // namespace muster
