// What stands in a column of the registry as text or bytes, and records made of rows. Stateless, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/launch/registry/registry.h"
#include "muster/launch/registry/sqlite.h"
#include "muster/launch/spec/parameters.h"

namespace muster {

// {"learning-rate":"0.1"}. InvalidArgument naming the parameter that isn't text (UTF-8).
absl::StatusOr<std::string> ParametersText(const ParameterValues& parameters);
absl::StatusOr<ParameterValues> ParseParametersText(std::string_view text);

// {"no_gpus":false,…}. Keys that aren't there have their defaults.
std::string OptionsText(const SubmitOptions& options);
absl::StatusOr<SubmitOptions> ParseOptionsText(std::string_view text);

// Each "NAME=VALUE" ends with a zero byte, as the kernel has them: their bytes needn't be text.
std::string EnvironmentBytes(const std::vector<std::string>& environment);
std::vector<std::string> ParseEnvironmentBytes(std::string_view bytes);

// Of kRunColumns (registry_schema.h) and kTaskColumns. DataLoss: not what this program writes.
absl::StatusOr<RunRecord> RunOfRow(const SqliteStatement& row);
inline constexpr char kTaskColumns[] =
    "job, task, state, since_us, pid, cgroup, status_address, gpus, mem_limit, restarts, exit_code, exit_signal, "
    "reason";
absl::StatusOr<TaskRecord> TaskOfRow(const SqliteStatement& row);

}  // namespace muster
