// Where the settings come from that say where an experiment runs: flags for hosts may put whole keys of the experiment
// file out of effect. Pure, thread-safe.
#pragma once

#include <optional>
#include <string>

#include "apps/muster/experiment/value_sources.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {

struct HostSource {
  std::string value;   // in effect; "none": the file's isn't
  std::string source;  // "--hosts, not the file's"
};

// Returns the row of a key of the experiment file ("placement"); nullopt: what the file says counts, or the default.
std::optional<HostSource> HostSourceOf(const std::string& key, const ExperimentFile& file, const GivenValues& given);

// Returns whether the engine that runs the tasks makes no use of a key of the experiment file, and so of its default.
bool IsOfAnotherEngine(const std::string& key, const GivenValues& given);

}  // namespace muster
