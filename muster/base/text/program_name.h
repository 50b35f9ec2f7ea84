// The name of a program, which begins its error messages: "digits", whatever path started it. Stateless.
#pragma once

#include <cerrno>  // program_invocation_name
#include <string>
#include <string_view>

namespace muster {

// Returns the last part of the path, main's argv[0]; by default that of this process.
inline std::string ProgramName(std::string_view path = program_invocation_name) {
  return std::string(path.substr(path.rfind('/') + 1));  // npos + 1 is 0
}

}  // namespace muster
