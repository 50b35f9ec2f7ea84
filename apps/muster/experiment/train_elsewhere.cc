#include "apps/muster/experiment/train_elsewhere.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "apps/muster/hosts/host_command.h"
#include "apps/muster/hosts/host_flags.h"
#include "apps/muster/hosts/remote_command.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

constexpr int kExitOfUnusable = 2;

std::string GoesOnText(const std::string& host, const std::string& id) {
  const std::string name = absl::StrCat(host, ":", id);
  return absl::StrCat("experiment ", name, " is running, and ", host,
                      " supervises it: this machine may sleep or go; muster logs ", name, " -f shows it, muster kill ",
                      name, " ends it\n");
}

// Returns a field of the one line of JSON that a command has printed; InternalError: it isn't there.
absl::StatusOr<nlohmann::json> FieldOf(const std::string& text, const char* field) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_object() && object.contains(field)) return object.at(field);
  return absl::InternalError(absl::StrCat("muster there has said something else than expected: ", text));
}

absl::StatusOr<int> Follow(const TrainElsewhere& train, const std::string& id) {
  RemoteCommand logs{.host = train.host, .words = {"logs", id, "-f"}};
  if (train.show.json) logs.words.emplace_back("--json");
  ASSIGN_OR_RETURN(const RemoteEnd shown, RunRemoteCommand(logs, train.ssh_config));
  if (shown.interrupted || shown.exit_code != 0) {
    std::fputs(absl::StrCat("\n", GoesOnText(train.host, id)).c_str(), stderr);
    return 0;
  }
  ASSIGN_OR_RETURN(HostPlan plan, HostPlanOf({.ssh_config = train.ssh_config}, {{.name = train.host}}));
  ASSIGN_OR_RETURN(
      const HostAnswer status,
      RunOnHost({.plan = std::move(plan), .host = train.host, .words = {"muster", "status", id, "--json"}}));
  ASSIGN_OR_RETURN(const nlohmann::json state, FieldOf(status.stdout_text, "state"));
  ASSIGN_OR_RETURN(const nlohmann::json exit_code, FieldOf(status.stdout_text, "exit_code"));
  ASSIGN_OR_RETURN(const nlohmann::json output, FieldOf(status.stdout_text, "output_dir"));
  if (train.show.json) std::printf("%s", status.stdout_text.c_str());
  const absl::StatusOr<nlohmann::json> runs = FieldOf(status.stdout_text, "runs");
  if (!train.show.json && runs.ok() && runs->is_number_integer() && *runs > 0) {
    RemoteCommand table{.host = train.host, .words = {"results", id}};
    if (!train.show.metric.empty()) table.words.insert(table.words.end(), {"--metric", train.show.metric});
    RETURN_IF_ERROR(RunRemoteCommand(table, train.ssh_config).status());
  }
  if (!train.show.json)
    std::fprintf(stderr, "experiment %s:%s: %s\n  output: %s on %s\n", train.host.c_str(), id.c_str(),
                 state.get<std::string>().c_str(), output.get<std::string>().c_str(), train.host.c_str());
  if (state == Name(RunState::kFinished)) return 0;
  if (state == Name(RunState::kKilled)) return kExitOfKilled;
  return exit_code.is_number_integer() && exit_code != 0 ? exit_code.get<int>() : 1;
}

}  // namespace

absl::StatusOr<int> TrainOnOtherHost(const TrainElsewhere& train) {
  ASSIGN_OR_RETURN(HostPlan plan, HostPlanOf({.ssh_config = train.ssh_config}, {{.name = train.host}}));
  HostCommandOptions command{
      .plan = std::move(plan),
      .host = train.host,
      .words = {"muster", "train", "--supervisor", "here"},
      .folder = train.folder,
      .say = [](const std::string& line) { std::fprintf(stderr, "muster train: %s\n", line.c_str()); }};
  command.words.insert(command.words.end(), train.words.begin(), train.words.end());
  if (train.dry_run) {
    command.words.emplace_back("--dry-run");
  } else {
    command.words.insert(command.words.end(), {"--detach", "--json"});
  }
  const absl::StatusOr<HostAnswer> answer = RunOnHost(command);
  // Nothing was started.
  if (absl::IsUnavailable(answer.status())) return absl::FailedPreconditionError(answer.status().message());
  RETURN_IF_ERROR(answer.status());
  std::fputs(answer->stderr_text.c_str(), stderr);
  if (answer->exit_code != 0 && answer->stderr_text.empty())
    std::fprintf(stderr, "muster train: `muster train` has failed on %s with %d\n", train.host.c_str(),
                 answer->exit_code);
  if (train.dry_run || answer->exit_code != 0) {
    std::fputs(answer->stdout_text.c_str(), stdout);
    return answer->exit_code > kExitOfUnusable ? 1 : answer->exit_code;
  }
  ASSIGN_OR_RETURN(const nlohmann::json id, FieldOf(answer->stdout_text, "id"));
  const std::string name = id.is_string() ? id.get<std::string>() : id.dump();
  if (!train.show.detach) {
    if (!train.show.json) std::fputs(GoesOnText(train.host, name).c_str(), stderr);
    return Follow(train, name);
  }
  std::fputs(train.show.json ? answer->stdout_text.c_str() : GoesOnText(train.host, name).c_str(), stdout);
  return 0;
}

absl::StatusOr<std::string> PathInFolder(const std::string& flag, const std::string& path, const std::string& folder) {
  const std::string relative = std::filesystem::absolute(path).lexically_proximate(folder).string();
  if (!absl::StartsWith(relative, "..") && !absl::StartsWith(relative, "/")) return relative;
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", path,
                                                 "': the supervisor on the other host wouldn't have it; "
                                                 "accepted is a file in ",
                                                 folder));
}

}  // namespace muster
