// The Python programs that muster runs beside Spark (driver_programs.h).
#pragma once

#include "muster/launch/engines/driver/driver_programs.h"

namespace muster {

// Starts a job's driver: spark_client.py says what it is told and answers.
extern const char* const kSparkClientProgram;

// What a job of Spark runs, with kSharedDriverPrograms in one folder: spark_driver.py begins an application of Spark,
// whose tasks start agents, and the supervisor beside itself.
extern const DriverProgram kSparkDriverPrograms[8];

}  // namespace muster
