// Takes flags that somebody knows out of a command line, as `--flag=value` or `--flag value`, and leaves the others to
// the program: what the flags of a task (task_flags.h) and those of the algorithms (algo/algorithm_choice.h) have in
// common. Pure functions, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace muster {

struct KnownFlag {
  std::string name;      // without the dashes; as it is given back and named in messages
  std::string accepted;  // as its value, for messages
  // A switch may stand alone: `--flag` is then `--flag=1`. The next word isn't taken for its value.
  bool is_switch = false;
};

struct GivenFlag {
  std::string name;
  std::string value;  // empty: --flag=
};

struct FlagScan {
  std::vector<GivenFlag> given;  // in order, one as often as it is there
  std::vector<size_t> kept;      // positions of the words that aren't taken
};

// `arguments` are without the program's name; what stands after "--" is kept, as it is. `find` is told a word of the
// form --name or --name=value, its name alone, and says nothing if the flag belongs to the program. InvalidArgument: a
// flag without a value.
absl::StatusOr<FlagScan> ScanFlags(const std::vector<std::string>& arguments,
                                   absl::FunctionRef<std::optional<KnownFlag>(const std::string& name)> find);

// Main's own without the program's name, for ScanFlags.
std::vector<std::string> ArgumentsOf(int argc, char** argv);

// Removes all but those words. argv[0] stays, and argv ends with a null pointer.
void KeepArguments(const std::vector<size_t>& kept, std::vector<std::string>& arguments);
void KeepArguments(const std::vector<size_t>& kept, int& argc, char** argv);

}  // namespace muster
