#include "apps/muster/experiment/host_sources.h"

#include <algorithm>
#include <set>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/launch/backends/choice/make_backend.h"

namespace muster {
namespace {

constexpr char kNone[] = "none";

bool FileHas(const ExperimentFile& file, const std::string& key) {
  return std::any_of(file.values.begin(), file.values.end(), [&key](const FileValue& value) {
    return value.path == key || absl::StartsWith(value.path, key + ".") || absl::StartsWith(value.path, key + "[");
  });
}

std::string EngineInEffect(const HostSetting& hosts) {
  if (!hosts.job_engine().empty()) return hosts.job_engine();
  if (hosts.command.has_value()) return kCommandEngine;
  return hosts.hosts.empty() ? kThisMachine : kSshEngine;
}

// Returns the flag that names hosts; "": none does.
std::string HostsFlag(const GivenValues& given) {
  for (const char* key : {"hosts", "host_file"})
    if (given.hosts.contains(key)) return absl::StrCat("--", key);
  return "";
}

// Returns the keys of the file that an engine makes no use of.
std::set<std::string> UnusedBy(const std::string& engine) {
  std::set<std::string> unused = {"slurm", "ray", "spark", "kubernetes", "hosts_by"};
  if (engine == kSshEngine) return unused;
  unused.erase(engine == kCommandEngine ? "hosts_by" : engine);  // the key of an engine of jobs is its name
  unused.insert({"host_file", "ssh_config"});
  if (engine != kCommandEngine) unused.insert("hosts");
  if (engine == kThisMachine) unused.insert({"placement", "grace"});
  return unused;
}

// Returns what puts a key of the file out of effect; "": nothing does.
std::string PutOutBy(const std::string& key, const GivenValues& given) {
  const std::string engine = EngineInEffect(given.options.hosts);
  const std::string hosts_flag = HostsFlag(given);
  if (UnusedBy(engine).contains(key)) {
    if (given.hosts.contains("on")) return "--on";
    if (!hosts_flag.empty()) return hosts_flag;
    return absl::StrCat("on ", engine);
  }
  if (hosts_flag.empty() || engine == kCommandEngine) return "";
  const bool other_placement = key == "placement" && given.options.hosts.placement.empty();
  return key == "hosts" || key == "host_file" || other_placement ? hosts_flag : "";
}

HostSource SourceOfEngine(const ExperimentFile& file, const GivenValues& given) {
  const std::string engine = EngineInEffect(given.options.hosts);
  const std::string flag = HostsFlag(given);
  if (!flag.empty()) return {engine, absl::StrCat(flag, FileHas(file, "on") ? ", not the file's" : "")};
  return {engine, engine == kThisMachine ? "default" : "default, as there are hosts"};
}

}  // namespace

bool IsOfAnotherEngine(const std::string& key, const GivenValues& given) {
  return UnusedBy(EngineInEffect(given.options.hosts)).contains(key);
}

std::optional<HostSource> HostSourceOf(const std::string& key, const ExperimentFile& file, const GivenValues& given) {
  const bool in_file = FileHas(file, key);
  if (const auto flag = given.hosts.find(key); flag != given.hosts.end())
    return HostSource{flag->second, absl::StrCat("--", key, in_file ? ", not the file's" : "")};
  if (key == "on") {
    const bool as_in_file = in_file && HostsFlag(given).empty();
    return as_in_file ? std::nullopt : std::optional(SourceOfEngine(file, given));
  }
  if (!in_file) return std::nullopt;
  const std::string by = PutOutBy(key, given);
  return by.empty() ? std::nullopt : std::optional(HostSource{kNone, absl::StrCat(by, ", not the file's")});
}

}  // namespace muster
