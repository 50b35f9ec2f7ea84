// The job's side of fetching (docs/far_homes.md): what is new in the run's folder, within one message, and what the
// submitter asks of the supervisor. Blocking; several may answer at once.
#pragma once

#include "absl/status/statusor.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/registry/home.h"

namespace muster {

// Answers a question of `muster home parts`. InvalidArgument: no such question. NotFound: no such experiment is there.
absl::StatusOr<FarMessage> AnswerParts(const Home& home, const ExperimentId& id, const FarMessage& question);

// Answers a question of `muster home outputs`. InvalidArgument; NotFound: no such file, or it has changed.
absl::StatusOr<FarMessage> AnswerOutputs(const Home& home, const ExperimentId& id, const FarMessage& question);

// What `muster home VERB ID` prints for `input`: one of "receive", "parts" and "outputs". Errors are in it.
std::string AnswerFar(const Home& home, const std::string& verb, const std::string& id, const std::string& input);

}  // namespace muster
