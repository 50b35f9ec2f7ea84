#include "apps/muster/experiment/train_elsewhere.h"

#include <cstdio>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>

#include "absl/strings/str_cat.h"
#include "apps/muster/hosts/host_command.h"
#include "apps/muster/hosts/host_flags.h"
#include "apps/muster/hosts/remote_command.h"
#include "apps/muster/terminal/shown_host.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/contact/first_contact.h"
#include "muster/launch/engines/ssh/ssh_command.h"
#include "muster/launch/system/shell_word.h"
#include "muster/train/threads/error.h"

namespace muster {
namespace {

constexpr int kExitOfUnusable = 2;
constexpr size_t kMostQuoted = 200;  // bytes of what another muster has said

// Returns the object on the one line that `muster train --json` has printed.
absl::StatusOr<nlohmann::json> SubmittedOf(const std::string& text) {
  nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (object.is_object() && object.contains("id") && object["id"].is_string()) return object;
  return absl::InternalError(
      absl::StrCat("muster there has said something else than expected: ", OneLine(text.substr(0, kMostQuoted))));
}

std::string GoesOnThere(const TrainElsewhere& train, const std::string& id) {
  const std::string text = GoesOnText(train.host, id, {}, JobStage::kBegun);
  if (train.ssh_config.empty()) return text;
  return absl::StrCat(text.substr(0, text.size() - 1), " (with --ssh_config ", ShellWord(train.ssh_config), ")\n");
}

// Returns the exit code of an experiment that has failed with one by which RunRemoteCommand knows that ssh or muster
// isn't there; nothing if it hasn't, or nobody knows.
std::optional<int> AmbiguousCodeOf(const TrainElsewhere& train, const HostPlan& plan, const std::string& id) {
  const absl::StatusOr<HostAnswer> answer =
      RunOnHost({.plan = plan, .host = train.host, .words = {"muster", "status", id, "--json"}});
  if (!answer.ok() || answer->exit_code != 0) return std::nullopt;
  const nlohmann::json run = nlohmann::json::parse(answer->stdout_text, nullptr, /*allow_exceptions=*/false);
  if (!run.is_object() || !run.contains("exit_code") || !run["exit_code"].is_number_integer()) return std::nullopt;
  const int code = run["exit_code"].get<int>();
  return code == kFailureOfSsh || code == kNoMusterThere ? std::optional(code) : std::nullopt;
}

absl::StatusOr<int> Follow(const TrainElsewhere& train, const HostPlan& plan, const nlohmann::json& submitted) {
  const std::string id = submitted["id"].get<std::string>();
  RemoteCommand follow{.host = train.host, .words = {"follow", id}, .ssh_config = train.ssh_config};
  if (submitted.contains("submitted_micros"))
    follow.words.insert(follow.words.end(), {"--since", submitted["submitted_micros"].dump()});
  if (train.show.json) follow.words.emplace_back("--json");
  if (!train.show.metric.empty()) follow.words.push_back(absl::StrCat("--metric=", train.show.metric));
  const absl::StatusOr<RemoteEnd> end = RunRemoteCommand(follow);
  if (absl::IsUnavailable(end.status())) {
    if (const std::optional<int> code = AmbiguousCodeOf(train, plan, id)) return *code;
    std::fprintf(stderr,
                 "muster train: the connection to %s broke; experiment %s:%s goes on there without it: muster "
                 "status %s:%s says how\n",
                 train.host.c_str(), train.host.c_str(), id.c_str(), train.host.c_str(), id.c_str());
    return static_cast<int>(ExitCode::kRetry);
  }
  RETURN_IF_ERROR(end.status());
  if (!end->interrupted) return end->exit_code;
  std::fputs(absl::StrCat("\n", GoesOnThere(train, id)).c_str(), stderr);
  return 0;
}

}  // namespace

absl::StatusOr<int> TrainOnOtherHost(const TrainElsewhere& train) {
  ASSIGN_OR_RETURN(const HostPlan plan, HostPlanOf({.ssh_config = train.ssh_config}, {{.name = train.host}}));
  HostCommandOptions command{
      .plan = plan,
      .host = train.host,
      .words = {"muster", "train", "--supervisor=here"},
      .environment = {{kShownHostVariable, train.host}},
      .folder = train.folder,
      .left_out = train.left_out,
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
  if (absl::IsCancelled(answer.status()) && !train.dry_run)
    return absl::CancelledError(absl::StrCat("interrupted; it may have been started: muster ls ", train.host, ":"));
  RETURN_IF_ERROR(answer.status());
  std::fputs(answer->stderr_text.c_str(), stderr);
  if (answer->exit_code != 0 && answer->stderr_text.empty())
    std::fprintf(stderr, "muster train: `muster train` has failed on %s with %d\n", train.host.c_str(),
                 answer->exit_code);
  if (train.dry_run || answer->exit_code != 0) {
    std::fputs(answer->stdout_text.c_str(), stdout);
    return answer->exit_code > kExitOfUnusable ? 1 : answer->exit_code;
  }
  ASSIGN_OR_RETURN(const nlohmann::json submitted, SubmittedOf(answer->stdout_text));
  const std::string text = GoesOnThere(train, submitted["id"].get<std::string>());
  if (!train.show.detach) {
    std::fputs(text.c_str(), stderr);
    return Follow(train, plan, submitted);
  }
  std::fputs(train.show.json ? answer->stdout_text.c_str() : text.c_str(), stdout);
  return 0;
}

absl::StatusOr<std::string> PathInFolder(const std::string& flag, const std::string& path, const std::string& folder) {
  std::error_code unresolved;
  const std::filesystem::path file = std::filesystem::weakly_canonical(path, unresolved);
  const std::filesystem::path relative = file.lexically_relative(std::filesystem::weakly_canonical(folder, unresolved));
  if (!relative.empty() && relative.is_relative() && *relative.begin() != "..") return relative.string();
  return absl::InvalidArgumentError(absl::StrCat(flag, " '", path,
                                                 "': the supervisor on the other host wouldn't have it; "
                                                 "accepted is a file in ",
                                                 folder));
}

}  // namespace muster
