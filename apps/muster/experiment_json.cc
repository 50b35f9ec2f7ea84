#include "apps/muster/experiment_json.h"

#include <string>

#include "apps/muster/experiment_command.h"

namespace muster {
namespace {

using Json = nlohmann::json;

// Null for what there isn't.
Json TimeOrNull(absl::Time time) { return time == absl::InfinitePast() ? Json() : Json(ShownTime(time)); }
Json PidOrNull(pid_t pid) { return pid == 0 ? Json() : Json(pid); }

}  // namespace

nlohmann::json JsonOf(const RunRecord& run) {
  const bool ended = HasEnded(run.state);
  return {
      {"id", run.id.ToString()},
      {"project", run.project},
      {"state", std::string(Name(run.state))},
      {"reason", run.reason},
      {"parameters", run.parameters},
      {"attempt", run.attempt},
      {"runs", run.runs},
      {"created", ShownTime(run.created)},
      {"ended", TimeOrNull(run.ended)},
      {"seconds", ended ? Json(absl::ToDoubleSeconds(run.ended - run.created)) : Json()},
      {"exit_code", ended ? Json(run.exit_code) : Json()},
      {"supervisor", PidOrNull(run.supervisor)},
      {"folder", run.folder},
      {"tree", run.tree},
      {"output_dir", run.output_dir},
  };
}

nlohmann::json JsonOf(const ExperimentId& id, const TaskRecord& task) {
  return {
      {"id", FullName(id, task.task)},
      {"state", std::string(Name(task.state))},
      {"since", TimeOrNull(task.since)},
      {"pid", PidOrNull(task.pid)},
      {"restarts", task.restarts},
      {"exit_code", task.exit.has_value() ? Json(task.exit->ShellCode()) : Json()},
      {"reason", task.reason},
      {"gpus", task.gpus},
      {"status_address", task.status_address},
  };
}

std::string OneLineJson(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster
