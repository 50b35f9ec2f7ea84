// Takes known flags out of a command line, as `--flag=value` or `--flag value`, and leaves the others to the program.
// Shared by the flags of a task (task_flags.h) and those of the algorithms (algo/choice/algorithm_choice.h). Pure
// functions, thread-safe.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "absl/functional/function_ref.h"
#include "absl/status/statusor.h"

namespace muster {

struct KnownFlag {
  std::string name;      // without the dashes; GivenFlag and messages use this name
  std::string accepted;  // the accepted values, for messages
  // A switch may stand alone: `--flag` means `--flag=1`, and the next word isn't taken as its value.
  bool is_switch = false;
  // An empty value means none, as of a folder in a script: --model_dir="$MODEL_DIR". Numbers and choices have no such
  // value, so that an unset variable doesn't silently become the default.
  bool may_be_empty = false;
};

struct GivenFlag {
  std::string name;
  std::string value;  // empty only if that flag may be
};

struct FlagScan {
  std::vector<GivenFlag> given;  // in order, with repetitions
  std::vector<size_t> kept;      // positions of the words that aren't taken
};

// `arguments` are without the program's name; everything after "--" is kept as it is. `find` receives the name of a
// word of the form --name or --name=value, and returns nullopt if the flag belongs to the program. InvalidArgument: a
// flag without a value, or with an empty one that may not be.
absl::StatusOr<FlagScan> ScanFlags(const std::vector<std::string>& arguments,
                                   absl::FunctionRef<std::optional<KnownFlag>(const std::string& name)> find);

// Prepares a command line for CLI11, which takes `--flag=` for a flag without a value and the next word for that value:
// writes `--flag=` as two words, the second empty. Everything else, and all after "--", stays. `find` is as in
// ScanFlags. InvalidArgument: an empty value that may not be.
absl::StatusOr<std::vector<std::string>> SplitEmptyValues(
    const std::vector<std::string>& arguments,
    absl::FunctionRef<std::optional<KnownFlag>(const std::string& name)> find);

// Returns main's arguments without the program's name, for ScanFlags.
std::vector<std::string> ArgumentsOf(int argc, char** argv);

// Removes all words but those at the positions `kept`. argv[0] stays, and argv ends with a null pointer.
void KeepArguments(const std::vector<size_t>& kept, std::vector<std::string>& arguments);
void KeepArguments(const std::vector<size_t>& kept, int& argc, char** argv);

}  // namespace muster
