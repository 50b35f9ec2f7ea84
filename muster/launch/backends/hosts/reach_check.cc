#include "muster/launch/backends/hosts/reach_check.h"

#include <algorithm>
#include <utility>

#include "absl/strings/ascii.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_join.h"
#include "absl/strings/str_split.h"
#include "muster/launch/task/task_environment.h"

namespace muster {

ReachCheck::ReachCheck(const std::vector<HostAgent*>& agents, const std::set<std::string>& optional,
                       const std::string& run_id, std::function<void(const absl::Status&)> done)
    : run_id_(run_id), done_(std::move(done)) {
  for (HostAgent* agent : agents) hosts_.push_back({.agent = agent, .optional = optional.contains(agent->name())});
  for (int i = 0; i < static_cast<int>(hosts_.size()); ++i) hosts_[i].agent->Reserve({kListen, i}, {0});
}

void ReachCheck::Run(const OfHost& host, const TaskId& task, std::vector<std::string> arguments) {
  arguments.insert(arguments.begin(), {"muster", "reach"});
  host.agent->Launch(
      {.task = task, .arguments = std::move(arguments), .environment = {{kRunIdVariable, run_id_}}, .directory = "/"});
}

void ReachCheck::OnReserved(const TaskId& task, const std::vector<std::string>& addresses) {
  OfHost& host = hosts_.at(task.index);
  if (step_ != Step::kListen || IsLeftOut(host)) return;
  host.address = addresses.front();
  host.listener_ended = false;
  Run(host, task, {"--listen", host.address});
}

void ReachCheck::OnNotReserved(const TaskId& task, const absl::Status& why) {
  Fail(hosts_.at(task.index), std::string(why.message()));
}

void ReachCheck::OnNotStarted(const TaskId& task, const absl::Status& why) {
  OfHost& host = hosts_.at(task.index);
  (task.job == kListen ? host.listener_ended : host.dialled) = true;
  Fail(host, std::string(why.message()));
}

void ReachCheck::OnOutput(const TaskId& task, OutputStream, std::string_view bytes) {
  OfHost& host = hosts_.at(task.index);
  std::string& text = task.job == kListen ? host.listener : host.dialler;
  text += bytes;
  if (task.job != kListen || host.listens || std::count(text.begin(), text.end(), '\n') < 2) return;
  host.listens = true;
  GoOn();
}

void ReachCheck::OnExit(const TaskId& task, const ExitStatus& status) {
  OfHost& host = hosts_.at(task.index);
  (task.job == kListen ? host.listener_ended : host.dialled) = true;
  if (IsLeftOut(host)) return;
  if (task.job == kListen) {
    if (step_ == Step::kEnd) return GoOn();
    return Fail(host, absl::StrCat(host.agent->name(), ": the check whether it can be reached ", status.ToString(),
                                   ": ", std::string(absl::StripAsciiWhitespace(host.listener))));
  }
  if (!status.ok() && host.dialler.empty())
    Blame(host, absl::StrCat(host.agent->name(), ": the check whom it can reach ", status.ToString()));
  for (const auto& line : absl::StrSplit(host.dialler, '\n', absl::SkipEmpty())) TakeUnreached(host, std::string(line));
  GoOn();
}

bool ReachCheck::IsThrough(const OfHost& host) const {
  if (IsLeftOut(host)) return true;
  switch (step_) {
    case Step::kListen:
      return host.listens;
    case Step::kDial:
      return host.dialled;
    case Step::kEnd:
      break;
  }
  return host.listener_ended;
}

bool ReachCheck::AwaitsOnlyOptional() const {
  return !told_ && std::all_of(hosts_.begin(), hosts_.end(),
                               [this](const OfHost& host) { return host.optional || IsThrough(host); });
}

void ReachCheck::LeaveOutAwaited(const std::string& why) {
  for (const OfHost& host : hosts_)
    if (host.optional && !IsThrough(host)) left_out_[host.agent->name()] = why;
  GoOn();
}

void ReachCheck::GoOn() {
  if (told_ || !std::all_of(hosts_.begin(), hosts_.end(), [this](const OfHost& host) { return IsThrough(host); }))
    return;
  const auto left = hosts_.size() - left_out_.size();
  if (step_ == Step::kListen && left > 1) return DialAll();
  if (step_ != Step::kEnd) return EndListeners();
  told_ = true;
  done_(failures_.empty() ? absl::OkStatus() : absl::UnavailableError(absl::StrJoin(failures_, "\n")));
}

void ReachCheck::DialAll() {
  step_ = Step::kDial;
  for (int i = 0; i < static_cast<int>(hosts_.size()); ++i) {
    if (IsLeftOut(hosts_[i])) continue;
    std::vector<std::string> arguments = {"--dial"};
    for (const OfHost& other : hosts_)
      if (&other != &hosts_[i] && !IsLeftOut(other)) arguments.push_back(other.address);
    Run(hosts_[i], {kDial, i}, std::move(arguments));
  }
}

void ReachCheck::TakeUnreached(const OfHost& from, const std::string& line) {
  const size_t space = line.find(' ');
  const std::string address = line.substr(0, space), why = space == std::string::npos ? "" : line.substr(space + 1);
  const auto to =
      std::find_if(hosts_.begin(), hosts_.end(), [&](const OfHost& host) { return host.address == address; });
  if (IsLeftOut(from) || (to != hosts_.end() && IsLeftOut(*to))) return;
  const std::string failure =
      to == hosts_.end() ? absl::StrCat(from.agent->name(), ": ", line) : LineAbout(from, *to, why);
  Blame(!from.optional && to != hosts_.end() && to->optional ? *to : from, failure);
}

std::string ReachCheck::LineAbout(const OfHost& from, const OfHost& to, const std::string& why) {
  const std::vector<std::string> said = absl::StrSplit(to.listener, '\n');
  const std::string own = said.size() > 1 && !said[1].empty() ? absl::StrCat(" has ", said[1]) : " has no other";
  return absl::StrCat(from.agent->name(), " can't reach ", to.agent->name(), " at ", to.address, ": ", why, "; ",
                      to.agent->name(), own, "; name the address that works in a host file: ", to.agent->name(),
                      " address=IP");
}

void ReachCheck::Blame(const OfHost& host, const std::string& why) {
  if (host.optional)
    left_out_.try_emplace(host.agent->name(), why);
  else
    failures_.push_back(why);
}

void ReachCheck::Fail(const OfHost& host, const std::string& why) {
  Blame(host, why);
  if (host.optional) return GoOn();
  EndListeners();
}

void ReachCheck::EndListeners() {
  step_ = Step::kEnd;
  for (int i = 0; i < static_cast<int>(hosts_.size()); ++i)
    if (!hosts_[i].listener_ended) hosts_[i].agent->End({kListen, i}, EndMode::kAtOnce);
  GoOn();
}

}  // namespace muster
