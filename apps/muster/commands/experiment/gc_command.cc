// `muster gc`: removes what no experiment needs any more from MUSTER_HOME.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "absl/time/time.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/experiment_json.h"
#include "apps/muster/hosts/host_command.h"
#include "apps/muster/hosts/host_flags.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/absl_view.h"
#include "muster/base/clock.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/project/decimal_size.h"
#include "muster/launch/project/garbage.h"

namespace muster {
namespace {

constexpr char kGcDescription[] =
    "Remove from MUSTER_HOME what no experiment needs any more: code, builds, environments";

constexpr char kGcFooter[] = R"(
Without flags it removes what can be made again: copies of code, builds and virtual environments that no experiment
(`muster ls`, ended ones too) uses and that haven't been used for an hour, failed builds, and leftovers of killed
processes. It keeps experiments, with all that they wrote.

With --experiments-older-than it also forgets experiments and removes all of MUSTER_HOME/experiments/ID: logs, the
working folder, and OUTPUT_DIR, CHECKPOINTS AND MODELS INCLUDED, unless `output:` of the file named a folder outside
MUSTER_HOME, which is never touched. It never removes experiments that haven't ended.

With --hosts or --host_file it looks on these hosts instead for jobs whose agent was killed: it ends their processes and
removes their folders. Jobs that run are named and left alone.

It is safe to use while experiments run or are being started.

Examples:
  muster gc --dry-run                                     show what would be removed, and its size
  muster gc --older-than 7                                keep what was used in the last week
  muster gc --experiments-older-than 30 --keep 20         forget what ended a month ago, but not the last 20
  muster gc --hosts h1,h2                                 end what dead jobs have left on hosts
  muster gc --json                                        one object: removed (kind, path, bytes), bytes, notes, problems

Exit codes: 0 done; 1 something couldn't be removed (named on stderr); 2 wrong usage.)";

struct GcFlags {
  double older_than_days = 0;
  double experiments_days = 0;
  int keep = 0;
  bool dry_run = false;
  bool json = false;
  HostFlags hosts;
  bool of_home = false;  // one of the flags for MUSTER_HOME is given
};

// Checks for CLI11, whose own print types and ranges as in C++.
std::string DaysFromZero(const std::string& text) {
  double days = 0;
  if (absl::SimpleAtod(text, &days) && days >= 0 && days <= 1e6) return "";
  return absl::StrCat("'", text, "': accepted is a number of days from 0 to 1000000");
}

std::string CountFromZero(const std::string& text) {
  int count = 0;
  if (absl::SimpleAtoi(text, &count) && count >= 0) return "";
  return absl::StrCat("'", text, "': accepted is a whole number from 0");
}

std::string JsonText(const GarbageReport& report, bool dry_run) {
  nlohmann::json removed = nlohmann::json::array();
  for (const Garbage& garbage : report.removed)
    removed.push_back({{"kind", std::string(Name(garbage.kind))}, {"path", garbage.path}, {"bytes", garbage.bytes}});
  const nlohmann::json all = {{"removed", removed},
                              {"bytes", report.bytes},
                              {"dry_run", dry_run},
                              {"notes", report.notes},
                              {"problems", report.problems}};
  return OneLineJson(all) + "\n";
}

std::string PlainText(const GarbageReport& report, bool dry_run) {
  std::string text;
  for (const Garbage& garbage : report.removed)
    absl::StrAppend(&text, dry_run ? "would remove " : "removed ", garbage.path, " (", AbslView(Name(garbage.kind)),
                    ", ", DecimalSize(garbage.bytes), ")\n");
  for (const std::string& note : report.notes) absl::StrAppend(&text, "note: ", note, "\n");
  if (report.removed.empty()) return text + "Nothing to remove.\n";
  return absl::StrCat(text, dry_run ? "Would free " : "Freed ", DecimalSize(report.bytes), ".\n");
}

absl::StatusOr<GarbageReport> Collect(const GarbageOptions& options) {
  const auto opened = OpenHome();
  if (!opened.ok()) return opened.status();
  return CollectGarbage(opened->home, *opened->registry, RealClock(), options);
}

// Returns the exit code.
absl::StatusOr<int> CleanHosts(const GcFlags& flags) {
  if (flags.json || flags.of_home)
    return absl::InvalidArgumentError(
        "--hosts: accepted without --json, --older-than, --experiments-older-than, --keep");
  ASSIGN_OR_RETURN(const std::vector<Host> hosts, HostsOf(flags.hosts, {}));
  if (hosts.empty()) return absl::InvalidArgumentError("--ssh_config: accepted with --hosts or --host_file only");
  ASSIGN_OR_RETURN(const HostPlan plan, HostPlanOf(flags.hosts, hosts));
  int exit_code = 0;
  std::vector<std::string> words = {"muster", "sweep"};
  if (flags.dry_run) words.emplace_back("--dry-run");
  for (const Host& host : hosts) {
    const absl::StatusOr<HostAnswer> said = RunOnHost({.plan = plan, .host = host.name, .words = words});
    if (absl::IsCancelled(said.status())) return said.status();
    if (!said.ok() || said->exit_code != 0) {
      ReportError("gc", absl::UnavailableError(said.ok() ? absl::StrCat(host.name, ": ", OneLine(said->stderr_text))
                                                         : said.status().message()));
      exit_code = 1;
      continue;
    }
    for (const absl::string_view line : absl::StrSplit(said->stdout_text, '\n', absl::SkipEmpty()))
      std::printf("%s: %s\n", host.name.c_str(), std::string(line).c_str());
    if (said->stdout_text.empty()) std::printf("%s: nothing is left there\n", host.name.c_str());
  }
  return exit_code;
}

int Run(const GcFlags& flags, bool experiments, bool keep) {
  if (!GivenHostFlags(flags.hosts).empty()) {
    const absl::StatusOr<int> code = CleanHosts(flags);
    return code.ok() ? *code : ReportError("gc", code.status());
  }
  if (keep && !experiments)
    return UsageError("gc", absl::InvalidArgumentError(
                                "--keep says how many experiments stay; accepted: with --experiments-older-than DAYS "
                                "(0: all that have ended)"));
  GarbageOptions options{
      .older_than = absl::Hours(24) * flags.older_than_days, .keep = flags.keep, .dry_run = flags.dry_run};
  if (experiments) options.experiments_older_than = absl::Hours(24) * flags.experiments_days;
  const auto report = Collect(options);
  if (!report.ok()) return ReportError("gc", report.status());
  std::fputs((flags.json ? JsonText(*report, flags.dry_run) : PlainText(*report, flags.dry_run)).c_str(), stdout);
  for (const std::string& problem : report->problems) ReportError("gc", absl::InternalError(problem));
  return report->problems.empty() ? 0 : 1;
}

}  // namespace

void AddGcCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<GcFlags>();
  CLI::App* command = app.add_subcommand("gc", kGcDescription);
  const CLI::Option* older = command
                                 ->add_option("--older-than", flags->older_than_days,
                                              "Only remove what hasn't been used for DAYS (default: an hour)")
                                 ->type_name("DAYS")
                                 ->check(DaysFromZero);
  const CLI::Option* experiments =
      command
          ->add_option("--experiments-older-than", flags->experiments_days,
                       "Also forget experiments that ended DAYS ago, with their folders and the output in them")
          ->type_name("DAYS")
          ->check(DaysFromZero);
  const CLI::Option* keep =
      command->add_option("--keep", flags->keep, "Keep the N experiments that ended last, however old")
          ->type_name("N")
          ->check(CountFromZero);
  AddHostListFlags(command, flags->hosts);
  command->add_flag("--dry-run", flags->dry_run, "Only show what would be removed");
  command->add_flag("--json", flags->json, "Print one JSON object");
  command->footer(kGcFooter);
  command->callback([flags, older, experiments, keep, &exit_code] {
    flags->of_home = older->count() + experiments->count() + keep->count() > 0;
    exit_code = Run(*flags, experiments->count() > 0, keep->count() > 0);
  });
}

}  // namespace muster
