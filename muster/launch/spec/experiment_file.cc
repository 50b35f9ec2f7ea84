#include "muster/launch/spec/experiment_file.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/file_mistakes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/spec/folded_command.h"
#include "muster/launch/spec/hosts_reader.h"
#include "muster/launch/spec/key_check.h"
#include "muster/launch/spec/key_table.h"
#include "muster/launch/spec/parameters.h"
#include "muster/launch/spec/yaml_tree.h"

namespace muster {
namespace {

constexpr size_t kMostFileBytes = 1 << 20;
constexpr int64_t kLeastLogBytes = 64 << 10;
constexpr double kMostWhole = 1LL << 53;  // larger doubles skip whole numbers

constexpr std::pair<const char*, Framework> kFrameworks[] = {{"muster", Framework::kMuster},
                                                             {"tensorflow", Framework::kTensorflow},
                                                             {"pytorch", Framework::kPytorch},
                                                             {"any", Framework::kAny}};

// Returns the scalar's text; empty if it is missing or isn't a scalar.
std::string ScalarAt(const YamlNode& map, std::string_view key) {
  const YamlNode* node = map.Find(key);
  return node != nullptr && node->kind == YamlKind::kScalar ? node->text : "";
}

// Returns the map, or an empty one with the same line if it is missing.
YamlNode SectionAt(const YamlNode& map, std::string_view key) {
  const YamlNode* node = map.Find(key);
  return node != nullptr && node->kind == YamlKind::kMap ? *node : YamlNode{.kind = YamlKind::kMap, .line = map.line};
}

struct LineOfText {
  std::string text;
  int line = 0;
  std::string path;  // "train.run", "train.run[2]"
  char block = 0;    // as in YamlNode
  int block_line = 0;
};

// Reads one text or a list of texts from `train`, or from its section `above` ("train.setup").
std::vector<LineOfText> TextsAt(const YamlNode& train, const std::string& key, const std::string& above = "train") {
  const std::string path = absl::StrCat(above, ".", key);
  const YamlNode* node = train.Find(key);
  if (node == nullptr) return {};
  const auto text_of = [](const YamlNode& from, std::string path) {
    return LineOfText{from.text, from.line, std::move(path), from.block, from.block_line};
  };
  if (node->kind == YamlKind::kScalar) return {text_of(*node, path)};
  std::vector<LineOfText> texts;
  for (const YamlNode& item : node->items)
    texts.push_back(text_of(item, absl::StrCat(path, "[", texts.size() + 1, "]")));
  return texts;
}

// Returns the number, from 2, of the first line of a script that begins with '-', 0 if there is none. A here-document
// may have such lines.
int LineThatContinues(std::string_view script) {
  if (script.find("<<") != std::string_view::npos) return 0;
  int line = 1;
  for (size_t end = script.find('\n'); end != std::string_view::npos; end = script.find('\n', end + 1)) {
    ++line;
    const size_t begin = script.find_first_not_of(" \t", end + 1);
    const bool escaped = end > 0 && script[end - 1] == '\\';
    if (begin != std::string_view::npos && script[begin] == '-' && !escaped) return line;
  }
  return 0;
}

int CountAt(const YamlNode& map, std::string_view key, int otherwise) {
  const YamlNode* node = map.Find(key);
  return node == nullptr ? otherwise : static_cast<int>(WholeOf(*node).value_or(otherwise));
}

bool TruthAt(const YamlNode& map, std::string_view key) {
  const YamlNode* node = map.Find(key);
  return node != nullptr && TruthOf(*node).value_or(false);
}

RestartPolicy RestartAt(const YamlNode& map, RestartPolicy policy) {
  const YamlNode restart = SectionAt(map, "restart");
  const std::string when = ScalarAt(restart, "policy");
  if (when == "never") policy.when = RestartWhen::kNever;
  if (when == "on-failure") policy.when = RestartWhen::kOnFailure;
  if (when == "always") policy.when = RestartWhen::kAlways;
  policy.limit = CountAt(restart, "limit", policy.limit);
  const YamlNode* backoff = restart.Find("backoff");
  if (backoff != nullptr) policy.pause = DurationOf(*backoff).value_or(policy.pause);
  return policy;
}

bool IsVariableName(const std::string& name) {
  return !name.empty() && !absl::ascii_isdigit(static_cast<unsigned char>(name[0])) &&
         std::all_of(name.begin(), name.end(),
                     [](char c) { return absl::ascii_isalnum(static_cast<unsigned char>(c)) || c == '_'; });
}

// Parses "/host", "/host:/path", and either followed by ":ro" or ":rw".
VolumeSpec VolumeOf(std::string text) {
  VolumeSpec volume{.writable = absl::EndsWith(text, ":rw")};
  if (volume.writable || absl::EndsWith(text, ":ro")) text.resize(text.size() - 3);
  const size_t colon = text.find(':');
  volume.host = text.substr(0, colon);
  volume.path = colon == std::string::npos ? volume.host : text.substr(colon + 1);
  return volume;
}

// Adds the values at and below `node`, whose path is `path`.
void AddFileValues(const YamlNode& node, const std::string& path, std::vector<FileValue>& values) {
  const auto is_scalar = [](const YamlNode& item) { return item.kind == YamlKind::kScalar; };
  if (node.kind == YamlKind::kScalar) values.push_back({path, node.text, node.line});
  if (node.kind == YamlKind::kList && std::all_of(node.items.begin(), node.items.end(), is_scalar)) {
    const auto text = [](std::string* to, const YamlNode& item) { *to += item.text; };
    values.push_back({path, absl::StrJoin(node.items, ", ", text), node.line});
    return;
  }
  for (size_t i = 0; i < node.items.size(); ++i) {
    const bool named = node.kind == YamlKind::kMap;
    const std::string name = named ? node.keys[i] : absl::StrCat("[", i + 1, "]");
    AddFileValues(node.items[i], absl::StrCat(path, named && !path.empty() ? "." : "", name), values);
  }
}

// Makes an ExperimentFile of a tree. Skips what CheckKeys has reported as wrong.
class ExperimentFileReader {
 public:
  ExperimentFileReader(std::string_view text, const std::string& name) : text_(text), mistakes_(name) {
    file_.name = name;
  }

  absl::StatusOr<ExperimentFile> Read(const YamlNode& tree);

 private:
  void ReadTrain(const YamlNode& train);
  void ReadFramework(const YamlNode& train);
  void ReadVersion(const YamlNode& section, const std::string& path);
  void ReadDistributed(const YamlNode& distributed, const std::string& path);
  void ReadTorchrun(const YamlNode& train);
  RoleSpec ReadRole(const YamlNode& distributed, const std::string& path, const std::string& role, int otherwise);
  Resources ReadResources(const YamlNode& map, const std::string& path);
  // Returns "muster.yml:4: train.resources"; `otherwise` if the map has no resources.
  std::string ResourcesPlace(const YamlNode& map, const std::string& path, const std::string& otherwise) const;
  std::string Place(int line, const std::string& path) const { return absl::StrCat(file_.name, ":", line, ": ", path); }
  // Returns the commands; those with {{ name }} are mistakes.
  std::vector<std::string> CommandsRunOnce(const std::vector<LineOfText>& texts);
  void ReadSetup(const YamlNode& train);
  void ReadCommands(const YamlNode& train);
  // Returns the text as its author meant it (FoldedCommand); warns of a line of a `|` block that looks like arguments.
  std::string CommandOf(const LineOfText& text);
  void ReadParameters(const YamlNode& parameters);
  ParameterSpec ReadParameter(const std::string& name, const YamlNode& node);
  void ReadRange(const YamlNode& range, const std::string& path, ParameterSpec& parameter);
  void ReadVariables(const YamlNode& train);
  void AddVariable(int line, const std::string& name, const std::string& value);
  void ReadVolumes(const YamlNode& train);
  void ReadLogLimit(const YamlNode& train);
  void Warn(int line, const std::string& path, const std::string& text) {
    file_.warnings.push_back(absl::StrCat(Place(line, path), ": ", text));
  }

  const std::string_view text_;
  ExperimentFile file_;
  FileMistakes mistakes_;
};

absl::StatusOr<ExperimentFile> ExperimentFileReader::Read(const YamlNode& tree) {
  CheckKeys(tree, ExperimentKeySection(kFileSection), "", mistakes_);
  AddFileValues(tree, "", file_.values);
  file_.project = ScalarAt(tree, "project");
  file_.hosts = ReadHosts(tree, mistakes_);
  ReadTrain(SectionAt(tree, "train"));
  RETURN_IF_ERROR(mistakes_.status());
  return file_;
}

void ExperimentFileReader::ReadTrain(const YamlNode& train) {
  file_.resources = ReadResources(train, "train");
  file_.resources_place = ResourcesPlace(train, "train", "");
  file_.restart = RestartAt(train, {});
  ReadFramework(train);
  ReadTorchrun(train);
  ReadCommands(train);
  ReadParameters(SectionAt(train, "parameters"));
  file_.concurrency = CountAt(train, "concurrency", 1);
  ReadVariables(train);
  ReadVolumes(train);
  file_.output = ScalarAt(train, "output");
  ReadLogLimit(train);
  file_.image = ScalarAt(train, "image");
  if (!file_.image.empty())
    Warn(train.Find("image")->line, "train.image",
         "image is for backends that run images; here the version is installed in a virtual environment");
}

void ExperimentFileReader::ReadFramework(const YamlNode& train) {
  const YamlNode* said = train.Find("framework");
  const std::string name = said == nullptr ? "any" : ScalarAt(train, "framework");
  const auto known = std::find_if(std::begin(kFrameworks), std::end(kFrameworks),
                                  [&name](const auto& framework) { return name == framework.first; });
  if (known == std::end(kFrameworks)) return;
  file_.framework = known->second;
  for (const char* section : {"tensorflow", "muster", "pytorch"}) {
    const YamlNode* node = train.Find(section);
    if (node == nullptr || name == section) continue;
    mistakes_.Add(node->line, absl::StrCat("train.", section),
                  said == nullptr ? "goes with a framework, and the file has no train.framework"
                                  : absl::StrCat("doesn't go with framework: ", name),
                  absl::StrCat("framework: ", section, ", or no such section"));
  }
  const YamlNode* torchrun = train.Find("torchrun");
  if (torchrun != nullptr && file_.framework != Framework::kPytorch && file_.framework != Framework::kAny)
    mistakes_.Add(torchrun->line, "train.torchrun", absl::StrCat("doesn't go with framework: ", name),
                  "framework: pytorch or any, or no such section");
  const YamlNode section = SectionAt(train, name);
  ReadVersion(section, absl::StrCat("train.", name));
  file_.tensorboard = TruthAt(section, "tensorboard");
  if (section.Find("distributed") != nullptr)
    ReadDistributed(SectionAt(section, "distributed"), absl::StrCat("train.", name, ".distributed"));
}

void ExperimentFileReader::ReadVersion(const YamlNode& section, const std::string& path) {
  std::string version = ScalarAt(section, "version");
  if (!version.empty()) file_.version_place = Place(section.Find("version")->line, absl::StrCat(path, ".version"));
  // Image tags have these endings, in either order.
  while (absl::EndsWith(version, "-gpu") || absl::EndsWith(version, "-py3")) {
    file_.gpu_version = file_.gpu_version || absl::EndsWith(version, "-gpu");
    version.resize(version.size() - 4);
  }
  file_.version = version == "latest" ? "" : version;
}

void ExperimentFileReader::ReadDistributed(const YamlNode& distributed, const std::string& path) {
  DistributedSpec spec;
  spec.workers = ReadRole(distributed, path, "worker", 1);
  spec.ps = ReadRole(distributed, path, "ps", 0);
  spec.evaluator = ReadRole(distributed, path, "evaluator", 0);
  if (distributed.Find("master") != nullptr) {
    spec.master = ReadRole(distributed, path, "master", 1);
    if (distributed.Find("worker") == nullptr) spec.workers.count = 0;
  } else {
    spec.master = spec.workers;
    spec.master.count = 1;
    --spec.workers.count;
  }
  file_.distributed = spec;
}

RoleSpec ExperimentFileReader::ReadRole(const YamlNode& distributed, const std::string& path, const std::string& role,
                                        int otherwise) {
  RoleSpec spec{.count = otherwise,
                .resources = file_.resources,
                .restart = file_.restart,
                .resources_place = file_.resources_place};
  const YamlNode* node = distributed.Find(role);
  if (node == nullptr) return spec;
  if (node->kind != YamlKind::kMap) {
    spec.count = static_cast<int>(WholeOf(*node).value_or(TruthOf(*node).value_or(otherwise != 0) ? 1 : 0));
    return spec;
  }
  spec.count = CountAt(*node, "count", 1);
  const std::string role_path = absl::StrCat(path, ".", role);
  spec.resources = Merged(ReadResources(*node, role_path), file_.resources);
  spec.resources_place = ResourcesPlace(*node, role_path, file_.resources_place);
  spec.restart = RestartAt(*node, file_.restart);
  return spec;
}

void ExperimentFileReader::ReadTorchrun(const YamlNode& train) {
  if (train.Find("torchrun") == nullptr) return;
  const YamlNode section = SectionAt(train, "torchrun");
  TorchrunSpec spec;
  spec.workers.count = CountAt(section, "workers", 1);
  spec.workers.resources = Merged(ReadResources(section, "train.torchrun"), file_.resources);
  spec.workers.resources_place = ResourcesPlace(section, "train.torchrun", file_.resources_place);
  spec.workers.restart = RestartAt(section, file_.restart);
  spec.processes = CountAt(section, "processes", 1);
  file_.torchrun = spec;
}

Resources ExperimentFileReader::ReadResources(const YamlNode& map, const std::string& path) {
  const YamlNode section = SectionAt(map, "resources");
  Resources resources;
  if (const YamlNode* cpus = section.Find("cpus")) resources.cpus = NumberOf(*cpus);
  if (const YamlNode* mem = section.Find("mem"); mem != nullptr && mem->kind == YamlKind::kScalar) {
    std::string warning;
    const auto bytes = ParseMemory(mem->text, &warning);
    if (bytes.ok()) resources.mem_bytes = *bytes;
    if (!warning.empty()) Warn(mem->line, absl::StrCat(path, ".resources.mem"), warning);
  }
  if (const YamlNode* gpus = section.Find("gpus")) {
    const auto count = WholeOf(*gpus);
    if (count) resources.gpus = static_cast<int>(*count);
  }
  return resources;
}

std::string ExperimentFileReader::ResourcesPlace(const YamlNode& map, const std::string& path,
                                                 const std::string& otherwise) const {
  const YamlNode* node = map.Find("resources");
  return node == nullptr ? otherwise : Place(node->line, absl::StrCat(path, ".resources"));
}

std::string ExperimentFileReader::CommandOf(const LineOfText& text) {
  if (text.block == '|') {
    const int line = LineThatContinues(text.text);
    if (line > 0)
      Warn(text.block_line + line, text.path,
           "begins with '-': if it continues the line above, end that one with a backslash, or write '>-' for '|'");
  }
  if (text.block != '>') return text.text;
  std::vector<std::string_view> below;
  size_t begin = 0;
  for (int line = 1; begin < text_.size(); ++line) {
    const size_t end = std::min(text_.find('\n', begin), text_.size());
    if (line > text.block_line) below.push_back(text_.substr(begin, end - begin));
    begin = end + 1;
  }
  return FoldedCommand(text.text, below);
}

std::vector<std::string> ExperimentFileReader::CommandsRunOnce(const std::vector<LineOfText>& texts) {
  std::vector<std::string> commands;
  for (const LineOfText& command : texts) {
    commands.push_back(CommandOf(command));
    const auto names = TemplateNames(command.text);  // anything else in braces belongs to the command
    if (names.ok() && !names->empty())
      mistakes_.Add(
          command.line, command.path,
          absl::StrCat("has {{ ", names->front(), " }}, but is run once, whatever values the parameters have"),
          "parameters in train.run");
  }
  return commands;
}

void ExperimentFileReader::ReadSetup(const YamlNode& train) {
  const YamlNode section = SectionAt(train, "setup");
  const bool is_section = train.Find("setup") != nullptr && train.Find("setup")->kind == YamlKind::kMap;
  file_.setup.run = CommandsRunOnce(is_section ? TextsAt(section, "run", "train.setup") : TextsAt(train, "setup"));
  for (const LineOfText& path : TextsAt(section, "files", "train.setup")) {
    if (path.text.starts_with('/') || absl::StrContains(absl::StrCat("/", path.text, "/"), "/../"))
      mistakes_.Add(path.line, path.path, absl::StrCat("is ", Quoted(path.text)), "a path below the folder");
    file_.setup.files.push_back(path.text);
  }
}

void ExperimentFileReader::ReadCommands(const YamlNode& train) {
  file_.install = CommandsRunOnce(TextsAt(train, "install"));
  ReadSetup(train);
  for (const LineOfText& command : TextsAt(train, "run")) {
    file_.run.push_back(CommandOf(command));
    file_.run_places.push_back(Place(command.line, command.path));
    const auto names = TemplateNames(command.text);
    if (!names.ok()) mistakes_.Add(command.line, command.path, names.status());
  }
}

void ExperimentFileReader::ReadParameters(const YamlNode& parameters) {
  std::map<std::string, std::string> variables;  // to the parameter that each belongs to
  for (size_t i = 0; i < parameters.keys.size(); ++i) {
    const std::string& name = parameters.keys[i];
    const YamlNode& node = parameters.items[i];
    const absl::Status valid = ValidateParameterName(name);
    if (!valid.ok()) {
      mistakes_.Add(node.line, "train.parameters", valid);
      continue;
    }
    const auto [same, is_new] = variables.emplace(EnvironmentNameOf(name), name);
    if (IsExperimentVariable(same->first, file_.torchrun.has_value()))
      mistakes_.Add(node.line, absl::StrCat("train.parameters.", name),
                    absl::StrCat("would be the environment variable ", same->first, ", which tells torchrun's tasks ",
                                 "of each other"),
                    "another name");
    if (!is_new && same->second != name)
      mistakes_.Add(node.line, absl::StrCat("train.parameters.", name),
                    absl::StrCat("is the environment variable ", same->first, ", as ", same->second, " is"),
                    "names that differ by more than '-', '_' and capitals");
    file_.parameters.push_back(ReadParameter(name, node));
  }
}

ParameterSpec ExperimentFileReader::ReadParameter(const std::string& name, const YamlNode& node) {
  const std::string path = absl::StrCat("train.parameters.", name);
  ParameterSpec parameter{.name = name};
  if (node.kind == YamlKind::kScalar) parameter.values.push_back(node.text);
  if (node.kind == YamlKind::kMap) ReadRange(SectionAt(node, "range"), absl::StrCat(path, ".range"), parameter);
  if (node.kind != YamlKind::kList) return parameter;
  std::set<std::string> seen;
  for (const YamlNode& item : node.items) {
    if (item.kind != YamlKind::kScalar) continue;
    if (!seen.insert(item.text).second)
      Warn(item.line, path, absl::StrCat(Quoted(item.text), " is there twice: runs of the grid will be the same"));
    parameter.values.push_back(item.text);
  }
  return parameter;
}

void ExperimentFileReader::ReadRange(const YamlNode& range, const std::string& path, ParameterSpec& parameter) {
  const YamlNode ten{.kind = YamlKind::kScalar, .text = "10"};
  const bool logarithmic = TruthAt(range, "logarithmic");
  const YamlNode* min = range.Find("min");
  const YamlNode* max = range.Find("max");
  const YamlNode* step = range.Find("step");
  if (min == nullptr || max == nullptr) return;
  if (step == nullptr && !logarithmic) {
    mistakes_.Add(range.line, absl::StrCat(path, ".step"), "is missing",
                  "a number above 0, or none with logarithmic: true");
    return;
  }
  if (step == nullptr) step = &ten;
  if (!NumberOf(*min) || !NumberOf(*max) || NumberOf(*step).value_or(0) <= 0) return;
  const auto is_whole = [](const YamlNode* number) {
    return WholeOf(*number).has_value() && std::abs(*NumberOf(*number)) <= kMostWhole;
  };
  parameter.range = {.min = *NumberOf(*min),
                     .max = *NumberOf(*max),
                     .step = *NumberOf(*step),
                     .logarithmic = logarithmic,
                     .whole = is_whole(min) && is_whole(max) && is_whole(step)};
  const auto values = ValuesOfRange(*parameter.range);
  if (values.ok()) {
    parameter.values = *values;
  } else {
    mistakes_.Add(range.line, path, values.status());
  }
}

void ExperimentFileReader::ReadVariables(const YamlNode& train) {
  const YamlNode* env = train.Find("env");
  if (env == nullptr) return;
  std::set<std::string> listed;
  for (size_t i = 0; i < env->items.size(); ++i) {
    const YamlNode& item = env->items[i];
    if (item.kind != YamlKind::kScalar) continue;
    if (env->kind == YamlKind::kMap) {
      AddVariable(item.line, env->keys[i], item.text);
    } else if (const size_t equals = item.text.find('='); equals != std::string::npos) {
      const std::string name = item.text.substr(0, equals);
      if (!IsVariableName(name)) continue;  // reported by CheckKeys
      if (!listed.insert(name).second) mistakes_.Add(item.line, "train.env." + name, "is there twice", "each one once");
      AddVariable(item.line, name, item.text.substr(equals + 1));
    }
  }
}

void ExperimentFileReader::AddVariable(int line, const std::string& name, const std::string& value) {
  if (!IsVariableName(name))
    return mistakes_.Add(line, "train.env", absl::StrCat(Quoted(name), " isn't a variable name"),
                         "letters, digits and '_', beginning with no digit");
  const std::string path = absl::StrCat("train.env.", name);
  if (IsExperimentVariable(name, file_.torchrun.has_value()))
    mistakes_.Add(line, path, "is what `muster train` sets itself, for each task", "other variables");
  if (absl::StrContains(value, '\0'))
    mistakes_.Add(line, path, "has a zero byte, at which the value of a variable ends", "a text without one");
  for (const ParameterSpec& parameter : file_.parameters)
    if (EnvironmentNameOf(parameter.name) == name)
      mistakes_.Add(line, path, absl::StrCat("is the parameter ", parameter.name, " already"), "other variables");
  file_.env.emplace_back(name, value);
}

void ExperimentFileReader::ReadVolumes(const YamlNode& train) {
  const YamlNode* volumes = train.Find("volumes");
  if (volumes == nullptr) return;
  for (const YamlNode& item : volumes->items) {
    VolumeSpec volume;
    if (item.kind == YamlKind::kScalar) volume = VolumeOf(item.text);
    if (item.kind == YamlKind::kMap)
      volume = {.host = ScalarAt(item, "host"), .path = ScalarAt(item, "path"), .writable = TruthAt(item, "writable")};
    if (volume.path.empty()) volume.path = volume.host;
    const auto same = std::find_if(file_.volumes.begin(), file_.volumes.end(),
                                   [&volume](const VolumeSpec& other) { return other.path == volume.path; });
    if (same != file_.volumes.end() && !volume.path.empty())
      mistakes_.Add(item.line, "train.volumes", absl::StrCat("two have the path ", Quoted(volume.path)),
                    "a path of its own for each");
    file_.volumes.push_back(volume);
  }
}

void ExperimentFileReader::ReadLogLimit(const YamlNode& train) {
  const auto bytes = ParseMemory(ScalarAt(train, "log_limit"), nullptr);
  if (!bytes.ok()) return;
  if (*bytes < kLeastLogBytes)
    mistakes_.Add(train.Find("log_limit")->line, "train.log_limit", absl::StrCat("is ", MemoryText(*bytes)),
                  absl::StrCat("at least ", MemoryText(kLeastLogBytes)));
  file_.log_bytes = *bytes;
}

}  // namespace

absl::StatusOr<ExperimentFile> ParseExperimentFile(std::string_view text, const std::string& name) {
  if (text.size() > kMostFileBytes)
    return absl::InvalidArgumentError(absl::StrCat(name, ": is ", text.size(), " bytes; accepted: at most ",
                                                   kMostFileBytes, "; is it the right file?"));
  ASSIGN_OR_RETURN(const YamlNode tree, ParseYaml(text, name));
  if (tree.kind != YamlKind::kMap) {
    const char* what = tree.kind == YamlKind::kEmpty ? "is empty" : "has no keys";
    return absl::InvalidArgumentError(absl::StrCat(name, ":", tree.line, ": ", what,
                                                   "; accepted: the keys project and train; `muster init` writes an ",
                                                   "example"));
  }
  return ExperimentFileReader(text, name).Read(tree);
}

absl::StatusOr<std::string> FindExperimentFile(const std::string& folder) {
  for (const char* name : {"muster.yml", "riseml.yml"}) {
    const std::string path = JoinPath(folder, name);
    if (PosixFileSystem().Exists(path)) return path;
  }
  return absl::NotFoundError(
      absl::StrCat("there is neither muster.yml nor riseml.yml in ", folder, "; `muster init` writes one"));
}

}  // namespace muster
