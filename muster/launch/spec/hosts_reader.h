// Reads the keys of an experiment file that say where its tasks run. Pure, thread-safe.
#pragma once

#include "muster/base/file_mistakes.h"
#include "muster/launch/spec/experiment_file.h"
#include "muster/launch/spec/yaml_tree.h"

namespace muster {

// Reads `on`, `hosts`, `host_file`, `placement`, `grace`, `ports`, `ssh_config`, `supervisor`, `slurm`, `ray`, `spark`
// and `kubernetes` and `hosts_by` of the whole file. Skips what CheckKeys has reported as wrong.
HostsSpec ReadHosts(const YamlNode& tree, FileMistakes& mistakes);

}  // namespace muster
