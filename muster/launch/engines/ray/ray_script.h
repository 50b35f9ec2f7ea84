// The script that a job of Ray runs, for users to read: what is asked of Ray on one line, and the start of the driver
// (docs/ray_engine.md). Pure, thread-safe.
#pragma once

#include <map>
#include <string>

#include "muster/launch/engines/job_engine.h"

namespace muster {

// Where a cluster of Ray is, for one that asks it.
struct RayPlace {
  std::string address;  // of the dashboard
  std::string python;   // a program that has Ray

  // "ADDRESS PYTHON"; neither has a space.
  std::string text() const;
  static RayPlace Parse(const std::string& text);
};

// Returns what each node is asked for, by Ray's names. Never empty, which Ray refuses.
std::map<std::string, double> RayResources(const JobRequest& request);

std::string RayScript(const JobRequest& request, const RayPlace& place);

}  // namespace muster
