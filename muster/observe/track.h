// What one thread of a task does, as it does it: its steps and, within them, its activities. The times of the steps are
// always kept (StepTimes); the events one by one only if there is a ring for them, which the Tracer empties into a
// file. Recording takes no lock and no memory. Used by one thread, but for what says otherwise. Who is given a Track
// may get null, and then records nothing: Span and StepScope see to that.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "muster/base/mutex.h"
#include "muster/observe/activity.h"
#include "muster/observe/event_ring.h"
#include "muster/observe/step_times.h"
#include "muster/observe/trace_clock.h"

namespace muster {

// What belongs to an event besides its time.
struct SpanDetail {
  uint64_t bytes = 0;
  uint64_t flow = 0;  // FlowOf
};

// The name of an update in the flows of a trace: whose, and its number. Never 0.
inline uint64_t FlowOf(uint64_t client, uint64_t sequence) {
  return ((client + 1) << 48) | (sequence & 0xffffffffffff);
}

class Track {
 public:
  // `clock` must outlive it. `ring_events`: 0 keeps no events.
  Track(std::string name, const TraceClock& clock, size_t ring_events = 0);

  // The name that a trace shows: "training".
  const std::string& name() const { return name_; }
  int64_t Nanos() const { return clock_.Nanos(); }

  // An activity that was measured otherwise than by a Span; within the innermost open one.
  void Record(Activity activity, int64_t begin, int64_t end, const SpanDetail& detail = {});

  // What it is doing from now on, if it is to be recorded when it is over.
  void NowDoing(Activity activity, int64_t since) {
    doing_.store(activity, std::memory_order_relaxed);
    doing_since_.store(since, std::memory_order_relaxed);
  }

  class Span;
  class StepScope;

  // Any thread.
  const StepTimes& times() const { return times_; }
  // What it is doing, and since when; kStep: none of the others.
  struct Doing {
    Activity activity{};
    int64_t since = 0;  // 0: it has not done anything yet
  };
  Doing doing() const { return {doing_.load(std::memory_order_relaxed), doing_since_.load(std::memory_order_relaxed)}; }
  // Whom it waits for, for people; empty: nobody worth a word. (Takes a lock: for waits that last.)
  void SetWaitingFor(std::string whom);
  std::string waiting_for() const;
  // Null: there is no ring. For the Tracer, the ring's consumer.
  EventRing* ring() { return ring_.get(); }
  // From now on events are kept, in a ring of that size if there is none yet; or they aren't any more. For the Tracer.
  void KeepEvents(size_t ring_events);
  void DropEvents() { kept_in_.store(nullptr, std::memory_order_release); }

 private:
  const std::string name_;
  const TraceClock& clock_;
  std::unique_ptr<EventRing> ring_;  // the consumer's; once there it stays, as somebody may be recording into it

  // The recording thread's.
  Span* open_ = nullptr;  // the innermost
  bool in_step_ = false;
  int64_t step_ = 0;
  int64_t step_begin_ = 0;
  std::array<int64_t, kActivities> parts_{};  // of the step that is open, without what is nested in each
  // The last span of each activity: since when, interruptions that aren't worth a word left out, and until when.
  struct Interrupted {
    int64_t since = -1;
    int64_t until = 0;
  };
  std::array<Interrupted, kActivities> interrupted_{};

  // Read by others.
  std::atomic<EventRing*> kept_in_;  // null: events aren't kept
  StepTimes times_;
  std::atomic<Activity> doing_{Activity::kStep};
  std::atomic<int64_t> doing_since_{0};
  mutable Mutex mutex_;
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_);
};

// An activity for as long as it lives. Spans of one track are nested; the time of an inner one is not the outer one's.
class Track::Span {
 public:
  // `track` may be null.
  Span(Track* track, Activity activity, SpanDetail detail = {}) : track_(track) {
    if (track_ != nullptr) Open(activity, detail);
  }
  ~Span() {
    if (track_ != nullptr) Close();
  }
  Span(const Span&) = delete;
  Span& operator=(const Span&) = delete;

 private:
  friend class Track;
  void Open(Activity activity, const SpanDetail& detail);
  void Close();

  Track* const track_;
  Activity activity_{};
  SpanDetail detail_;
  Span* outer_ = nullptr;
  int64_t begin_ = 0;
  int64_t since_ = 0;   // as Interrupted
  int64_t nested_ = 0;  // nanoseconds of spans within
};

// One step for as long as it lives. Not nested. A step that failed is given up and counts for nothing.
class Track::StepScope {
 public:
  // `track` may be null. `step`: the global step that is known now.
  StepScope(Track* track, int64_t step);
  ~StepScope();
  void GiveUp() { given_up_ = true; }
  StepScope(const StepScope&) = delete;
  StepScope& operator=(const StepScope&) = delete;

 private:
  Track* const track_;
  int64_t begin_ = 0;
  bool given_up_ = false;
};

}  // namespace muster
