// `muster ls`: experiments with their parameters and how they ended.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/experiment_folder.h"
#include "apps/muster/experiment/experiment_json.h"
#include "muster/base/status_macros.h"
#include "muster/launch/output/aligned_lines.h"

namespace muster {
namespace {

constexpr char kLsDescription[] = "List experiments with their parameters and how they ended";

constexpr char kLsFooter[] = R"(
Newest last. Lists the project of this folder (see its muster.yml); without such a file, or with --all, all projects.

Examples:
  muster ls
  muster ls --last 0         all experiments
  muster ls --project tea-timer --json
  muster ls --all --ids      only the ids, one per line

Exit codes: 0; 2 wrong usage.)";

constexpr int kShown = 20;

struct LsFlags {
  std::string project;
  bool all = false;
  std::string last = absl::StrCat(kShown);
  bool ids = false;
  bool json = false;
};

std::string DurationOf(const RunRecord& run) {
  if (!HasEnded(run.state)) return "";
  return ShownAge(run.ended - run.created);
}

std::string ParametersOf(const RunRecord& run) {
  if (run.runs > 0) return absl::StrCat(run.runs, " runs");
  return absl::StrJoin(run.parameters, " ", absl::PairFormatter("="));
}

std::string TableOf(const std::vector<RunRecord>& runs) {
  std::vector<std::vector<std::string>> rows = {
      {"ID", "PROJECT", "STATE", "CREATED", "DURATION", "EXIT", "PARAMETERS"}};
  for (const RunRecord& run : runs)
    rows.push_back({run.id.ToString(), run.project, std::string(Name(run.state)), ShownTime(run.created),
                    DurationOf(run), HasEnded(run.state) ? absl::StrCat(run.exit_code) : "", ParametersOf(run)});
  return AlignedText(std::move(rows));
}

std::string JsonListOf(const std::vector<RunRecord>& runs) {
  nlohmann::json list = nlohmann::json::array();
  for (const RunRecord& run : runs) list.push_back(JsonOf(run));
  return OneLineJson(list) + "\n";
}

std::string IdsOf(const std::vector<RunRecord>& runs) {
  std::string ids;
  for (const RunRecord& run : runs) absl::StrAppend(&ids, run.id.ToString(), "\n");
  return ids;
}

absl::StatusOr<std::string> ProjectOf(const LsFlags& flags) {
  if (!flags.all) return flags.project.empty() ? ProjectHere() : flags.project;
  if (flags.project.empty()) return "";
  return absl::InvalidArgumentError("--all and --project: accepted is one of them");
}

absl::Status List(const LsFlags& flags) {
  int last = 0;
  if (!absl::SimpleAtoi(flags.last, &last) || last < 0)
    return absl::InvalidArgumentError(
        absl::StrCat("--last '", flags.last, "': accepted is a whole number; 0 shows all"));
  ASSIGN_OR_RETURN(const std::string project, ProjectOf(flags));
  ASSIGN_OR_RETURN(const OpenedHome opened, OpenHomeToRead());
  // One more than shown, to know whether there are older ones.
  ASSIGN_OR_RETURN(std::vector<RunRecord> runs,
                   opened.registry->List({.project = project, .last = last == 0 ? 0 : last + 1}));
  const bool older = last > 0 && runs.size() > static_cast<size_t>(last);
  if (older) runs.erase(runs.begin());
  std::fputs((flags.json ? JsonListOf(runs) : flags.ids ? IdsOf(runs) : TableOf(runs)).c_str(), stdout);
  if (older && !flags.json && !flags.ids) std::fputs("(there are older ones: --last 0 shows all)\n", stderr);
  return absl::OkStatus();
}

}  // namespace

void AddLsCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<LsFlags>();
  CLI::App* command = app.add_subcommand("ls", kLsDescription);
  command->add_option("--project", flags->project, "Only this project")->type_name("NAME");
  command->add_flag("--all", flags->all, "All projects");
  command->add_option("--last", flags->last, "How many of the newest (default 20); 0: all")->type_name("N");
  command->add_flag("--ids", flags->ids, "Print only ids, one per line");
  command->add_flag("--json", flags->json, "Print JSON, on one line");
  command->footer(kLsFooter);
  command->callback([flags, &exit_code] {
    const absl::Status done = List(*flags);
    exit_code = done.ok() ? 0 : ReportError("ls", done);
  });
}

}  // namespace muster
