// The messages between the two sides of an experiment without a shared folder (docs/far_homes.md): a question on the
// stdin of `muster home` in the job, and its answer on stdout. Whatever carries them may cut them, so each has its
// length and checksum. Stateless.
#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/engines/job_engine.h"

namespace muster {

// Bytes of a whole message behind its first line.
inline constexpr size_t kMostFarMessage = size_t{1} << 20;
// Bytes behind the head that surely fit beside it.
inline constexpr size_t kMostFarBytes = size_t{832} << 10;

struct FarMessage {
  nlohmann::json head = nlohmann::json::object();
  std::string bytes = "";
};

std::string FarMessageText(const FarMessage& message);
// DataLoss: it isn't whole, or isn't one.
absl::StatusOr<FarMessage> ParseFarMessage(std::string_view text);

// An answer that refuses.
FarMessage FarRefusal(const absl::Status& why);

// Asks `muster home VERB ID` in the job, again if the answer is cut. Returns the answer's refusal as an error of the
// same code. DataLoss: it was cut three times. Other errors are the engine's. Blocks as JobEngine::Ask.
absl::StatusOr<FarMessage> AskFar(JobEngine& engine, const std::string& job, const std::string& verb,
                                  const std::string& id, const FarMessage& question);

// Returns the SHA-256 of the bytes, as 64 hexadecimal digits.
std::string HexSha256(std::string_view bytes);

}  // namespace muster
