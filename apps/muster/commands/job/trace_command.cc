// `muster trace`: merge and summary, what is done with the traces that tasks have written.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/files/file_system.h"
#include "muster/cluster/quoted.h"
#include "muster/observe/trace_merge.h"
#include "muster/observe/trace_summary.h"

namespace muster {
namespace {

constexpr char kTraceFooter[] = R"(
`muster run --trace FILE` merges and summarises automatically when the run ends. By hand: each task started with
--trace=run.json writes a part, such as run.json.worker-0, which trace viewers open, too. A `muster run` that is itself
killed leaves its parts in a folder, run.json.parts-RUN; give that folder to merge.

Examples:
  muster trace merge run.json run.json.*
  muster trace summary run.json

Traces are opened in chrome://tracing or ui.perfetto.dev. Exit codes: 0 done; 2 wrong usage, or no such file.)";

struct Flags {
  std::string output;
  std::vector<std::string> parts;
  std::string trace;
};

// Replaces a folder, such as a killed run leaves, by the files in it.
std::vector<std::string> FilesOf(const std::vector<std::string>& parts) {
  std::vector<std::string> files;
  for (const std::string& part : parts) {
    const auto names = PosixFileSystem().ListDirectory(part);
    if (names.ok()) {
      for (const std::string& name : *names) files.push_back(JoinPath(part, name));
    } else {
      files.push_back(part);
    }
  }
  return files;
}

int Merge(const Flags& flags) {
  const auto normal = [](const std::string& path) { return std::filesystem::path(path).lexically_normal(); };
  const std::vector<std::string> files = FilesOf(flags.parts);
  if (std::any_of(files.begin(), files.end(), [&](const auto& file) { return normal(file) == normal(flags.output); }))
    return UsageError("trace merge", absl::InvalidArgumentError(absl::StrCat(
                                         Quoted(flags.output), " is both the output and one of the parts")));
  const auto tasks = MergeTrace(PosixFileSystem(), files, flags.output);
  if (!tasks.ok()) return UsageError("trace merge", tasks.status());
  for (const MergedTask& task : *tasks) {
    const std::string clock =
        task.uncertainty < 0 ? std::string("its clock was never compared: its times may be off by any amount")
        : task.measured
            ? absl::StrCat("shifted by ", task.offset / 1000, " us, at most ", task.uncertainty / 1000, " us off")
            : std::string("same clock as ps:0");
    std::printf("%s: %zu events, %s%s%s\n", task.task.c_str(), task.events, clock.c_str(),
                task.left_out > 0 ? absl::StrCat(", ", task.left_out, " left out").c_str() : "",
                task.ended ? "" : ", cut off (the task was killed, or still runs)");
  }
  return 0;
}

int Summarize(const Flags& flags) {
  const auto trace = PosixFileSystem().ReadFile(flags.trace);
  if (!trace.ok()) return UsageError("trace summary", trace.status());
  const auto tables = SummarizeTrace(*trace);
  if (!tables.ok())
    return UsageError("trace summary",
                      absl::InvalidArgumentError(absl::StrCat(flags.trace, ": ", tables.status().message())));
  for (const StepTimesTable& table : *tables) std::fputs(StepTimesText(table).c_str(), stdout);
  if (tables->empty()) std::puts("no steps");
  return 0;
}

}  // namespace

void AddTraceCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<Flags>();
  CLI::App* command = app.add_subcommand("trace", "Merge the traces of tasks, and show where the steps' time went");
  command->require_subcommand(1);
  command->footer(kTraceFooter);
  CLI::App* merge = command->add_subcommand("merge", "Merge the tasks' parts into one trace on one clock");
  merge->add_option("OUT", flags->output, "The file to write")->required()->type_name("");
  merge->add_option("PART", flags->parts, "A file that --trace made in a task, or a folder of such files")
      ->required()
      ->type_name("");
  merge->callback([flags, &exit_code] { exit_code = Merge(*flags); });
  CLI::App* summary = command->add_subcommand("summary", "Print a table of where each step's time went");
  summary->add_option("FILE", flags->trace, "A trace, or a part of one")->required()->type_name("");
  summary->callback([flags, &exit_code] { exit_code = Summarize(*flags); });
}

}  // namespace muster
