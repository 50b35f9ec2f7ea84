// Where the time of a thread's steps went, by activity: the data of the step-time table and of the metrics. One thread
// adds, any thread reads.
#pragma once

#include <array>
#include <cstdint>
#include <deque>
#include <string>
#include <vector>

#include "muster/observe/activity.h"
#include "muster/observe/histogram.h"

namespace muster {

// One row of the table.
struct StepTimesRow {
  std::string what;      // an activity, or "other": time in no activity
  double median_us = 0;  // of a step's time in it
  double p99_us = 0;
  double mean_us = 0;
  double percent = 0;  // of the time of all steps
};

struct StepTimesTable {
  std::string task;   // "worker:0"
  std::string track;  // its thread
  uint64_t steps = 0;
  StepTimesRow whole;              // whole steps
  std::vector<StepTimesRow> rows;  // those that took any time, in the order of Activity; "other" last
};

// For people: a line of headings, a line for whole steps, and one line per row. Empty without steps.
std::string StepTimesText(const StepTimesTable& table);

class StepTimes {
 public:
  StepTimes();

  // Adds a step of `whole` nanoseconds; `parts[a]` of them were in activity a, outside activities nested in it.
  void Add(int64_t whole, const std::array<int64_t, kActivities>& parts);

  StepTimesTable Table(const std::string& task, const std::string& track) const;
  // Returns seconds per step; for kStep: of whole steps.
  HistogramSnapshot Seconds(Activity activity) const;

 private:
  // [kStep]: whole steps. Microseconds.
  std::deque<Histogram> microseconds_;
  Histogram other_;
};

}  // namespace muster
