#include "muster/launch/registry/files/job_file.h"

#include <unistd.h>

#include <cstddef>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

constexpr size_t kMostJobBytes = 16 << 10;

std::string KilledFile(const std::string& path) { return absl::StrCat(path, "_killed"); }

}  // namespace

absl::StatusOr<std::optional<JobOfRun>> ReadJobFile(const std::string& path) {
  const auto text = PosixFileSystem().ReadShortFile(path, kMostJobBytes);
  if (absl::IsNotFound(text.status())) return std::optional<JobOfRun>();
  RETURN_IF_ERROR(text.status());
  const nlohmann::json object = nlohmann::json::parse(*text, nullptr, /*allow_exceptions=*/false);
  try {
    return std::optional<JobOfRun>(
        {.engine = object.at("engine").get<std::string>(),
         .id = object.at("id").get<std::string>(),
         .at = object.value("at", ""),
         .host = object.at("host").get<std::string>(),
         .chain = object.at("chain").get<int>(),
         .requeues = object.at("requeues").get<int>(),
         .restarts = object.at("restarts").get<int>(),
         .wants_another = object.at("wants_another").get<bool>(),
         .doubtful = object.value("doubtful", false),
         .killed = object.at("killed").get<bool>() || PosixFileSystem().Exists(KilledFile(path)),
         .no_room = object.value("no_room", ""),
         .again_at = object.value("again_at", 0.0),
         .tries = object.value("tries", 0),
         .turn = object.value("turn", 0),
         .ending_seconds = object.at("ending_seconds").get<double>()});
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError(absl::StrCat(path, " isn't what muster writes; without it the run counts as lost"));
  }
}

absl::Status WriteJobFile(const std::string& path, const JobOfRun& job) {
  const nlohmann::json object = {{"engine", job.engine},
                                 {"id", job.id},
                                 {"at", job.at},
                                 {"host", job.host},
                                 {"chain", job.chain},
                                 {"requeues", job.requeues},
                                 {"restarts", job.restarts},
                                 {"wants_another", job.wants_another},
                                 {"doubtful", job.doubtful},
                                 {"killed", job.killed},
                                 {"no_room", job.no_room},
                                 {"again_at", job.again_at},
                                 {"tries", job.tries},
                                 {"turn", job.turn},
                                 {"ending_seconds", job.ending_seconds}};
  return ReplaceFile(path, object.dump() + "\n", Durability::kDisk);
}

absl::Status NoteKilled(const std::string& path) { return ReplaceFile(KilledFile(path), "", Durability::kDisk); }

void RemoveJobFile(const std::string& path) {
  unlink(path.c_str());
  unlink(KilledFile(path).c_str());
}

}  // namespace muster
