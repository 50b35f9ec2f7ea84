// The name of this process's program, which begins its error messages: "digits", whatever path started it.
#pragma once

#include <cerrno>  // program_invocation_short_name
#include <string>

namespace muster {

inline std::string ProgramName() { return program_invocation_short_name; }

}  // namespace muster
