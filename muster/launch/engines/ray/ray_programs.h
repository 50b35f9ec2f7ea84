// The Python programs that muster runs beside Ray (driver_programs.h).
#pragma once

#include "muster/launch/engines/driver/driver_programs.h"

namespace muster {

// Speaks with Ray's Jobs API: ray_client.py says what it is told and answers.
extern const char* const kRayClientProgram;

// What a job of Ray runs, with kSharedDriverPrograms in one folder: ray_driver.py gets nodes, starts agents on them and
// the supervisor beside itself.
extern const DriverProgram kRayDriverPrograms[4];

}  // namespace muster
