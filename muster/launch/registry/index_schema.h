// The tables of the index (docs/experiments/registry.md), and the queries whose speed must not depend on the
// number of past experiments. Stateless.
#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "absl/status/status.h"
#include "muster/launch/registry/sqlite.h"

namespace muster {

// Stored as PRAGMA user_version. Must change with whatever an older muster would misread or break.
inline constexpr int64_t kIndexFormat = 4;
// Stored as PRAGMA application_id: "Mstr".
inline constexpr int64_t kRegistryApplication = 0x4d737472;

// Makes the tables in an empty database, whose experiments are numbered from `after`() + 1. FailedPrecondition: made by
// a newer muster, or another program's database; neither is changed.
[[nodiscard]] absl::Status PrepareIndex(SqliteDatabase& database, const std::function<int64_t()>& after);

// The columns that RunOfRow (registry_rows.h) reads, of `runs r` and `experiments e`.
inline constexpr char kRunColumns[] =
    "r.number, r.run, e.project, r.state, r.reason, r.parameters, r.output_dir, r.tree, e.folder, r.attempt,"
    " CASE r.run WHEN 0 THEN e.runs ELSE 0 END, r.exit_code, r.supervisor, r.created_us, r.ended_us, r.run_id, "
    "r.machine";
// Returns a query for experiments, newest first. Parameters: the project if `of_project`, then the maximum (-1: all).
std::string ListQuery(bool of_project, bool only_open);
// Returns a query for the number of the newest experiment. Parameter: the project if `of_project`.
std::string LastQuery(bool of_project);
// Number, run, state and machine of all that haven't ended, including runs of grids, by experiment.
inline constexpr char kOpenRunsQuery[] =
    "SELECT number, run, state, machine FROM runs INDEXED BY runs_open WHERE ended_us IS NULL ORDER BY number, run";

// Number, run, run_id and machine of ended runs whose processes haven't been seen to end.
inline constexpr char kLeftRunsQuery[] =
    "SELECT number, run, run_id, machine FROM runs INDEXED BY runs_left"
    " WHERE run_id <> '' AND ended_us IS NOT NULL ORDER BY number, run";

}  // namespace muster
