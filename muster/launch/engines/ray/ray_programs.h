// The Python programs that muster runs beside Ray, whose language that is. They are files of this folder, and part of
// the program muster: muster/CMakeLists.txt makes these texts of them.
#pragma once

namespace muster {

// Speaks with Ray's Jobs API: ray_client.py says what it is told and answers.
extern const char* const kRayClientProgram;

struct RayProgram {
  const char* name;  // of its file
  const char* text;
};
// What a job of Ray runs, files of one folder: ray_driver.py gets nodes, starts agents on them and the supervisor
// beside itself.
extern const RayProgram kRayDriverPrograms[3];

}  // namespace muster
