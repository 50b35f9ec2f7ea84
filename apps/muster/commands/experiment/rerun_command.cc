// `muster rerun ID`: a new experiment with the file, the code and the parameters of another.
#include <CLI/CLI.hpp>
#include <memory>
#include <string>

#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/experiment/check_experiment.h"
#include "apps/muster/experiment/experiment_command.h"
#include "apps/muster/experiment/submit_experiment.h"
#include "muster/base/status_macros.h"
#include "muster/launch/project/project_tree.h"

namespace muster {
namespace {

constexpr char kRerunDescription[] = "Start a new experiment with the file, the code and the parameters of another";

constexpr char kRerunFooter[] = R"(
Uses the stored copy of the experiment's code, whatever the folder holds now, and the environment of this shell; PATH and
other harmless variables are as they were (docs/experiments/registry.md, "Kept variables"). The new experiment has an id and an OUTPUT_DIR of its own. To resume the old one instead, from a checkpoint
say: muster train --experiment ID.

Examples:
  muster rerun 4
  muster rerun 4.3           one run of a grid, as an experiment of its own
  muster rerun               the last experiment of the project here

Exit codes: those of muster train.)";

struct RerunFlags {
  std::string id;
  bool no_gpus = false;
  bool no_venv = false;
  ShowFlags show;
};

absl::StatusOr<int> Rerun(const RerunFlags& flags) {
  ASSIGN_OR_RETURN(OpenedHome opened, OpenHome());
  ASSIGN_OR_RETURN(const ExperimentName name, NameOrLastHere(*opened.registry, flags.id));
  if (name.task.has_value())
    return absl::InvalidArgumentError(
        absl::StrCat(flags.id, ": a single task can't be run again; accepted: ", name.id.ToString()));
  ASSIGN_OR_RETURN(const RunRecord run, opened.registry->Run(name.id));
  Submission submission;
  ASSIGN_OR_RETURN(submission.experiment, opened.registry->Specification(name.id.number));
  if (name.id.run > 0) {
    submission.experiment.runs = {run.parameters};
    submission.experiment.grid = false;
  }
  if (flags.no_gpus) submission.experiment.options.no_gpus = true;
  if (flags.no_venv) submission.experiment.options.no_venv = true;
  const absl::Status kept = KeepTree(opened.home.trees(), submission.experiment.tree);
  if (absl::IsNotFound(kept))
    return absl::FailedPreconditionError(absl::StrCat(
        "the code of experiment ", name.id.ToString(), " isn't kept any more (", opened.home.trees(), "/",
        submission.experiment.tree, "); muster train in ", submission.experiment.folder, " uses the present code"));
  RETURN_IF_ERROR(kept);
  ASSIGN_OR_RETURN(const ExperimentFile file,
                   ParseExperimentFile(submission.experiment.file_text, submission.experiment.file_name));
  ASSIGN_OR_RETURN(
      const ExperimentCheck check,
      CheckExperiment(file, submission.experiment.runs, submission.experiment.options, ExperimentHostHere(file)));
  const std::string command = absl::StrCat("muster rerun ", ShownId(name.id), flags.no_gpus ? " --no-gpus" : "",
                                           flags.no_venv ? " --no-venv" : "");
  RETURN_IF_ERROR(StatusOf(check, command, {}));
  submission.concurrency = file.concurrency;
  return Submit(opened, submission, flags.show);
}

int RerunAndReport(const RerunFlags& flags) {
  const absl::StatusOr<int> code = Rerun(flags);
  return code.ok() ? *code : ReportError("rerun", code.status());
}

}  // namespace

void AddRerunCommand(CLI::App& app, int& exit_code) {
  auto flags = std::make_shared<RerunFlags>();
  CLI::App* command = app.add_subcommand("rerun", kRerunDescription);
  command->add_option("ID", flags->id, "An experiment, or a run of a grid")->type_name("")->check(RefuseEmptyId);
  command->add_flag("--no-gpus", flags->no_gpus, "Run without the GPUs that the file asks for");
  command->add_flag("--no-venv", flags->no_venv,
                    "Use the python on PATH, whatever framework version the file asks for");
  AddShowFlags(*command, flags->show);
  command->footer(kRerunFooter);
  command->callback([flags, &exit_code] { exit_code = RerunAndReport(*flags); });
}

}  // namespace muster
