// The program that asks another system for a job's submitter, in that system's language: runs with the user's python
// from memory, prints one line of JSON, and says what is wrong as {"error": KIND, "text": …}.
#pragma once

#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "absl/time/time.h"
#include "muster/launch/engines/job_engine.h"

namespace muster {

// The kind of error of a program that hasn't answered within its patience: what it has done is unknown.
inline constexpr char kLateClient[] = "late";

struct ClientProgram {
  std::string system;  // "Ray": how it is named in errors
  std::string_view text;
  std::string python;
  std::vector<std::string> environment;  // "NAME=VALUE"
  std::string missing;                   // the kind of error if python itself isn't there
  // Returns the error of a kind: `missing`, kLateClient, "failed", or what the program said.
  std::function<absl::Status(const std::string& kind, const std::string& text)> error_of;
};

// Runs the program with these words behind its name; blocks, for `patience` at most. Returns the line that it printed.
absl::StatusOr<std::string> RunClientProgram(const ClientProgram& program, const std::vector<std::string>& words,
                                             absl::Duration patience);

// Reads the id of a job that the program has submitted. Unavailable: there is none in its answer.
absl::StatusOr<std::string> IdInAnswer(const std::string& system, const std::string& answer);

// Returns a text of the object; "?": it has none of this name.
std::string TextIn(const nlohmann::json& object, const char* key);

// Returns the last line with a word in it; "" if there is none.
std::string LastLineSaid(const std::string& text);

// Returns the job of the driver that has started this process. NotFound and other errors: as ReadDriverVariables.
absl::StatusOr<OwnJob> OwnJobOfDriver(const std::vector<std::string>& environment);

}  // namespace muster
