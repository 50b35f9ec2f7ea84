// A ProcessSpec as it travels from a supervisor to an agent (entries.h). Plain values; thread-safe.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "muster/cluster/task_id.h"
#include "muster/launch/agent/entry_kind.h"
#include "muster/launch/backends/backend.h"
#include "muster/transport/messages/fields.h"

namespace muster {

template <>
inline constexpr auto kFieldsOf<TaskId> = FieldList<Field<1, &TaskId::job>, Field<2, &TaskId::index>>();
template <>
inline constexpr auto kFieldsOf<ProcessMount> =
    FieldList<Field<1, &ProcessMount::host>, Field<2, &ProcessMount::path>, Field<3, &ProcessMount::writable>>();
struct EnvironmentEntry {
  std::string name;
  std::string value;
  using Fields = FieldList<Field<1, &EnvironmentEntry::name>, Field<2, &EnvironmentEntry::value>>;
};

struct LaunchEntry {
  static constexpr EntryKind kKind = EntryKind::kLaunch;
  TaskId task;
  std::string address;
  std::string node;
  std::vector<std::string> arguments;
  std::vector<EnvironmentEntry> environment;
  std::string directory;
  double cpus = 0;        // 0: no limit
  int64_t mem_bytes = 0;  // 0: no limit
  std::vector<ProcessMount> mounts;
  bool release_ports = false;  // as ProcessSpec::release_ports
  bool takes_input = false;    // likewise

  static LaunchEntry Of(const ProcessSpec& process);
  ProcessSpec ToSpec() const;

  using Fields = FieldList<Field<1, &LaunchEntry::task>, Field<2, &LaunchEntry::address>, Field<3, &LaunchEntry::node>,
                           Field<4, &LaunchEntry::arguments>, Field<5, &LaunchEntry::environment>,
                           Field<6, &LaunchEntry::directory>, Field<7, &LaunchEntry::cpus>,
                           Field<8, &LaunchEntry::mem_bytes>, Field<9, &LaunchEntry::mounts>,
                           Field<10, &LaunchEntry::release_ports>, Field<11, &LaunchEntry::takes_input>>;
};

}  // namespace muster
