#include "apps/muster/experiment/value_sources.h"

#include <algorithm>
#include <set>
#include <string_view>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/experiment/host_sources.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/output/aligned_lines.h"
#include "muster/launch/spec/file_template.h"
#include "muster/launch/spec/key_table.h"
#include "muster/launch/task/resources.h"
#include "muster/launch/task/task_environment.h"
#include "muster/launch/task_run/code_copy.h"

namespace muster {
namespace {

constexpr size_t kMostOfValue = 48;
constexpr char kDefault[] = "default";
constexpr char kHidden[] = "(not shown)";

// Makes the table's rows.
class SourceRows {
 public:
  SourceRows(const ExperimentFile& file, const GivenValues& given) : file_(file), given_(given) {}

  std::vector<std::vector<std::string>> Make() {
    AddSection(ExperimentKeySection(kFileSection), "");
    AddFlags();
    AddVariable("MUSTER_HOME", "HOME/.muster", /*secret=*/false);
    AddVariable(kJobTokenVariable, "a new one for each run", /*secret=*/true);
    AddVariable(kDevicesVariable, "all GPUs", /*secret=*/false);
    return std::move(rows_);
  }

 private:
  void Add(const std::string& name, const std::string& value, const std::string& source) {
    rows_.push_back({absl::StrCat("  ", name), OneLine(value, kMostOfValue), source});
  }
  std::string LineOf(const FileValue& value) const { return absl::StrCat(file_.name, ":", value.line); }

  static bool IsAtOrBelow(const std::string& path, const std::string& above) {
    return path == above || absl::StartsWith(path, above + ".") || absl::StartsWith(path, above + "[");
  }
  bool HasValues(const std::string& path) const {
    return std::any_of(file_.values.begin(), file_.values.end(),
                       [&path](const FileValue& value) { return IsAtOrBelow(value.path, path); });
  }

  // Every key of the section with the file's value or the default.
  void AddSection(const KeySection& section, const std::string& path) {
    for (const KeyRow& key : section.keys) {
      const std::string name = absl::StrCat(path, path.empty() ? "" : ".", key.name);
      if (key.name == "parameters" && path == "train") {
        AddNamed(name, given_.parameters, "--param");
      } else if (!given_.of_job.empty() && name == given_.options.hosts.job_engine()) {
        AddNamed(name, given_.of_job, absl::StrCat("--", name));
      } else if (ShowsKeysOf(key, name)) {
        AddSection(ExperimentKeySection(key.forms[0].section), name);
      } else if (const auto source = HostSourceOf(name, file_, given_); source.has_value()) {
        Add(name, source->value, source->source);
      } else if (HasValues(name)) {
        AddFileValues(name);
      } else if (!key.standard.empty() && !key.required() && !IsOfAnotherEngine(name, given_)) {
        Add(name, key.standard, kDefault);
      }
    }
  }
  // Whether the keys of a section have rows of their own though the file may have none of them.
  bool ShowsKeysOf(const KeyRow& key, const std::string& name) const {
    if (key.forms.size() != 1 || key.forms[0].kind != FormKind::kSection) return false;
    if (name == "train" || name == "train.resources" || name == "train.restart") return true;
    return name == absl::StrCat("train.", AbslView(Name(file_.framework)));
  }
  void AddFileValues(const std::string& path) {
    const bool secret = path == "train.env";
    for (const FileValue& value : file_.values)
      if (IsAtOrBelow(value.path, path)) Add(value.path, secret ? kHidden : value.text, LineOf(value));
  }

  // The values below a key of the file, or those of `flag` ("NAME=VALUE") in their place; then those that only the flag
  // has.
  void AddNamed(const std::string& path, const std::vector<std::string>& values, const std::string& flag) {
    std::set<std::string> shown;
    for (const FileValue& value : file_.values) {
      if (!IsAtOrBelow(value.path, path)) continue;
      const std::string* given = nullptr;
      std::string name = value.path;
      for (const std::string& text : values)
        if (const std::string one = absl::StrCat(path, ".", NameIn(text)); IsAtOrBelow(value.path, one))
          given = &text, name = one;
      if (given == nullptr)
        Add(value.path, value.text, LineOf(value));
      else if (shown.insert(name).second)
        Add(name, ValueIn(*given), absl::StrCat(flag, ", not ", LineOf(value)));
    }
    for (const std::string& text : values)
      if (const std::string name = absl::StrCat(path, ".", NameIn(text)); shown.insert(name).second)
        Add(name, ValueIn(text), flag);
  }
  static std::string NameIn(const std::string& text) { return text.substr(0, text.find('=')); }
  static std::string ValueIn(const std::string& text) {
    const size_t equals = text.find('=');
    return equals == std::string::npos ? "" : text.substr(equals + 1);
  }

  void AddFlags() {
    Add("stop-grace", absl::StrCat(given_.options.stop_grace_seconds, " s"),
        given_.stop_grace ? "--stop-grace" : kDefault);
    Add("no-gpus", given_.options.no_gpus ? "true" : "false", given_.options.no_gpus ? "--no-gpus" : kDefault);
    Add("code_limit", given_.code_limit.empty() ? MemoryText(kUsualCodeLimit) : given_.code_limit,
        given_.code_limit.empty() ? kDefault : "--code_limit");
    Add("no-venv", given_.options.no_venv ? "true" : "false", given_.options.no_venv ? "--no-venv" : kDefault);
  }
  void AddVariable(const char* name, const char* otherwise, bool secret) {
    const std::string value = VariableIn(given_.environment, name);
    if (value.empty())
      Add(name, otherwise, kDefault);
    else
      Add(name, secret ? kHidden : value, "environment");
  }

  const ExperimentFile& file_;
  const GivenValues& given_;
  std::vector<std::vector<std::string>> rows_;
};

}  // namespace

std::string ValueSourcesText(const ExperimentFile& file, const GivenValues& given) {
  return AlignedText(SourceRows(file, given).Make());
}

}  // namespace muster
