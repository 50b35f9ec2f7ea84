#include "muster/launch/agent/launch_entry.h"

namespace muster {

LaunchEntry LaunchEntry::Of(const ProcessSpec& process) {
  LaunchEntry entry{.task = process.task,
                    .address = process.address,
                    .node = process.node,
                    .arguments = process.arguments,
                    .directory = process.directory,
                    .cpus = process.limits.cpus.value_or(0),
                    .mem_bytes = process.limits.mem_bytes.value_or(0),
                    .mounts = process.mounts,
                    .release_ports = process.release_ports,
                    .takes_input = process.takes_input};
  for (const auto& [name, value] : process.environment) entry.environment.push_back({name, value});
  return entry;
}

ProcessSpec LaunchEntry::ToSpec() const {
  ProcessSpec process{.task = task,
                      .address = address,
                      .node = node,
                      .arguments = arguments,
                      .directory = directory,
                      .mounts = mounts,
                      .release_ports = release_ports,
                      .takes_input = takes_input};
  for (const auto& [name, value] : environment) process.environment.emplace_back(name, value);
  if (cpus > 0) process.limits.cpus = cpus;
  if (mem_bytes > 0) process.limits.mem_bytes = mem_bytes;
  return process;
}

}  // namespace muster
