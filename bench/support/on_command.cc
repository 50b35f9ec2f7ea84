#include "bench/support/on_command.h"

#include <filesystem>
#include <fstream>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/time/clock.h"
#include "absl/time/time.h"
#include "bench/support/process.h"
#include "muster/base/status_macros.h"

namespace muster::bench {
namespace {

// $1: the folder of the commands; $2: the program's line; the others are hosts. The job's name is left in the file
// `job`.
constexpr char kOwnStart[] = R"sh(#!/bin/sh
folder=$1 line=$2
shift 2
lines=$("$folder/acquire" "$folder" "$@") || exit 1
programs=
for host; do
  "$folder/enter" "$host" sh -c "echo $line" &
  programs="$programs $!"
done
for program in $programs; do wait "$program" || exit 1; done
echo "$lines" | sed -n 's/^{"job": "\(.*\)"}$/\1/p' >job
)sh";

}  // namespace

OnCommand::OnCommand(const std::string& greeting)
    : hosts_(kHostsOfCommand), commands_(hosts_), project_(hosts_.shared() + "/project") {
  commands_.Write();
  std::filesystem::create_directory(project_);
  std::ofstream(project_ + ".sh") << kOwnStart;
  std::ofstream(project_ + "/muster.yml")
      << "project: bench\n"
      << commands_.Lines(hosts_.names()) << "train:\n  torchrun: {workers: " << kHostsOfCommand << "}\n  run: echo "
      << greeting << "\n";
}

absl::Status OnCommand::Run(const std::string& script) const {
  const std::string log = project_ + ".log";
  const int code = WaitFor(Start(hosts_.On("h0", {"sh", "-c", script}), {}, log));
  if (code == 0) return absl::OkStatus();
  ShowEnd(log);
  return absl::InternalError(absl::StrCat(script, " exited with ", code));
}

absl::StatusOr<double> OnCommand::OfItself() const {
  const std::string in_folder = absl::StrCat("cd ", hosts_.shared(), " && ");
  const absl::Time start = absl::Now();
  RETURN_IF_ERROR(Run(absl::StrCat(in_folder, "exec sh ", project_, ".sh ", commands_.folder(), " started ",
                                   absl::StrJoin(hosts_.names(), " "))));
  const double milliseconds = absl::ToDoubleMilliseconds(absl::Now() - start);
  RETURN_IF_ERROR(
      Run(absl::StrCat(in_folder, "exec ", commands_.folder(), "/release ", commands_.folder(), " \"$(cat job)\"")));
  commands_.ExpectAllGivenBack();
  return milliseconds;
}

std::vector<std::string> OnCommand::Train(const std::string& muster) const {
  return hosts_.On("h0", {muster, "train", "-f", project_});
}

}  // namespace muster::bench
