#include "muster/launch/spec/hosts_reader.h"

#include <algorithm>
#include <set>
#include <string>
#include <string_view>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/text/nearest_name.h"
#include "muster/launch/hosts/host_setting.h"
#include "muster/launch/spec/commands_reader.h"
#include "muster/launch/spec/key_check.h"
#include "muster/launch/spec/yaml_json.h"

namespace muster {
namespace {

std::string TextIn(const YamlNode& tree, std::string_view key) {
  const YamlNode* node = tree.Find(key);
  return node != nullptr && node->kind == YamlKind::kScalar ? node->text : "";
}

std::vector<Host> ReadHostList(const YamlNode& node, FileMistakes& mistakes) {
  if (node.kind == YamlKind::kScalar) {
    auto hosts = ParseHostList(node.text);
    if (hosts.ok()) return *std::move(hosts);
    mistakes.Add(node.line, "hosts", hosts.status());
  }
  std::vector<Host> hosts;
  std::set<std::string> seen;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlKind::kScalar) continue;
    const std::string key = absl::StrCat("hosts[", hosts.size() + 1, "]");
    auto host = ParseHostLine(item.text);
    if (!host.ok())
      mistakes.Add(item.line, key, host.status());
    else if (!seen.insert(host->name).second)
      mistakes.Add(item.line, key, absl::StrCat("'", host->name, "' is there twice"), "each host once, with slots=N");
    hosts.push_back(host.ok() ? *std::move(host) : Host());
  }
  return hosts;
}

std::vector<std::string> NamesIn(const YamlNode& node) {
  if (node.kind == YamlKind::kScalar) return {node.text};
  std::vector<std::string> names;
  for (const YamlNode& item : node.items) names.push_back(item.text);
  return names;
}

std::map<std::string, std::vector<std::string>> ReadPlacement(const YamlNode& node, FileMistakes& mistakes) {
  const std::vector<std::string> roles = {"ps", "worker", "master", "evaluator"};
  std::map<std::string, std::vector<std::string>> placement;
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& role = node.keys[i];
    if (std::find(roles.begin(), roles.end(), role) == roles.end())
      mistakes.Add(node.items[i].line, absl::StrCat("placement.", role),
                   absl::StrCat("there is no such role", NearestHint(role, roles)), absl::StrJoin(roles, ", "));
    placement[role] = NamesIn(node.items[i]);
  }
  return placement;
}

// Options without a value are true there, and those that muster shall not set null or false.
void ReadSlurm(const YamlNode& node, SlurmSetting& slurm, FileMistakes& mistakes) {
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const std::string& name = node.keys[i];
    const YamlNode& item = node.items[i];
    if (name == "extra") {
      for (const std::string& word : NamesIn(item))
        if (const absl::Status taken = TakeSlurmExtra(slurm, word); !taken.ok())
          mistakes.Add(item.line, "slurm.extra", taken);
      continue;
    }
    if (item.kind != YamlKind::kScalar && item.kind != YamlKind::kEmpty) {
      SlurmSetting unused;
      absl::Status wrong = TakeSlurmSetting(unused, name, "");
      if (wrong.ok()) wrong = absl::InvalidArgumentError("is a list or a map; accepted: one value");
      mistakes.Add(item.line, absl::StrCat("slurm.", name), wrong);
      continue;
    }
    std::optional<std::string> value;
    if (item.kind == YamlKind::kScalar) value = item.text;
    if (const std::optional<bool> truth = TruthOf(item); truth.has_value())
      value = *truth ? std::optional<std::string>("") : std::nullopt;
    if (const absl::Status set = TakeSlurmSetting(slurm, name, value); !set.ok())
      mistakes.Add(item.line, absl::StrCat("slurm.", name), set);
  }
}

// Reads the settings of an engine; `map_key` is the one that is a map itself. Lists and other maps are in JSON, which
// the engine refuses by the setting's name.
void ReadSettings(const YamlNode& node, const std::string& engine, const std::string& map_key,
                  absl::FunctionRef<absl::Status(const std::string&, const std::optional<std::string>&)> take,
                  FileMistakes& mistakes) {
  const auto read = [&](const std::string& name, const YamlNode& item) {
    std::optional<std::string> value;
    if (item.kind != YamlKind::kEmpty) value = item.kind == YamlKind::kScalar ? item.text : JsonText(item);
    const absl::Status set = take(name, value);
    if (set.ok()) return;
    // The key stands before it already.
    std::string text(set.message());
    if (absl::StartsWith(text, name + " is ")) text.erase(0, name.size() + 1);
    mistakes.Add(item.line, absl::StrCat(engine, ".", name), absl::InvalidArgumentError(text));
  };
  for (size_t i = 0; i < node.keys.size(); ++i) {
    const YamlNode& item = node.items[i];
    if (node.keys[i] != map_key || item.kind != YamlKind::kMap) {
      read(node.keys[i], item);
      continue;
    }
    for (size_t j = 0; j < item.keys.size(); ++j) read(absl::StrCat(map_key, ".", item.keys[j]), item.items[j]);
  }
}

// The hosts of these are those that the engine gives the job.
void RefuseHostsOfJob(const YamlNode& tree, const std::string& engine, FileMistakes& mistakes) {
  if (engine != kSlurmEngine && engine != kRayEngine && engine != kKubernetesEngine && engine != kSparkEngine) return;
  for (const char* key : {"hosts", "host_file", "ssh_config"})
    if (const YamlNode* node = tree.Find(key); node != nullptr)
      mistakes.Add(node->line, key,
                   absl::StrCat("is there beside on: ", engine, ", where the hosts are those of the job, and ", engine,
                                ".nodes says how many"),
                   "one of them");
}

}  // namespace

HostsSpec ReadHosts(const YamlNode& tree, FileMistakes& mistakes) {
  HostsSpec spec{.on = TextIn(tree, "on"),
                 .host_file = TextIn(tree, "host_file"),
                 .ssh_config = TextIn(tree, "ssh_config"),
                 .supervisor = TextIn(tree, "supervisor")};
  if (const YamlNode* hosts = tree.Find("hosts"); hosts != nullptr) {
    spec.hosts = ReadHostList(*hosts, mistakes);
    if (const YamlNode* file = tree.Find("host_file"); file != nullptr)
      mistakes.Add(file->line, "host_file", "is there beside hosts", "one of them");
  }
  RefuseHostsOfJob(tree, spec.on, mistakes);
  if (const YamlNode* slurm = tree.Find("slurm"); slurm != nullptr) ReadSlurm(*slurm, spec.slurm, mistakes);
  if (const YamlNode* ray = tree.Find("ray"); ray != nullptr)
    ReadSettings(
        *ray, "ray", "resources",
        [&spec](const auto& name, const auto& value) { return TakeRaySetting(spec.ray, name, value); }, mistakes);
  if (const YamlNode* kubernetes = tree.Find("kubernetes"); kubernetes != nullptr)
    ReadSettings(
        *kubernetes, "kubernetes", "",
        [&spec](const auto& name, const auto& value) { return TakeKubernetesSetting(spec.kubernetes, name, value); },
        mistakes);
  if (const YamlNode* spark = tree.Find("spark"); spark != nullptr)
    ReadSettings(
        *spark, "spark", "conf",
        [&spec](const auto& name, const auto& value) { return TakeSparkSetting(spec.spark, name, value); }, mistakes);
  if (const YamlNode* commands = tree.Find("hosts_by"); commands != nullptr && commands->kind == YamlKind::kMap)
    spec.command = ReadCommands(*commands, "hosts_by.", mistakes);
  if (const YamlNode* placement = tree.Find("placement"); placement != nullptr && placement->kind == YamlKind::kMap)
    spec.placement = ReadPlacement(*placement, mistakes);
  if (const YamlNode* ports = tree.Find("ports"); ports != nullptr && ports->kind == YamlKind::kScalar) {
    if (const auto range = ParsePortRange(ports->text); range.ok())
      spec.ports = *range;
    else
      mistakes.Add(ports->line, "ports", range.status());
  }
  if (const YamlNode* grace = tree.Find("grace"); grace != nullptr) {
    spec.grace = DurationOf(*grace);
    if (spec.grace.has_value() && (*spec.grace < kLeastGrace || *spec.grace > kMostGrace))
      mistakes.Add(grace->line, "grace", absl::StrCat("is ", grace->text),
                   absl::StrCat(absl::FormatDuration(kLeastGrace), " to ", absl::FormatDuration(kMostGrace)));
  }
  return spec;
}

}  // namespace muster
