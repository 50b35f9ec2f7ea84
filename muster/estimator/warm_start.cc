#include "muster/estimator/warm_start.h"

#include <algorithm>
#include <regex>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/store/model/model.h"

namespace muster {
namespace {

absl::Status WarmStartMistake(const std::string& what) { return WrongOptionError(absl::StrCat("warm start: ", what)); }

absl::StatusOr<std::regex> WarmStartExpression(const WarmStartSettings& settings) {
  try {
    return std::regex(settings.variables);
  } catch (const std::regex_error& error) {
    return WarmStartMistake(
        absl::StrCat("variables is '", settings.variables, "', which is no regular expression: ", error.what()));
  }
}

absl::Status CheckWarmStartNames(const WarmStartSettings& settings, const std::vector<VariableSpec>& variables) {
  for (const auto& renamed : settings.names) {
    const std::string& here = renamed.first;
    if (std::any_of(variables.begin(), variables.end(), [&](const VariableSpec& v) { return v.name == here; }))
      continue;
    const auto name_of = [](std::string* out, const VariableSpec& variable) { out->append(variable.name); };
    return WarmStartMistake(absl::StrCat("names has '", here, "' (called '", renamed.second,
                                         "' in the checkpoint), which is no variable of this model; it has ",
                                         absl::StrJoin(variables, ", ", name_of)));
  }
  return absl::OkStatus();
}

// Decides which variables to take, and under which names.
class WarmStartPlan {
 public:
  WarmStartPlan(const WarmStartSettings& settings, std::regex expression, const CheckpointReader& checkpoint)
      : settings_(settings), expression_(std::move(expression)), checkpoint_(checkpoint) {}

  // Returns the name in the checkpoint; empty: the variable stays as it is.
  absl::StatusOr<std::string> NameOf(const VariableSpec& variable) const {
    // The expression must match the beginning of the name, not all of it.
    if (!std::regex_search(variable.name, expression_, std::regex_constants::match_continuous)) return std::string();
    const auto renamed = settings_.names.find(variable.name);
    const std::string name = renamed == settings_.names.end() ? variable.name : renamed->second;
    const bool named = renamed != settings_.names.end() || settings_.variables != WarmStartSettings().variables;
    const ManifestVariable* saved = checkpoint_.manifest().Find(name);
    std::string obstacle;
    if (saved == nullptr) {
      obstacle = absl::StrCat("checkpoint ", checkpoint_.path(), " has no variable '", name, "'");
    } else if (variable.kind == VariableKind::kRows) {
      obstacle = absl::StrCat("'", variable.name, "' is a table of rows, which the ps make and no worker holds");
    }
    if (!obstacle.empty() && named) return WarmStartMistake(obstacle);
    if (!obstacle.empty()) {
      LogInfo("Not warm-starting variable: ", variable.name, ": ", obstacle);
      return std::string();
    }
    if (saved->dtype == variable.dtype && saved->shape == variable.shape) return name;
    return WarmStartMistake(absl::StrCat("variable '", variable.name, "' is ", DescribeType(variable), " here, and '",
                                         name, "' ", DTypeName(saved->dtype), "[", absl::StrJoin(saved->shape, ","),
                                         "] in checkpoint ", checkpoint_.path(),
                                         "; leave it out by an expression in WarmStartSettings::variables"));
  }

 private:
  const WarmStartSettings& settings_;
  const std::regex expression_;
  const CheckpointReader& checkpoint_;
};

}  // namespace

absl::Status WarmStart(TensorSource& source, const WarmStartSettings& settings) {
  FileSystem& files = PosixFileSystem();
  ASSIGN_OR_RETURN(std::regex expression, WarmStartExpression(settings));
  RETURN_IF_ERROR(CheckWarmStartNames(settings, source.variables()));
  ASSIGN_OR_RETURN(const std::string path, FindCheckpoint(files, settings.checkpoint));
  ASSIGN_OR_RETURN(const auto checkpoint, CheckpointReader::Open(files, path));
  const WarmStartPlan plan(settings, std::move(expression), *checkpoint);
  LogInfo("Warm-starting from: ", path);
  // Resolves all names before the first value: on an error the module stays as it was.
  std::vector<std::string> names;
  for (const VariableSpec& variable : source.variables()) {
    ASSIGN_OR_RETURN(names.emplace_back(), plan.NameOf(variable));
  }
  if (std::all_of(names.begin(), names.end(), [](const std::string& name) { return name.empty(); }))
    return WarmStartMistake(
        absl::StrCat("no variable of this model matches '", settings.variables, "' and is in checkpoint ", path));
  for (size_t i = 0; i < names.size(); ++i) {
    if (names[i].empty()) continue;
    const std::string& here = source.variables()[i].name;
    RETURN_IF_ERROR(checkpoint->ReadVariable(names[i], source.value(i)));
    LogInfo("Warm-starting variable: ", here, "; prev_var_name: ", names[i] == here ? "Unchanged" : names[i]);
  }
  return source.ShowValues();
}

}  // namespace muster
