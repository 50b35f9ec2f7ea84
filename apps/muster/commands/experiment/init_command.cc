// `muster init`: writes a commented muster.yml to begin with.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <system_error>
#include <vector>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/bytes.h"
#include "muster/base/files/file_system.h"
#include "muster/base/text/nearest_name.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/spec/file_template.h"

namespace muster {
namespace {

constexpr char kInitDescription[] = "Write a commented muster.yml as a start";

constexpr char kInitFooter[] = R"(
Examples:
  muster init                              for a program of any kind, one task
  muster init --framework muster           workers and parameter servers of muster
  muster init --framework tensorflow       workers and a parameter server, which find each other by TF_CONFIG
  muster init --framework pytorch          processes that find each other as under torchrun
  muster init && muster train

The project is named after the folder. An existing muster.yml or riseml.yml is kept unless --force is given.)";

constexpr Framework kFrameworks[] = {Framework::kMuster, Framework::kTensorflow, Framework::kPytorch, Framework::kAny};

struct InitOptions {
  std::string framework = "any";
  bool force = false;
  bool json = false;
};

absl::StatusOr<Framework> FrameworkNamed(const std::string& text) {
  std::vector<std::string> names;
  for (const Framework framework : kFrameworks) {
    if (text == Name(framework)) return framework;
    names.emplace_back(Name(framework));
  }
  return absl::InvalidArgumentError(absl::StrCat("--framework: unknown ", Quoted(text), NearestHint(text, names),
                                                 "; accepted: ", absl::StrJoin(names, ", ")));
}

absl::Status CheckNothingThere(const std::string& folder) {
  const auto there = FindExperimentFile(folder);
  if (!there.ok()) return absl::OkStatus();
  return absl::InvalidArgumentError(absl::StrCat(
      *there, " exists; accepted: a folder without muster.yml and riseml.yml, or --force to write muster.yml anyway"));
}

int Run(const InitOptions& options) {
  const auto framework = FrameworkNamed(options.framework);
  if (!framework.ok()) return UsageError("init", framework.status());
  std::error_code failed;
  const std::string folder = std::filesystem::current_path(failed).string();
  if (failed)
    return UsageError(
        "init", absl::InvalidArgumentError("the working directory doesn't exist any more; accepted: one that does"));
  if (!options.force) {
    const absl::Status nothing = CheckNothingThere(folder);
    if (!nothing.ok()) return UsageError("init", nothing);
  }
  const std::string project = ProjectNameOf(std::filesystem::path(folder).filename().string());
  const std::string text = ExperimentFileTemplate(*framework, project);
  const std::string path = JoinPath(folder, "muster.yml");
  const absl::Status written = WriteFileAtomically(PosixFileSystem(), path, AsBytes(text.data(), text.size()));
  if (!written.ok()) {
    UsageError("init", written);
    return 1;  // a problem of the disk, not a wrong usage
  }
  if (options.json) {
    const nlohmann::ordered_json said = {{"file", path}, {"project", project}, {"framework", options.framework}};
    std::printf("%s\n", said.dump(-1, ' ', false, nlohmann::ordered_json::error_handler_t::replace).c_str());
  } else {
    std::printf("wrote muster.yml for project %s; edit it, then `muster train`\n", project.c_str());
  }
  return 0;
}

}  // namespace

void AddInitCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InitOptions>();
  CLI::App* command = app.add_subcommand("init", kInitDescription);
  command->add_option("--framework", options->framework, "muster, tensorflow, pytorch or any")
      ->type_name("NAME")
      ->capture_default_str();
  command->add_flag("--force", options->force, "Overwrite an existing muster.yml");
  command->add_flag("--json", options->json, "Print what was written as JSON");
  command->footer(kInitFooter);
  command->callback([options, &exit_code] { exit_code = Run(*options); });
}

}  // namespace muster
