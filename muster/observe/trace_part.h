// The part of a trace that one task writes (docs/observe.md): lines of Chrome's trace format, which trace viewers open
// as it is. Lines are added while the task runs, so that a killed task leaves what it has written; only the last line
// may then be cut off. Pure functions.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/observe/event_ring.h"

namespace muster {

// A measurement of ps 0's clock against this task's: an event at this task's time t was at t + offset of ps 0's clock.
// The error is at most the uncertainty, half the duration of the fastest request and reply.
struct ClockSample {
  int64_t at = 0;
  int64_t offset = 0;
  int64_t uncertainty = 0;
};

// The writer of a part.
struct TraceIdentity {
  std::string task;  // "worker:1"
  int64_t pid = 0;
  std::string host;   // of this boot of the machine: tasks with the same host have the same clock. Empty: unknown
  int64_t begin = 0;  // nanoseconds of its clock, when it began
};

// Returns this process's host for TraceIdentity.
std::string ThisHost();

// These make lines, each with its line end.
std::string PartHead(const TraceIdentity& identity);
void AppendTrackName(int64_t pid, size_t track, std::string_view name, std::string& to);
void AppendEvent(int64_t pid, size_t track, const TraceEvent& event, std::string& to);
void AppendClockSample(int64_t pid, const ClockSample& sample, std::string& to);
// Makes the part a complete JSON text. `left_out`: events that came too fast to be written.
std::string PartEnd(int64_t pid, uint64_t left_out);

// A part that was read.
struct TracePart {
  TraceIdentity identity;
  std::vector<ClockSample> clock;          // in order of time
  std::vector<std::string_view> metadata;  // lines without a time: names of threads
  std::vector<std::string_view> events;    // lines with a time
  bool ended = false;                      // the task closed it
  uint64_t left_out = 0;
};

// `text` must outlive the result. InvalidArgument: it isn't the beginning of a part.
absl::StatusOr<TracePart> ParsePart(std::string_view text);

// Returns the line of an event (or of metadata) with its time moved by `offset` nanoseconds and another process number,
// without the comma at its end. Nullopt: it isn't such a line.
std::optional<std::string> MovedLine(std::string_view line, int64_t offset, int64_t pid);
// Returns the time in an event's line, in nanoseconds.
std::optional<int64_t> TimeOf(std::string_view line);

}  // namespace muster
