// Records what one thread of a task does: its steps and, within them, its activities. The times of the steps are always
// kept (StepTimes); single events only if there is a ring for them, which the Tracer empties into a file. Recording
// takes no lock and allocates nothing. Used by one thread, unless stated otherwise. A function's Track may be null, and
// then nothing is recorded: Span and StepScope handle that.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string>

#include "muster/base/mutex.h"
#include "muster/observe/activity.h"
#include "muster/observe/event_ring.h"
#include "muster/observe/step_times.h"
#include "muster/observe/trace_clock.h"

namespace muster {

// What an event has besides its time.
struct SpanDetail {
  uint64_t bytes = 0;
  uint64_t flow = 0;  // FlowOf
};

// Returns the name of an update in a trace's flows, from its client and its number. Never 0.
inline uint64_t FlowOf(uint64_t client, uint64_t sequence) {
  return ((client + 1) << 48) | (sequence & 0xffffffffffff);
}

class Track {
 public:
  // `clock` must outlive it. `ring_events`: 0 keeps no events.
  Track(std::string name, const TraceClock& clock, size_t ring_events = 0);

  // Returns the name that a trace shows: "training".
  const std::string& name() const { return name_; }
  int64_t Nanos() const { return clock_.Nanos(); }

  // Records an activity that wasn't measured by a Span; it counts as nested in the innermost open Span.
  void Record(Activity activity, int64_t begin, int64_t end, const SpanDetail& detail = {});

  // Sets the present activity, for one that is recorded only when it is over.
  void NowDoing(Activity activity, int64_t since) {
    doing_.store(activity, std::memory_order_relaxed);
    doing_since_.store(since, std::memory_order_relaxed);
  }

  class Span;
  class StepScope;

  // Any thread may call these.
  const StepTimes& times() const { return times_; }
  // What the thread is doing, and since when; kStep: none of the other activities.
  struct Doing {
    Activity activity{};
    int64_t since = 0;  // 0: it has done nothing yet
  };
  Doing doing() const { return {doing_.load(std::memory_order_relaxed), doing_since_.load(std::memory_order_relaxed)}; }
  // Sets the name of the task that the thread waits for, for people; empty: nobody worth mentioning. (Takes a lock: for
  // long waits.)
  void SetWaitingFor(std::string whom);
  std::string waiting_for() const;
  // Returns null without a ring. For the Tracer, the ring's consumer.
  EventRing* ring() { return ring_.get(); }
  // These start and stop keeping events, in a ring of `ring_events` if none exists yet. For the Tracer.
  void KeepEvents(size_t ring_events);
  void DropEvents() { kept_in_.store(nullptr, std::memory_order_release); }

 private:
  const std::string name_;
  const TraceClock& clock_;
  std::unique_ptr<EventRing> ring_;  // the consumer's; never removed, because a thread may be recording into it

  // Used by the recording thread only.
  Span* open_ = nullptr;  // the innermost
  bool in_step_ = false;
  int64_t step_ = 0;
  int64_t step_begin_ = 0;
  std::array<int64_t, kActivities> parts_{};  // of the open step, without what is nested in each
  // The last span of each activity: its begin, ignoring short interruptions, and its end.
  struct Interrupted {
    int64_t since = -1;
    int64_t until = 0;
  };
  std::array<Interrupted, kActivities> interrupted_{};

  // Read by other threads.
  std::atomic<EventRing*> kept_in_;  // null: events aren't kept
  StepTimes times_;
  std::atomic<Activity> doing_{Activity::kStep};
  std::atomic<int64_t> doing_since_{0};
  mutable Mutex mutex_;
  std::string waiting_for_ ABSL_GUARDED_BY(mutex_);
};

// Records an activity from construction to destruction. Spans of one track nest; an inner one's time isn't the outer
// one's.
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
  int64_t since_ = 0;   // see Interrupted
  int64_t nested_ = 0;  // nanoseconds of the spans within
};

// Records one step from construction to destruction. Steps don't nest. A step that failed is given up and isn't
// counted.
class Track::StepScope {
 public:
  // `track` may be null. `step`: the global step known now.
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
