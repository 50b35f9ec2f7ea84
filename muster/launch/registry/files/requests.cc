#include "muster/launch/registry/files/requests.h"

#include <unistd.h>

#include <nlohmann/json.hpp>
#include <optional>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/system/random_hex.h"

namespace muster {
namespace {

constexpr char kRequestEnd[] = ".json";
constexpr char kAnswerEnd[] = ".done";
constexpr char kWatchedName[] = "watched";
constexpr char kKillKind[] = "kill";
constexpr size_t kMostRequestBytes = 4096;

std::string RequestPath(const std::string& folder, const std::string& name) {
  return JoinPath(folder, absl::StrCat(name, kRequestEnd));
}

std::string AnswerPath(const std::string& folder, const std::string& name) {
  return JoinPath(folder, absl::StrCat(name, kAnswerEnd));
}

std::optional<KillRequest> ReadRequest(const std::string& folder, const std::string& name) {
  const auto text = PosixFileSystem().ReadShortFile(RequestPath(folder, name), kMostRequestBytes);
  if (!text.ok()) return std::nullopt;
  const nlohmann::json object = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (!object.is_object() || object.value("kind", nlohmann::json()) != kKillKind) return std::nullopt;
  const nlohmann::json now = object.value("now", nlohmann::json(false));
  return KillRequest{.name = name, .now = now.is_boolean() && now.get<bool>()};
}

}  // namespace

absl::StatusOr<std::string> WriteKillRequest(const std::string& folder, bool now) {
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(folder));
  const std::string name = RandomHex(8);
  RETURN_IF_ERROR(ReplaceFile(RequestPath(folder, name), nlohmann::json{{"kind", kKillKind}, {"now", now}}.dump(),
                              Durability::kProcess));
  return name;
}

absl::StatusOr<bool> TakeAnswer(const std::string& folder, const std::string& name) {
  const auto text = PosixFileSystem().ReadShortFile(AnswerPath(folder, name), kMostRequestBytes);
  if (absl::IsNotFound(text.status())) return false;
  RETURN_IF_ERROR(text.status());
  unlink(AnswerPath(folder, name).c_str());
  const nlohmann::json object = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  if (object.is_object() && object.contains("error")) return absl::UnimplementedError(object["error"].dump());
  return true;
}

void TakeRequestBack(const std::string& folder, const std::string& name) { unlink(RequestPath(folder, name).c_str()); }

void SayWatched(const std::string& folder) {
  if (!PosixFileSystem().CreateDirectory(folder).ok()) return;
  static_cast<void>(ReplaceFile(JoinPath(folder, kWatchedName), "", Durability::kProcess));
}

std::string WatchedMark(const std::string& folder) { return SignatureOf(JoinPath(folder, kWatchedName)); }

std::vector<KillRequest> AnswerRequests(const std::string& folder) {
  std::vector<KillRequest> known;
  const auto names = PosixFileSystem().ListDirectory(folder);
  if (!names.ok()) return known;
  for (const std::string& file : *names) {
    if (!absl::EndsWith(file, kRequestEnd)) continue;
    const std::string name(absl::StripSuffix(file, kRequestEnd));
    const std::optional<KillRequest> request = ReadRequest(folder, name);
    const nlohmann::json answer = request.has_value()
                                      ? nlohmann::json::object()
                                      : nlohmann::json{{"error", "the supervisor's muster knows no such request"}};
    // Without room for the answer, the request is carried out all the same: its writer sees the end.
    static_cast<void>(ReplaceFile(AnswerPath(folder, name), answer.dump(), Durability::kProcess));
    unlink(RequestPath(folder, name).c_str());
    if (request.has_value()) known.push_back(*request);
  }
  return known;
}

void DropRequests(const std::string& folder) { static_cast<void>(PosixFileSystem().RemoveTree(folder)); }

}  // namespace muster
