// `muster send`: sends a folder of this host to the supervisor of a run, which asks for it by a task. The other side is
// a FolderReceiver. Started by muster, not by users: --help doesn't name it.
#include <CLI/CLI.hpp>
#include <cstdio>
#include <memory>
#include <string>

#include "absl/status/status.h"
#include "apps/muster/commands/command_table.h"
#include "apps/muster/commands/job/standard_streams.h"
#include "apps/muster/terminal/usage_error.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/project/tree_sender.h"

namespace muster {
namespace {

constexpr char kSendDescription[] =
    "Send a folder of this host to the run's supervisor (run by muster on a run's hosts)";

constexpr int kMostNamed = 5;  // of files that can't be read

absl::Status WriteNext(TreeSender& sender) {
  while (true) {
    ASSIGN_OR_RETURN(const std::string next, sender.Next());
    if (next.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(WriteToStdout(next));
  }
}

// What can't be read is left out, and said: one file must not cost all others.
absl::Status Send(const std::string& folder) {
  int left_out = 0;
  const auto leave_out = [&](const absl::Status& why) {
    if (++left_out <= kMostNamed) std::fprintf(stderr, "%s\n", OneLine(std::string(why.message())).c_str());
  };
  ASSIGN_OR_RETURN(const DescribedTree tree,
                   DescribeTree(folder, {.which = ListedFiles::kAll, .unreadable = leave_out}));
  if (left_out > kMostNamed) std::fprintf(stderr, "and %d more files\n", left_out - kMostNamed);
  TreeSender sender({.job = "send", .see_paths = {}, .nonce = "", .output_name = ""}, tree);
  while (true) {
    RETURN_IF_ERROR(WriteNext(sender));
    ASSIGN_OR_RETURN(const std::string bytes, ReadFromStdin());
    if (bytes.empty() && !sender.done()) return absl::UnavailableError("the supervisor has ended before it had all");
    if (bytes.empty()) return absl::OkStatus();
    RETURN_IF_ERROR(sender.Take(bytes));
  }
}

}  // namespace

void AddSendCommand(CLI::App& app, int& exit_code) {
  auto folder = std::make_shared<std::string>();
  CLI::App* command = app.add_subcommand("send", kSendDescription);
  command->group("");  // not in --help
  command->add_option("FOLDER", *folder, "The folder")->type_name("")->required();
  command->callback([folder, &exit_code] {
    const absl::Status sent = Send(*folder);
    exit_code = sent.ok() ? 0 : UsageError("send", sent);
  });
}

}  // namespace muster
