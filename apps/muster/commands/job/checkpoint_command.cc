// `muster checkpoint`: ls, show, diff, verify and reshard, what is done with checkpoints without a cluster.
#include <CLI/CLI.hpp>
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/checkpoint_text.h"
#include "apps/muster/commands/job/placement_flags.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/files/file_system.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/checkpoint_diff.h"
#include "muster/checkpoint/checkpoint_directory.h"
#include "muster/checkpoint/checkpoint_listing.h"
#include "muster/checkpoint/checkpoint_reader.h"
#include "muster/checkpoint/checkpoint_verification.h"
#include "muster/checkpoint/tensor_statistics.h"
#include "muster/cluster/address.h"
#include "muster/cluster/identity/environment.h"
#include "muster/cluster/quoted.h"
#include "muster/launch/system/random_hex.h"
#include "muster/store/calls/ask_ps.h"
#include "muster/store/checkpoints/reshard.h"

namespace muster {
namespace {

constexpr char kCheckpointDescription[] = "List, show, compare, verify, reshard and load checkpoints";

constexpr char kCheckpointFooter[] = R"(
PATH is a checkpoint ("model_dir/model.ckpt-100"), or a model_dir, which stands for its newest checkpoint.

Examples:
  muster checkpoint ls /data/run1
  muster checkpoint show /data/run1
  muster checkpoint diff /data/run1/model.ckpt-100 /data/run1/model.ckpt-200
  muster checkpoint verify /data/run1 --all
  muster checkpoint reshard /data/run1 --ps 4 --output /data/run1-on-4
  muster checkpoint load --ps 127.0.0.1:2222 /data/run1/model.ckpt-100

`muster checkpoint COMMAND --help` explains one of them. Wrong usage is one line on stderr and exit code 2; a damaged or
unreadable checkpoint is exit code 1, and the line names the file.)";

constexpr char kCheckpointLsFooter[] = R"(
Lists the oldest first, in order of commits. Checks sizes, but not contents (`verify` does that).

Example:
  muster checkpoint ls /data/run1

NAME            STEP  TIME                  BYTES  PARTS  RULE  NOTE
model.ckpt-100  100   2026-01-02T03:04:05Z  91024  2      adam  preserved
model.ckpt-200  200   2026-01-02T03:14:05Z  91024  2      adam  newest

preserved: kept for ever (keep_checkpoint_every_n_hours). DAMAGED: the manifest can't be read, or a part is missing or
has another size. --json prints one line: a list of {"name", "global_step", "time", "bytes", "parts", "rule", "newest",
"preserved", "damage"}; damage is null for an intact one.)";

constexpr char kCheckpointShowFooter[] = R"(
Without NAME: shows global step, rule, parts, variables with their slots and slices ("part 0@50[2,10]": rows from
element 50 on in part 0), names and sizes of the extras. NAME is a variable, or a variable and its slot
("fc.weight/momentum"): shows the number of values, the smallest, largest, mean and Euclidean norm of those that are
numbers, and how many are NaN.

Examples:
  muster checkpoint show /data/run1
  muster checkpoint show /data/run1/model.ckpt-100 fc.weight fc.weight/adam_v --json)";

constexpr char kDiffFooter[] = R"(
Compares the states of training: global step, rule, extras, variables, their values, slots and step counters, however
they are split into parts and slices. Ignores who saved them, when, and onto how many ps. Exit code 0: equal, nothing is
printed; 1: they differ, one line per difference on stdout, or one can't be read, one line on stderr.

Example:
  muster checkpoint diff /data/run1 /data/run1-on-4
  muster checkpoint diff --tolerance 1e-6 a/model.ckpt-100 b/model.ckpt-100)";

constexpr char kVerifyFooter[] = R"(
Reads every byte. Checks the checksums of the manifest and of the parts, the types and shapes of all tensors, and that
the slices cover each variable exactly. Prints one line per file, "ok" or what is wrong. Exit code 1 if anything is
wrong; each damaged file is named on stderr.

Examples:
  muster checkpoint verify /data/run1                    the newest checkpoint
  muster checkpoint verify /data/run1 --all              every checkpoint of the directory)";

constexpr char kReshardFooter[] = R"(
Training restores onto any number of ps without this. Use it for checkpoints that another program reads part by part, or
to see how a placement splits a model. The new checkpoint has the same global step, rule, variables, slots, step
counters and extras. A new stripe of 16,384 elements gets the largest step counter of the old ones that it covers. The
checkpoint appears as a whole or not at all, in a directory that must not have one yet.

Example:
  muster checkpoint reshard /data/run1 --ps 4 --strategy greedy --partition fixed:4 --output /data/run1-on-4

Prints the path of the new checkpoint.)";

struct CheckpointOptions {
  std::string path;
  std::string other;  // the second one, of diff
  std::vector<std::string> names;
  bool json = false;
  bool all = false;
  std::string tolerance = "0";
  PlacementFlags placement;
  std::string output;
  std::string ps;
};

// Returns whether the error is wrong usage, which has exit code 2.
template <typename Value>
bool IsMistake(const absl::StatusOr<Value>& result) {
  return absl::IsInvalidArgument(result.status()) || absl::IsNotFound(result.status());
}

int Fail(const char* command, const absl::Status& status) {
  UsageError(absl::StrCat("checkpoint ", command), status);  // the same line, another code
  return 1;
}

// Reports a result that isn't ok.
template <typename Value>
int Complain(const char* command, const absl::StatusOr<Value>& result) {
  if (IsMistake(result)) return UsageError(absl::StrCat("checkpoint ", command), result.status());
  return Fail(command, result.status());
}

constexpr char kLoadFooter[] = R"(
Asks the chief of the running job to load the checkpoint into all its parameter servers. Training resumes from there:
the workers pull the new values, and global_step follows. PATH is a path of the chief's machine. Prints the global step
once it is done. The job's token is read from MUSTER_JOB_TOKEN.

Example:
  muster checkpoint load --ps 127.0.0.1:2222 /data/run1/model.ckpt-100)";

// A limit for a load: the chief reads gigabytes and sends them to every ps.
constexpr absl::Duration kLoadPatience = absl::Minutes(10);
constexpr absl::Duration kReachPatience = absl::Seconds(3);

absl::StatusOr<std::unique_ptr<CheckpointReader>> Open(const std::string& path, bool verify_checksums) {
  ASSIGN_OR_RETURN(const std::string found, FindCheckpoint(PosixFileSystem(), path));
  auto reader = CheckpointReader::Open(PosixFileSystem(), found, {.verify_checksums = verify_checksums});
  // The checkpoint was found, so retention has removed it meanwhile.
  if (absl::IsNotFound(reader.status())) return absl::DataLossError(reader.status().message());
  return reader;
}

int Ls(const CheckpointOptions& options) {
  const auto list = ListWithContents(PosixFileSystem(), options.path);
  if (!list.ok()) return Complain("ls", list);
  std::fputs((options.json ? ListingJson(*list) : ListingTable(*list)).c_str(), stdout);
  return 0;
}

// NotFound if there is no such tensor, saying how to find the right one.
absl::StatusOr<NamedStatistics> StatisticsNamed(const CheckpointReader& checkpoint, const std::string& name) {
  std::string variable = name;
  std::string slot;
  if (const size_t slash = name.rfind('/'); checkpoint.manifest().Find(name) == nullptr && slash != std::string::npos) {
    variable = name.substr(0, slash);
    slot = name.substr(slash + 1);
  }
  auto statistics = StatisticsOf(checkpoint, variable, slot);
  if (absl::IsNotFound(statistics.status()))
    return absl::NotFoundError(absl::StrCat("NAME: ", Quoted(name),
                                            "; accepted: a variable, or a variable and its slot, ",
                                            "as `muster checkpoint show ", checkpoint.path(), "` lists them"));
  if (!statistics.ok()) return statistics.status();
  return NamedStatistics{name, *statistics};
}

int Show(const CheckpointOptions& options) {
  const auto checkpoint = Open(options.path, /*verify_checksums=*/false);
  if (!checkpoint.ok()) return Complain("show", checkpoint);
  const Manifest& manifest = (*checkpoint)->manifest();
  const std::string& path = (*checkpoint)->path();
  std::vector<NamedStatistics> tensors;
  for (const std::string& name : options.names) {
    auto statistics = StatisticsNamed(**checkpoint, name);
    if (!statistics.ok()) return Complain("show", statistics);
    tensors.push_back(*std::move(statistics));
  }
  std::string text;
  if (tensors.empty()) text = options.json ? ManifestJson(manifest, path) : ManifestText(manifest, path);
  if (!tensors.empty()) text = options.json ? StatisticsJson(tensors) : StatisticsTable(tensors);
  std::fputs(text.c_str(), stdout);
  return 0;
}

absl::StatusOr<double> ParseTolerance(const std::string& text) {
  double tolerance = 0;
  if (absl::SimpleAtod(text, &tolerance) && std::isfinite(tolerance) && tolerance >= 0) return tolerance;
  return absl::InvalidArgumentError(absl::StrCat("--tolerance: ", Quoted(text), "; accepted: a number from 0"));
}

int Diff(const CheckpointOptions& options) {
  const auto tolerance = ParseTolerance(options.tolerance);
  if (!tolerance.ok()) return Complain("diff", tolerance);
  const auto a = Open(options.path, /*verify_checksums=*/true);
  if (!a.ok()) return Complain("diff", a);
  const auto b = Open(options.other, /*verify_checksums=*/true);
  if (!b.ok()) return Complain("diff", b);
  const auto lines = DiffCheckpoints(**a, **b, {.tolerance = *tolerance});
  if (!lines.ok()) return Fail("diff", lines.status());
  for (const std::string& line : *lines) std::printf("%s\n", line.c_str());
  return lines->empty() ? 0 : 1;
}

absl::StatusOr<std::vector<std::string>> ToVerify(const CheckpointOptions& options) {
  const std::string& path = options.path;
  if (!options.all) {
    ASSIGN_OR_RETURN(const std::string newest, FindCheckpoint(PosixFileSystem(), path));
    return std::vector<std::string>{newest};
  }
  ASSIGN_OR_RETURN(const auto list, ListWithContents(PosixFileSystem(), path));
  std::vector<std::string> paths;
  for (const ListedCheckpoint& checkpoint : list) paths.push_back(JoinPath(path, checkpoint.name));
  return paths;
}

int Verify(const CheckpointOptions& options) {
  const auto paths = ToVerify(options);
  if (!paths.ok()) return Complain("verify", paths);
  int exit_code = 0;
  for (const std::string& path : *paths) {
    for (const VerifiedFile& file : VerifyCheckpoint(PosixFileSystem(), path)) {
      if (file.status.ok())
        std::printf("%s: ok, %llu bytes\n", file.path.c_str(), static_cast<unsigned long long>(file.bytes));
      if (!file.status.ok()) exit_code = Fail("verify", file.status);
    }
  }
  return exit_code;
}

int Reshard(const CheckpointOptions& options) {
  const auto chosen = ParsePlacementFlags(options.placement);
  if (!chosen.ok()) return Complain("reshard", chosen);
  const auto from = Open(options.path, /*verify_checksums=*/true);
  if (!from.ok()) return Complain("reshard", from);
  const auto path = ReshardCheckpoint(
      PosixFileSystem(), **from, options.output,
      {.num_ps = chosen->num_ps, .placement = chosen->strategy, .partitioning = chosen->partitioning}, RandomHex(8));
  if (absl::IsAlreadyExists(path.status()))
    return Complain("reshard", absl::StatusOr<std::string>(
                                   absl::InvalidArgumentError(absl::StrCat("--output: ", path.status().message()))));
  if (!path.ok()) return Complain("reshard", path);
  std::printf("%s\n", path->c_str());
  return 0;
}

int Load(const CheckpointOptions& options) {
  if (const auto parsed = ParseHostPort(options.ps); !parsed.ok())
    return Complain("load", absl::StatusOr<std::string>(
                                absl::InvalidArgumentError(absl::StrCat("--ps: ", parsed.status().message()))));
  const JobToken token{ReadEnvironment().job_token.value_or("")};
  // A load may take long, but whether the chief can do it is known at once.
  const auto reached = AskPs(options.ps, token, StoreMethod::kStatus, "", kReachPatience);
  if (!reached.ok()) return Fail("load", reached.status());
  // Resolves a directory to its newest checkpoint if it is visible here, too; otherwise the chief resolves the path as
  // typed.
  const auto found = FindCheckpoint(PosixFileSystem(), std::filesystem::absolute(options.path).lexically_normal());
  const auto answer = AskPs(options.ps, token, StoreMethod::kLoadCheckpoint,
                            Encode(LoadCheckpointRequest{found.ok() ? *found : options.path}), kLoadPatience);
  if (!answer.ok()) return Fail("load", answer.status());
  LoadCheckpointReply reply;
  if (const absl::Status status = Decode(*answer, reply); !status.ok()) return Fail("load", status);
  std::printf("loaded, global step %lld\n", static_cast<long long>(reply.global_step));
  return 0;
}

constexpr char kPathHelp[] = "A checkpoint, or a model_dir (its newest)";

// Adds a command on `options.path`, which its help calls `path_name`.
CLI::App* AddOne(CLI::App& parent, const char* name, const char* description, const char* footer,
                 const std::shared_ptr<CheckpointOptions>& options, int (*run)(const CheckpointOptions&),
                 int& exit_code, const char* path_name = "PATH", const char* path_help = kPathHelp) {
  CLI::App* command = parent.add_subcommand(name, description);
  command->add_option(path_name, options->path, path_help)->required()->type_name("");
  command->footer(footer);
  command->callback([options, run, &exit_code] {
    SetUpLog("", "warning");  // to stderr: a script reads stdout
    exit_code = run(*options);
  });
  return command;
}

}  // namespace

void AddCheckpointCommand(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<CheckpointOptions>();
  CLI::App* command = app.add_subcommand("checkpoint", kCheckpointDescription);
  command->require_subcommand(1);
  command->footer(kCheckpointFooter);

  CLI::App* ls = AddOne(*command, "ls", "List the checkpoints of a model_dir", kCheckpointLsFooter, options, Ls,
                        exit_code, "DIR", "A model_dir");
  ls->add_flag("--json", options->json, "Print one line of JSON");

  CLI::App* show =
      AddOne(*command, "show", "Show the contents of a checkpoint", kCheckpointShowFooter, options, Show, exit_code);
  show->add_option("NAME", options->names, "Variables or slots whose values to summarise")->type_name("");
  show->add_flag("--json", options->json, "Print one line of JSON");

  CLI::App* diff = AddOne(*command, "diff", "Show the differences between two checkpoints", kDiffFooter, options, Diff,
                          exit_code, "A");
  diff->add_option("B", options->other, "The checkpoint to compare it with")->required()->type_name("");
  diff->add_option("--tolerance", options->tolerance, "Values that differ by at most X are equal (default 0)")
      ->type_name("X");

  CLI::App* verify =
      AddOne(*command, "verify", "Check that a checkpoint is intact", kVerifyFooter, options, Verify, exit_code);
  verify->add_flag("--all", options->all, "Check every checkpoint of the model_dir PATH");

  CLI::App* load =
      AddOne(*command, "load", "Make a running job resume from a checkpoint", kLoadFooter, options, Load, exit_code);
  load->add_option("--ps", options->ps, "Address of ps 0 of the job")->required()->type_name("ADDRESS");

  CLI::App* reshard = AddOne(*command, "reshard", "Rewrite a checkpoint for another number of ps", kReshardFooter,
                             options, Reshard, exit_code);
  AddPlacementFlags(*reshard, options->placement);
  reshard->add_option("--output", options->output, "The directory of the new checkpoint")->required()->type_name("DIR");
}

}  // namespace muster
