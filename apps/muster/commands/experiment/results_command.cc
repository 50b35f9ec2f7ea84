// `muster results [ID]`: what the runs of a grid came to, sorted by a metric; as a table, JSON or a page.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/experiment_command.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/results/grid_report.h"
#include "muster/launch/results/metrics.h"

namespace muster {
namespace {

constexpr char kResultsDescription[] = "Show the results of a grid's runs, sorted by a metric";

constexpr char kResultsFooter[] = R"(
Shows one line per run, with its parameters and the metric's last value; an experiment without a grid is one run.
Metrics are the scalars of TensorBoard logs in a run's OUTPUT_DIR, and the numbers of metrics.json or of metrics.jsonl's
last line there. Metrics in a folder below it begin with the folder's name: eval/accuracy. The end of a name is enough
if it is unique. Without --metric: test_accuracy, accuracy, loss, or the only metric. Losses and errors sort lowest
first. --html writes one file that needs no network: a page with a plot of the metric against each parameter, and a
table that sorts by a click.

Examples:
  muster results 4
  muster results 4 --metric test_accuracy
  muster results 4 --metric eval/loss --html results.html
  muster results 4 --json

Exit codes: 0; 2 no such experiment or metric.)";

struct ResultsFlags {
  std::string id;
  std::string metric;
  std::string html;
  bool lowest = false, highest = false;
  bool json = false;
};

absl::StatusOr<std::vector<GridRow>> RowsOf(Registry& registry, const RunRecord& run) {
  std::vector<RunRecord> runs = {run};
  if (run.runs > 0) {
    ASSIGN_OR_RETURN(runs, registry.Runs(run.id.number));
  }
  std::vector<GridRow> rows;
  for (RunRecord& one : runs) {
    GridRow row;
    row.metrics = ReadMetrics(one.output_dir);
    row.run = std::move(one);
    rows.push_back(std::move(row));
  }
  return rows;
}

absl::Status ShowResults(const ResultsFlags& flags) {
  ASSIGN_OR_RETURN(const OpenedHome opened, OpenHomeToRead());
  ASSIGN_OR_RETURN(const ExperimentName name, NameOrLast(*opened.registry, flags.id));
  if (name.task.has_value())
    return absl::InvalidArgumentError(absl::StrCat(FullName(name.id, *name.task),
                                                   ": accepted is an experiment or a run of a grid, here ",
                                                   name.id.ToString(), "; tasks have no results of their own"));
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(name.id));
  ASSIGN_OR_RETURN(std::vector<GridRow> rows, RowsOf(*opened.registry, run));
  const std::optional<bool> lowest_first = flags.lowest || flags.highest ? std::optional(flags.lowest) : std::nullopt;
  ASSIGN_OR_RETURN(const GridReportOptions options, ResolveMetric(rows, flags.metric, lowest_first));
  if (options.metric.empty())
    std::fprintf(stderr,
                 "muster results: no metrics yet: no TensorBoard logs, metrics.json or metrics.jsonl in OUTPUT_DIR\n");
  if (!flags.html.empty()) {
    const std::string page =
        GridHtml(absl::StrCat("Experiment ", run.id.ToString(), " of ", run.project), rows, options);
    RETURN_IF_ERROR(WriteFileAtomically(PosixFileSystem(), flags.html, AsBytes(page.data(), page.size())));
    std::fprintf(stderr, "muster results: wrote %s\n", flags.html.c_str());
  }
  const std::string text = flags.json ? GridJson(std::move(rows), options) : GridTable(std::move(rows), options);
  std::fputs(text.c_str(), stdout);
  return absl::OkStatus();
}

}  // namespace

void AddResultsCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<ResultsFlags>();
  CLI::App* command = app.add_subcommand("results", kResultsDescription);
  command->add_option("ID", flags->id, "An experiment or a run of a grid (default: the project's last experiment)")
      ->type_name("")
      ->check(RefuseEmptyId);
  command->add_option("--metric", flags->metric, "The metric to sort by")->type_name("NAME");
  CLI::Option* lowest =
      command->add_flag("--lowest", flags->lowest, "Sort lowest first (default for losses and errors)");
  command->add_flag("--highest", flags->highest, "Sort highest first (default for all others); not with --lowest")
      ->excludes(lowest);
  command->add_option("--html", flags->html, "Also write a page with plots")->type_name("FILE");
  command->add_flag("--json", flags->json, "Print JSON, with all metrics");
  command->footer(kResultsFooter);
  command->callback([flags, &exit_code] {
    const absl::Status done = ShowResults(*flags);
    exit_code = done.ok() ? 0 : ReportError("results", done);
  });
}

}  // namespace muster
