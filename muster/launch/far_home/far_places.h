// Where the files of an experiment without a shared folder are, and which of them may come from the job
// (docs/far_homes.md). Files are opened without following any link. Stateless, thread-safe.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "absl/status/status.h"
#include "absl/status/statusor.h"
#include "muster/launch/registry/home.h"

namespace muster {

// Files in the run's folder at the submitter, by name.
inline constexpr char kFarLockName[] = "far_lock";            // held while one process fetches
inline constexpr char kFarCollectorName[] = "far_collector";  // held by the collector
inline constexpr char kFarLogName[] = "far.log";              // what the collector says
inline constexpr char kFarFreshName[] = "far_fresh";          // written after each fetch
inline constexpr char kFarSentName[] = "far_sent";            // the job that has the parcel
inline constexpr char kFarWantedName[] = "far_wanted";        // written by commands that look
inline constexpr char kFarAllName[] = "far_all";              // all output is wanted
inline constexpr char kFarLeftName[] = "far_left";            // output that has stayed behind
inline constexpr char kFarOutputsName[] = "far_outputs";      // versions of the files of the output that are here
inline constexpr char kFarPieceName[] = "far_piece";          // a file of the output that isn't whole yet
// Files in the run's folder in the job.
inline constexpr char kFarReceivedName[] = "received";    // the job whose parcel has come
inline constexpr char kFarIncomingName[] = "incoming";    // the parcel that comes
inline constexpr char kFarCollectedName[] = "collected";  // the job of which all has been fetched
inline constexpr char kFarLingersName[] = "lingers";      // its supervisor has ended

std::string FarFile(const Home& home, const ExperimentId& id, const char* name);

enum class PlaceKind { kAppended, kRecords, kWhole };
struct FarPlace {
  PlaceKind kind = PlaceKind::kWhole;
  uint64_t most = 0;  // bytes
  int rank = 0;       // lower ones are written first
};
// Returns what may come from the job for this name below the run's folder; nullopt: nothing.
std::optional<FarPlace> FarPlaceOf(std::string_view name);
// Whether the name may be that of a folder of a task's log.
bool IsTaskFolder(std::string_view name);
// Whether it is a path below a folder: no part of it is empty, "." or "..", or too long for a name.
bool IsPathBelow(std::string_view path);

// Opens a file below `folder` with these flags of open(2), and O_CLOEXEC. With O_CREAT, folders on the way are made,
// too, for the owner alone. Returns its descriptor. FailedPrecondition: a link or something else than a plain file is
// there. NotFound.
absl::StatusOr<int> OpenBelow(const std::string& folder, const std::string& path, int flags);
// Reads at most `most` bytes from `offset` on. Errors are those of OpenBelow.
absl::StatusOr<std::string> ReadBelow(const std::string& folder, const std::string& path, uint64_t offset, size_t most);
// Returns how long a file is; NotFound.
absl::StatusOr<uint64_t> SizeBelow(const std::string& folder, const std::string& path);
// Returns the hexadecimal SHA-256 of the 4 KiB before `offset`, which must be there.
absl::StatusOr<std::string> TailBelow(const std::string& folder, const std::string& path, uint64_t offset);

}  // namespace muster
