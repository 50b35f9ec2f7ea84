// What the submitter has of a run's folder, as the head of a question of `muster home parts`, and how the answer's
// parts are written there. Internal to the mirror. Blocking; stateless.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/far_home/far_message.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/registry/home.h"

namespace muster {

// A question about the logs of as many tasks as fit, in the order of their names.
struct FarQuestion {
  nlohmann::json head;
  std::string last;  // of these tasks; "": all that follow
};
// `after`: the task before the first; "": none. Errors: a file of this side can't be read.
absl::StatusOr<FarQuestion> PartsQuestion(const Home& home, const ExperimentId& id, const std::string& job,
                                          const std::string& after);

// DataLoss: an answer names a place that it may not.
absl::Status NotOfAnAnswer(const std::string& place);

// A part of an answer, checked.
struct FarPart {
  std::string place;
  FarPlace kind;
  uint64_t offset = 0;
  bool gone = false;
  std::string bytes;
};
// Returns the parts in the order in which they are to be written. DataLoss: one of them may not be.
absl::StatusOr<std::vector<FarPart>> ParseParts(const FarMessage& answer);

// Writes one below the run's folder. A part that doesn't fit what is there, as another was written meanwhile, is passed
// over. DataLoss: records that aren't; the file is as before. Other errors are those of OpenBelow and of writing.
[[nodiscard]] absl::Status WritePart(const Home& home, const ExperimentId& id, const FarPart& part);

// Removes the oldest files of each task's log until they have at most so many bytes together.
void BoundLogs(const Home& home, const ExperimentId& id, int64_t log_bytes);

}  // namespace muster
