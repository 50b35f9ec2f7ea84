// Converts the registry's text and byte columns, and makes records of rows. Stateless, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/sqlite.h"
#include "muster/launch/spec/parameters.h"

namespace muster {

// Returns {"learning-rate":"0.1"}. InvalidArgument naming a parameter that isn't text (UTF-8).
absl::StatusOr<std::string> ParametersText(const ParameterValues& parameters);
absl::StatusOr<ParameterValues> ParseParametersText(std::string_view text);

// Returns {"no_gpus":false,…}. When parsing, missing keys get their defaults.
std::string OptionsText(const SubmitOptions& options);
absl::StatusOr<SubmitOptions> ParseOptionsText(std::string_view text);

// Ends each "NAME=VALUE" with a zero byte, as the kernel does, because its bytes needn't be text.
std::string EnvironmentBytes(const std::vector<std::string>& environment);
std::vector<std::string> ParseEnvironmentBytes(std::string_view bytes);

// Read rows of kRunColumns (registry_schema.h) and kTaskColumns. DataLoss: the row isn't what this program writes.
absl::StatusOr<RunRecord> RunOfRow(const SqliteStatement& row);
inline constexpr char kTaskColumns[] =
    "job, task, state, since_us, pid, cgroup, status_address, gpus, mem_limit, restarts, exit_code, exit_signal, "
    "reason, host";
absl::StatusOr<TaskRecord> TaskOfRow(const SqliteStatement& row);

}  // namespace muster
