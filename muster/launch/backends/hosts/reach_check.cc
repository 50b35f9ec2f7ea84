#include "muster/launch/backends/hosts/reach_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/cluster/address.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

std::string HostIn(const std::string& address) {
  const absl::StatusOr<HostPort> parsed = ParseHostPort(address);
  return parsed.ok() ? parsed->host : address;
}

// Returns the interface that has the address, of "10.0.0.3 (eth0), fd00::3 (eth0)".
std::string InterfaceOf(const std::string& address, const std::string& own) {
  for (const std::string& entry : std::vector<std::string>(absl::StrSplit(own, ", ")))
    if (const std::string begin = absl::StrCat(address, " ("); absl::StartsWith(entry, begin))
      return entry.substr(begin.size(), entry.size() - begin.size() - 1);
  return "of no interface there";
}

}  // namespace

ReachCheck::ReachCheck(std::vector<HostAgent*> agents, const std::string& run_id,
                       std::function<void(const absl::Status&)> done)
    : run_id_(run_id), done_(std::move(done)) {
  for (HostAgent* agent : agents) hosts_.push_back({.agent = agent});
  for (int i = 0; i < static_cast<int>(hosts_.size()); ++i) hosts_[i].agent->Reserve({kListen, i}, {0});
}

void ReachCheck::Run(const OfHost& host, const TaskId& task, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"muster", "reach"});
  host.agent->Launch(
      {.task = task, .arguments = std::move(arguments), .environment = {{kRunIdVariable, run_id_}}, .directory = "/"});
}

// The diallers start when all listen, and the listeners end when all have dialled.
std::vector<std::string> ReachCheck::awaited() const {
  const bool all_listen = std::all_of(hosts_.begin(), hosts_.end(), [](const OfHost& one) { return one.listens; });
  std::vector<std::string> names;
  for (const OfHost& host : hosts_)
    if (ending_ ? !host.listener_ended : all_listen ? !host.dialled : !host.listens)
      names.push_back(host.agent->name());
  return names;
}

void ReachCheck::OnReserved(const TaskId& task, const std::vector<std::string>& addresses) {
  if (ending_) return;
  OfHost& host = hosts_.at(task.index);
  host.address = addresses.front();
  host.listener_ended = false;
  Run(host, task, {"--listen", host.address});
}

void ReachCheck::OnNotReserved(const TaskId&, const absl::Status& why) { Fail(std::string(why.message())); }

void ReachCheck::OnNotStarted(const TaskId& task, const absl::Status& why) {
  OfHost& host = hosts_.at(task.index);
  (task.job == kListen ? host.listener_ended : host.dialled) = true;
  Fail(std::string(why.message()));
}

void ReachCheck::OnOutput(const TaskId& task, OutputStream, std::string_view bytes) {
  OfHost& host = hosts_.at(task.index);
  std::string& text = task.job == kListen ? host.listener : host.dialler;
  text += bytes;
  if (task.job != kListen || host.listens || std::count(text.begin(), text.end(), '\n') < 2) return;
  host.listens = true;
  if (std::all_of(hosts_.begin(), hosts_.end(), [](const OfHost& one) { return one.listens; })) DialAll();
}

void ReachCheck::DialAll() {
  for (int i = 0; i < static_cast<int>(hosts_.size()); ++i) {
    std::vector<std::string> arguments = {"--dial"};
    for (const OfHost& other : hosts_)
      if (&other != &hosts_[i]) arguments.push_back(other.address);
    Run(hosts_[i], {kDial, i}, std::move(arguments));
  }
}

void ReachCheck::OnExit(const TaskId& task, const ExitStatus& status) {
  OfHost& host = hosts_.at(task.index);
  if (task.job == kListen) {
    host.listener_ended = true;
    if (!ending_)
      Fail(absl::StrCat(host.agent->name(), ": the check whether it can be reached ", status.ToString(), ": ",
                        std::string(absl::StripAsciiWhitespace(host.listener))));
    return FinishIfOver();
  }
  host.dialled = true;
  if (!status.ok() && host.dialler.empty())
    failures_.push_back(absl::StrCat(host.agent->name(), ": the check whom it can reach ", status.ToString()));
  for (const auto& line : absl::StrSplit(host.dialler, '\n', absl::SkipEmpty()))
    failures_.push_back(LineAbout(host, std::string(line)));
  if (std::all_of(hosts_.begin(), hosts_.end(), [](const OfHost& one) { return one.dialled; })) EndListeners();
}

std::string ReachCheck::LineAbout(const OfHost& from, const std::string& line) const {
  const size_t space = line.find(' ');
  const std::string address = line.substr(0, space), why = space == std::string::npos ? "" : line.substr(space + 1);
  for (const OfHost& to : hosts_) {
    if (to.address != address) continue;
    const std::vector<std::string> said = absl::StrSplit(to.listener, '\n');
    const std::string own = said.size() > 1 ? said[1] : "";
    return absl::StrCat(from.agent->name(), " can't reach ", to.agent->name(), " at ", address, " (",
                        InterfaceOf(HostIn(address), own), ") from ", HostIn(from.address), ": ", why, "; ",
                        to.agent->name(), own.empty() ? " has no other" : absl::StrCat(" has ", own),
                        "; name the address that works in a host file: ", to.agent->name(), " address=IP");
  }
  return absl::StrCat(from.agent->name(), ": ", line);
}

void ReachCheck::Fail(const std::string& why) {
  failures_.push_back(why);
  EndListeners();
}

void ReachCheck::EndListeners() {
  ending_ = true;
  for (int i = 0; i < static_cast<int>(hosts_.size()); ++i)
    if (!hosts_[i].listener_ended) hosts_[i].agent->End({kListen, i}, EndMode::kAtOnce);
  FinishIfOver();
}

void ReachCheck::FinishIfOver() {
  if (!ending_ || told_) return;
  if (!std::all_of(hosts_.begin(), hosts_.end(), [](const OfHost& one) { return one.listener_ended; })) return;
  told_ = true;
  done_(failures_.empty() ? absl::OkStatus() : absl::UnavailableError(absl::StrJoin(failures_, "\n")));
}

}  // namespace muster
