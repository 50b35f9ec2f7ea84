// The Python programs that muster runs beside another system whose language that is, as Ray's. They are files beside
// this one and in the rooms of the systems, and part of the program muster: muster/CMakeLists.txt makes texts of them.
#pragma once

#include <string>

#include "absl/status/status.h"
#include "absl/types/span.h"

namespace muster {

// The folder with a driver's files, beside the script of the job.
inline constexpr char kDriverFolder[] = "driver";

struct DriverProgram {
  const char* name;  // of its file
  const char* text;
};

// Those that every driver needs.
extern const DriverProgram kSharedDriverPrograms[2];

// Writes them and these into the folder kDriverFolder beside `script`. Internal: its disk has no room.
[[nodiscard]] absl::Status PutDriver(const std::string& script, absl::Span<const DriverProgram> programs);

}  // namespace muster
