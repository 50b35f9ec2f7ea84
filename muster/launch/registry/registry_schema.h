// The tables of the registry (docs/experiments/registry.md) and the queries whose speed must not depend on how
// many experiments there have been. Stateless.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {

// In the file as PRAGMA user_version. Another number for whatever an older muster would misread or break.
inline constexpr int64_t kRegistryFormat = 1;
// In the file as PRAGMA application_id: "Mstr".
inline constexpr int64_t kRegistryApplication = 0x4d737472;

// Makes the tables in an empty database; experiments are numbered from `after`() + 1 then. FailedPrecondition: of a
// newer muster, or another program's database, neither of which is touched.
[[nodiscard]] absl::Status PrepareRegistry(SqliteDatabase& database, const std::function<int64_t()>& after);

// What RunOfRow (registry_rows.h) reads; of `runs r` and `experiments e`.
inline constexpr char kRunColumns[] =
    "r.number, r.run, e.project, r.state, r.reason, r.parameters, r.output_dir, r.tree, e.folder, r.attempt,"
    " CASE r.run WHEN 0 THEN e.runs ELSE 0 END, r.exit_code, r.supervisor, r.created_us, r.ended_us";
// Experiments, newest first. Parameters: the project if `of_project`, then how many at most (-1: all).
std::string ListQuery(bool of_project, bool only_open);
// Number of the newest experiment. Parameter: the project if `of_project`.
std::string LastQuery(bool of_project);
// Number, run and state of all that haven't ended, runs of grids included; by experiment.
inline constexpr char kOpenRunsQuery[] =
    "SELECT number, run, state FROM runs INDEXED BY runs_open WHERE ended_us IS NULL ORDER BY number, run";

}  // namespace muster
