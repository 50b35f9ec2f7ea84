// The tracks of one task, and its part of the trace: a thread writes the contents of the tracks' rings to the file
// several times a second, so that recording never waits, and a killed task loses only the last moment. Without a path,
// nothing is written and no thread runs; step times are still kept. Thread-safe.
#pragma once

#include <deque>
#include <memory>
#include <string>
#include <thread>

#include "absl/status/statusor.h"
#include "muster/base/files/file_system.h"
#include "muster/base/mutex.h"
#include "muster/observe/trace_clock.h"
#include "muster/observe/trace_part.h"
#include "muster/observe/track.h"

namespace muster {

struct TracerOptions {
  std::string path;  // of the part; empty: none
  std::string task;  // "worker:0"
  absl::Duration flush_interval = absl::Milliseconds(200);
  // The events that a thread may record between two flushes; more are dropped and counted. 200 ms of steps of 100 µs
  // fill half.
  size_t ring_events = 1 << 15;
};

class Tracer {
 public:
  // `files` and `clock` must outlive it. InvalidArgument: the file can't be written.
  static absl::StatusOr<std::unique_ptr<Tracer>> Open(TracerOptions options, FileSystem& files,
                                                      const TraceClock& clock);
  ~Tracer();  // ends the part

  // Returns a new thread's track, which lives as long as the tracer.
  Track* AddTrack(std::string name);

  bool writes() const { return file_ != nullptr; }
  const std::string& path() const { return options_.path; }
  int64_t Nanos() const { return clock_.Nanos(); }
  // Records a measurement of the clocks (store/calls/clock_probe.h).
  void AddClockSample(const ClockSample& sample);

  // Writes what is recorded. The thread does so automatically, except for a capture without a file.
  void Flush();

  // Claims a capture: a separate part with the activities of all tracks for a while, with or without a file. The token
  // holds the claim. FailedPrecondition: another caller holds it.
  absl::StatusOr<std::shared_ptr<const void>> ClaimCapture();
  // For the token's holder: captures what ends from here on. Without a file, Flush must be called before the rings are
  // full.
  void BeginCapture();
  // Ends the capture and returns it as a complete JSON text.
  std::string EndCapture();

 private:
  Tracer(TracerOptions options, const TraceClock& clock, std::unique_ptr<WritableFile> file);
  void Work();
  void FlushLocked() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  uint64_t LeftOut() ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);
  void Write(const std::string& text) ABSL_EXCLUSIVE_LOCKS_REQUIRED(mutex_);

  const TracerOptions options_;
  const TraceClock& clock_;
  const int64_t pid_;
  const std::unique_ptr<WritableFile> file_;  // null: nothing is written

  Mutex mutex_;
  CondVar changed_;
  bool stopping_ ABSL_GUARDED_BY(mutex_) = false;
  bool failed_ ABSL_GUARDED_BY(mutex_) = false;  // to write: logged once, then given up
  std::deque<Track> tracks_ ABSL_GUARDED_BY(mutex_);
  std::weak_ptr<const void> claim_ ABSL_GUARDED_BY(mutex_);
  bool capturing_ ABSL_GUARDED_BY(mutex_) = false;
  std::string captured_ ABSL_GUARDED_BY(mutex_);
  uint64_t left_out_before_ ABSL_GUARDED_BY(mutex_) = 0;  // when the capture began
  std::thread thread_;
};

}  // namespace muster
