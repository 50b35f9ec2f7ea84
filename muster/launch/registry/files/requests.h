// Requests to a supervisor on another machine, as files in the folder of its run (docs/experiments/state.md).
// Thread-safe.
#pragma once

#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"

namespace muster {

struct KillRequest {
  std::string name;  // of its file
  bool now = false;  // kill the tasks at once, without asking them to end
};

// Writes a request into the folder (Home::requests), which is made if it is missing, and returns its name. Errors are
// those of ReplaceFile.
absl::StatusOr<std::string> WriteKillRequest(const std::string& folder, bool now);
// Returns whether a supervisor has answered it, and removes the answer. An error: the supervisor doesn't know such
// requests.
absl::StatusOr<bool> TakeAnswer(const std::string& folder, const std::string& name);
// Takes back a request that nobody has answered.
void TakeRequestBack(const std::string& folder, const std::string& name);

// Says that somebody watches the run, for as long as this is called every few seconds. Makes the folder if it is
// missing; without the right to write, nothing is said.
void SayWatched(const std::string& folder);
// For the supervisor: changes whenever somebody has said that he watches; "": nobody has.
std::string WatchedMark(const std::string& folder);

// For the supervisor: answers all requests, removes them, and returns those that it knows.
std::vector<KillRequest> AnswerRequests(const std::string& folder);
// For the supervisor, at its start: removes what was asked of an earlier attempt.
void DropRequests(const std::string& folder);

}  // namespace muster
