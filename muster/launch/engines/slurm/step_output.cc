#include "muster/launch/engines/slurm/step_output.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <span>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/strip.h"
#include "muster/base/absl_view.h"
#include "muster/base/text/one_line.h"
#include "muster/cluster/slurm/node_list.h"

namespace muster {
namespace {

constexpr size_t kMostStepLine = 1024;
constexpr std::string_view kSrunError = "srun: error: ";
constexpr std::string_view kTaskWord = ": task";          // "n[1-2]: tasks 0-1: Killed"
constexpr std::string_view kOnNode = " failed on node ";  // "Task launch for StepId=3.0 failed on node n2: why"
constexpr std::string_view kNodeFailure = "Node failure on ";
// In what srun says instead of starting a step.
constexpr std::string_view kJobHasEnded[] = {"Invalid job id specified", " has expired",
                                             "already completing or completed"};
constexpr std::string_view kStepNotBegun[] = {"Unable to confirm allocation", "Unable to create step"};
constexpr std::string_view kNoAnswer[] = {
    "Unable to contact slurm controller",     "Socket timed out on send/recv", "Zero Bytes were transmitted",
    "Unable to establish controller machine", "Connection timed out",          "Connection refused"};

bool ContainsAny(std::string_view text, std::span<const std::string_view> signs) {
  return std::any_of(signs.begin(), signs.end(),
                     [&](std::string_view sign) { return text.find(sign) != std::string_view::npos; });
}

// Returns the nodes of a list if all are the step's.
std::optional<std::vector<std::string>> NodesOfStep(std::string_view list, const std::vector<std::string>& hosts) {
  const auto nodes = ExpandNodeList(list);
  const auto is_known = [&](const std::string& node) {
    return std::find(hosts.begin(), hosts.end(), node) != hosts.end();
  };
  if (!nodes.ok() || !std::all_of(nodes->begin(), nodes->end(), is_known)) return std::nullopt;
  return *nodes;
}

// "12: text", with spaces before it where numbers of tasks differ in width.
std::optional<StepLine> ReadLabelled(std::string_view line, const std::vector<std::string>& hosts) {
  const size_t colon = line.find(": ");
  size_t task = 0;
  if (colon == std::string_view::npos || !absl::SimpleAtoi(AbslView(line.substr(0, colon)), &task) ||
      task >= hosts.size())
    return std::nullopt;
  return StepLine{.hosts = {hosts[task]}, .text = OneLine(line.substr(colon + 2), kMostStepLine)};
}

std::optional<StepLine> ReadSrunError(std::string_view said, const std::vector<std::string>& hosts) {
  std::string_view list, why;
  if (const size_t task = said.find(kTaskWord); task != std::string_view::npos) {
    list = said.substr(0, task);
    const size_t colon = said.find(": ", task + kTaskWord.size());
    why = colon == std::string_view::npos ? said.substr(task + 2) : said.substr(colon + 2);
  } else if (const size_t on = said.find(kOnNode); on != std::string_view::npos) {
    list = said.substr(on + kOnNode.size());
    list = list.substr(0, list.find(':'));
    why = said;
  } else if (said.starts_with(kNodeFailure)) {
    list = said.substr(kNodeFailure.size());
    why = said;
  }
  auto nodes = list.empty() ? std::nullopt : NodesOfStep(list, hosts);
  if (!nodes.has_value()) return std::nullopt;
  return StepLine{.hosts = *std::move(nodes), .text = OneLine(why, kMostStepLine), .ended = true};
}

}  // namespace

StepLine ReadStepLine(std::string_view line, const std::vector<std::string>& hosts) {
  if (auto labelled = ReadLabelled(line, hosts); labelled.has_value()) return *std::move(labelled);
  if (line.starts_with(kSrunError))
    if (auto error = ReadSrunError(line.substr(kSrunError.size()), hosts); error.has_value()) return *std::move(error);
  return {.hosts = {}, .text = OneLine(line, kMostStepLine)};
}

bool SaysThatJobHasEnded(std::string_view text) {
  return text.starts_with(kSrunError) && ContainsAny(text, kJobHasEnded);
}

bool SaysThatNobodyAnswers(std::string_view text) {
  return text.starts_with(kSrunError) && ContainsAny(text, kStepNotBegun) && ContainsAny(text, kNoAnswer);
}

}  // namespace muster
