#include "apps/muster/experiment/experiment_json.h"

#include <string>

#include "apps/muster/experiment/experiment_command.h"

namespace muster {
namespace {

// Returns null for an unset time.
nlohmann::json TimeOrNull(absl::Time time) {
  return time == absl::InfinitePast() ? nlohmann::json() : nlohmann::json(ShownTime(time));
}
nlohmann::json PidOrNull(pid_t pid) { return pid == 0 ? nlohmann::json() : nlohmann::json(pid); }

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
      {"seconds", ended ? nlohmann::json(absl::ToDoubleSeconds(run.ended - run.created)) : nlohmann::json()},
      {"exit_code", ended ? nlohmann::json(run.exit_code) : nlohmann::json()},
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
      {"host", task.host.empty() ? nlohmann::json() : nlohmann::json(task.host)},
      {"restarts", task.restarts},
      {"exit_code", task.exit.has_value() ? nlohmann::json(task.exit->ShellCode()) : nlohmann::json()},
      {"reason", task.reason},
      {"gpus", task.gpus},
      {"status_address", task.status_address},
  };
}

nlohmann::json JsonOf(const JobOfRun& job) {
  return {{"engine", job.engine}, {"id", job.id}, {"requeues", job.requeues}, {"tries", job.tries}};
}

std::string OneLineJson(const nlohmann::json& value) {
  return value.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace muster
