#include "muster/launch/engines/kubernetes/kubectl/kubectl.h"

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/absl_view.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/system/shell_word.h"

namespace muster {
namespace {

constexpr size_t kMostKubectlWords = 1500;  // bytes of what it says that are shown
constexpr size_t kMostKubectlOutput = size_t{64} << 20;
constexpr char kNoContext[] = "current-context is not set";

// kubectl's log on stderr: "E1129 20:35:47.67 11497 memcache.go:265] …".
bool IsKubectlLog(absl::string_view line) {
  return line.size() > 5 && absl::StrContains("EWIF", line.substr(0, 1)) && absl::ascii_isdigit(line[1]) &&
         absl::ascii_isdigit(line[2]) && absl::ascii_isdigit(line[3]) && absl::ascii_isdigit(line[4]) && line[5] == ' ';
}

bool HasOneOf(const std::string& text, std::initializer_list<absl::string_view> parts) {
  return std::any_of(parts.begin(), parts.end(), [&text](absl::string_view part) {
    return absl::StrContains(absl::AsciiStrToLower(text), absl::AsciiStrToLower(part));
  });
}

// muster's own variables may have a secret, and the configuration is that of the place.
std::vector<std::string> EnvironmentOfKubectl(const std::vector<std::string>& environment,
                                              const std::string& kubeconfig) {
  std::vector<std::string> own;
  for (const std::string& variable : environment)
    if (!absl::StartsWith(variable, "MUSTER_") && !IsVariable(variable, "KUBECONFIG")) own.push_back(variable);
  if (!kubeconfig.empty()) own.push_back(absl::StrCat("KUBECONFIG=", kubeconfig));
  return own;
}

std::string AbsolutePath(const std::string& path) {
  std::error_code no_folder;
  const std::filesystem::path absolute = std::filesystem::absolute(path, no_folder);
  return path.empty() || no_folder ? path : absolute.lexically_normal().string();
}

// KUBECONFIG may name several files, "A:B".
std::string AbsolutePaths(const std::string& paths) {
  std::vector<std::string> absolute;
  for (const absl::string_view path : absl::StrSplit(paths, ':')) absolute.push_back(AbsolutePath(std::string(path)));
  return absl::StrJoin(absolute, ":");
}

}  // namespace

std::string WordsOfKubectl(std::string_view err) {
  std::vector<std::string> lines;
  for (const absl::string_view line : absl::StrSplit(AbslView(err), '\n', absl::SkipWhitespace()))
    if (!IsKubectlLog(line) && !absl::StartsWith(line, "Warning:"))
      lines.emplace_back(absl::StripAsciiWhitespace(line));
  // It says the same of each object.
  lines.erase(std::unique(lines.begin(), lines.end()), lines.end());
  return OneLine(absl::StrJoin(lines, "; "), kMostKubectlWords);
}

std::string KubernetesPlace::text() const {
  return nlohmann::json{
      {"kubectl", kubectl}, {"kubeconfig", kubeconfig}, {"context", context}, {"namespace", name_space}}
      .dump(-1, ' ', /*ensure_ascii=*/true, nlohmann::json::error_handler_t::replace);
}

KubernetesPlace KubernetesPlace::Parse(const std::string& text) {
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  const auto value = [&object](const char* key) {
    return object.is_object() && object.contains(key) && object[key].is_string() ? object[key].get<std::string>() : "";
  };
  KubernetesPlace place{.kubectl = value("kubectl"),
                        .kubeconfig = value("kubeconfig"),
                        .context = value("context"),
                        .name_space = value("namespace")};
  if (place.kubectl.empty()) place.kubectl = kUsualKubectl;
  return place;
}

Kubectl::Kubectl(KubernetesPlace place, std::vector<std::string> environment)
    : place_(std::move(place)), environment_(std::move(environment)) {
  if (place_.kubeconfig.empty()) place_.kubeconfig = VariableIn(environment_, "KUBECONFIG");
}

absl::StatusOr<std::string> Kubectl::AskConfig(std::vector<std::string> words, absl::Duration patience) const {
  words.insert(words.begin(), {place_.kubectl, "config"});
  const auto output = RunToItsEnd(words, EnvironmentOfKubectl(environment_, place_.kubeconfig), patience);
  if (absl::IsDeadlineExceeded(output.status()))
    return absl::UnavailableError(absl::StrCat("kubectl doesn't answer within ", absl::FormatDuration(patience), ": `",
                                               absl::StrJoin(words, " "),
                                               "` is to say where the job would be; try again"));
  if (absl::IsNotFound(output.status()) || absl::IsPermissionDenied(output.status())) return NoKubectl(output.status());
  RETURN_IF_ERROR(output.status());
  if (output->status.ok()) return std::string(absl::StripAsciiWhitespace(output->out));
  const std::string said = WordsOfKubectl(output->err);
  return absl::InvalidArgumentError(absl::StrCat("kubectl doesn't say where the job would be: `",
                                                 absl::StrJoin(words, " "),
                                                 "`: ", said.empty() ? output->status.ToString() : said));
}

absl::StatusOr<std::string> Kubectl::CurrentContext(absl::Duration patience) const {
  auto context = AskConfig({"current-context"}, patience);
  if (absl::IsInvalidArgument(context.status()) && absl::StrContains(context.status().message(), kNoContext)) return "";
  return context;
}

absl::Status Kubectl::Resolve(absl::Duration patience) {
  place_.kubeconfig = AbsolutePaths(place_.kubeconfig);
  if (absl::StrContains(place_.kubectl, '/')) place_.kubectl = AbsolutePath(place_.kubectl);  // others are in PATH
  if (place_.context.empty()) {
    ASSIGN_OR_RETURN(place_.context, CurrentContext(patience));
  }
  if (!place_.name_space.empty() || place_.context.empty()) return absl::OkStatus();
  auto name_space = AskConfig({"view", "--minify", absl::StrCat("--context=", place_.context),
                               "--output=jsonpath={.contexts[0].context.namespace}"},
                              patience);
  if (absl::IsInvalidArgument(name_space.status()) &&
      absl::StrContains(name_space.status().message(), "cannot locate context"))
    return NoContext(std::string(name_space.status().message()));
  RETURN_IF_ERROR(name_space.status());
  place_.name_space = name_space->empty() ? "default" : *name_space;
  return absl::OkStatus();
}

absl::Status Kubectl::CheckSamePlace() const {
  if (!place_.context.empty()) return absl::OkStatus();
  const auto context = CurrentContext(kConfigPatience);
  if (!context.ok()) return absl::UnavailableError(context.status().message());
  if (context->empty()) return absl::OkStatus();
  return absl::UnavailableError(absl::StrCat("kubectl's current context is '", *context,
                                             "' now, and there was none when the job was submitted: it would ask "
                                             "another cluster; `kubectl config unset current-context` undoes that"));
}

std::string Kubectl::InPlace() const {
  return absl::StrCat("Kubernetes (context ", place_.context.empty() ? "not set" : place_.context, ", namespace ",
                      place_.name_space.empty() ? "that of the context" : place_.name_space, ")");
}

absl::Status Kubectl::NoContext(const std::string& said) const {
  return absl::InvalidArgumentError(
      absl::StrCat("kubectl knows no context '", place_.context, "': ", said,
                   "; accepted: kubernetes: {context: …}, one of those that `kubectl config get-contexts` lists"));
}

absl::Status Kubectl::NoKubectl(const absl::Status& why) const {
  return absl::NotFoundError(absl::StrCat("there is no ", place_.kubectl, " here (", std::string(why.message()),
                                          "): install kubectl, or say where it is (kubernetes: {kubectl: …})"));
}

absl::Status Kubectl::ErrorOf(const std::string& said) const {
  if (HasOneOf(said, {"context was not found", "does not exist\"; context", "no context exists",
                      "no configuration has been provided", kNoContext}) ||
      (HasOneOf(said, {"context \""}) && HasOneOf(said, {"does not exist"})))
    return NoContext(said);
  if (place_.context.empty() && HasOneOf(said, {"localhost:8080"}))
    return absl::InvalidArgumentError(
        absl::StrCat("kubectl has no cluster: its configuration has no current context (", said,
                     "); accepted: kubernetes: {context: …}, `kubectl config use-context …` or KUBECONFIG"));
  if (HasOneOf(said, {"exceeded quota", "quota exceeded"}))
    return absl::ResourceExhaustedError(absl::StrCat("the namespace's quota has no room for all pods: ", said,
                                                     "; ask for less, or wait until other jobs have ended"));
  // The API or what it asks, as a webhook or etcd, has failed: the same may be taken the next time.
  if (HasOneOf(said, {"(InternalError)", "(Conflict)", "(TooManyRequests)", "(Timeout)", "(ServerTimeout)",
                      "(ServiceUnavailable)", "(Expired)", "the object has been modified", "internal error occurred",
                      "an error on the server", "unable to return a response in the time allotted",
                      "unable to handle the request", "too many requests", "etcdserver", "no leader",
                      "connection reset", "client connection lost", "unexpected eof", "deadline exceeded"}))
    return absl::UnavailableError(absl::StrCat(InPlace(), " can't do now what is asked for: ", said, "; try again"));
  if (HasOneOf(said, {"unauthorized", "you must be logged in", "getting credentials", "token has expired",
                      "certificate has expired"}))
    return absl::PermissionDeniedError(
        absl::StrCat(InPlace(), " doesn't know you: ", said, "; log in as for your own `kubectl get pods`"));
  if (HasOneOf(said, {"unable to connect to the server", "was refused", "connection refused", "i/o timeout",
                      "no such host", "handshake timeout", "no route to host", "network is unreachable",
                      "service unavailable", "timed out", ": eof"}))
    return absl::UnavailableError(absl::StrCat(InPlace(), " doesn't answer kubectl: ", said,
                                               "; does `kubectl get pods` answer with the same context?"));
  if (HasOneOf(said, {"namespaces \""}) && HasOneOf(said, {"not found"}))
    return absl::InvalidArgumentError(absl::StrCat("there is no namespace '", place_.name_space, "': ", said,
                                                   "; accepted: kubernetes: {namespace: …}, one that exists"));
  if (HasOneOf(said, {"(forbidden)", "is forbidden"}))
    return absl::PermissionDeniedError(absl::StrCat(InPlace(), " refuses what is asked for: ", said));
  return absl::InvalidArgumentError(absl::StrCat(InPlace(), " refuses what is asked for: ", said));
}

std::vector<std::string> Kubectl::Command(const std::vector<std::string>& words) const {
  std::vector<std::string> command = {place_.kubectl};
  if (!place_.context.empty()) command.push_back(absl::StrCat("--context=", place_.context));
  if (!place_.name_space.empty()) command.push_back(absl::StrCat("--namespace=", place_.name_space));
  command.insert(command.end(), words.begin(), words.end());
  return command;
}

std::string Kubectl::CommandLine(const std::vector<std::string>& words) const {
  std::string line = place_.kubeconfig.empty() ? "" : absl::StrCat("KUBECONFIG=", ShellWord(place_.kubeconfig), " ");
  absl::StrAppend(&line, absl::StrJoin(Command(words), " ", [](std::string* out, const std::string& word) {
    absl::StrAppend(out, ShellWord(word));
  }));
  return line;
}

absl::StatusOr<std::string> Kubectl::Run(const std::vector<std::string>& words, const std::string& input,
                                         absl::Duration patience) const {
  Asked asked = Ask(words, input, patience);
  return AnswerTo(asked);
}

Kubectl::Asked Kubectl::Ask(const std::vector<std::string>& words, const std::string& input,
                            absl::Duration patience) const {
  return AwaitedProgram::Start(Command(words), EnvironmentOfKubectl(environment_, place_.kubeconfig), patience,
                               {.input = input, .most_kept = kMostKubectlOutput});
}

absl::StatusOr<std::string> Kubectl::AnswerTo(Asked& asked) const {
  auto output = asked.ok() ? asked->Wait() : absl::StatusOr<ProgramOutput>(asked.status());
  if (absl::IsNotFound(output.status()) || absl::IsPermissionDenied(output.status())) return NoKubectl(output.status());
  if (absl::IsDeadlineExceeded(output.status()))
    return absl::UnavailableError(
        absl::StrCat(InPlace(), " doesn't answer kubectl: ", std::string(output.status().message())));
  RETURN_IF_ERROR(output.status());
  if (output->status.ok()) return std::move(output->out);
  std::string said = WordsOfKubectl(output->err);
  if (said.empty()) said = OneLine(std::string(absl::StripAsciiWhitespace(output->out)), kMostKubectlWords);
  if (said.empty()) said = absl::StrCat(place_.kubectl, " ", output->status.ToString());
  return ErrorOf(said);
}

}  // namespace muster
