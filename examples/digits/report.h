// The report of the digits example for scripts: one JSON object in a file.
#pragma once

#include <string>

#include "muster/muster.h"

struct RunReport {
  double accuracy = 0;  // on the held-out part
  int64_t global_steps = 0;
  double seconds = 0;  // of training, from this process's first step to its last
  int64_t steps_in_that_time = 0;
  std::string checkpoint;
  std::vector<std::string> ps_status;  // one JSON page per ps
};

// Throws muster::Error if the file can't be written.
void WriteReport(const std::string& path, const RunReport& report);
