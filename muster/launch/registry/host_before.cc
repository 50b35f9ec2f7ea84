#include "muster/launch/registry/host_before.h"

#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {

std::string HostBefore(const Home& home, const ExperimentId& id, int present, const TaskId& task) {
  const absl::StatusOr<ReadRecords> read = ReadRecordsFrom(home.records(id), 0);
  if (!read.ok()) return "";
  std::string host;
  for (const std::string& text : read->records) {
    const absl::StatusOr<RunChange> change = ParseRecordText(text);
    if (!change.ok() || change->run.attempt >= present) continue;
    for (const TaskRecord& one : change->tasks)
      if (one.task == task && one.state == RunState::kRunning) host = one.host;
  }
  return host;
}

}  // namespace muster
