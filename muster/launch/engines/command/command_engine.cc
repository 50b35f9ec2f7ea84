#include "muster/launch/engines/command/command_engine.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/engines/command/command_way.h"

namespace muster {
namespace {

ContactOptions OnTheCommandsWay(ContactOptions contact, const CommandHosts& hosts) {
  contact.way = std::make_shared<CommandWay>(hosts);
  contact.folder = hosts.setting.folder;
  contact.patience = hosts.setting.start.time_limit;
  return contact;
}

// Returns a text of the object; "" if it has none of this name.
std::string TextOf(const nlohmann::json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_string() ? OneLine(found->get<std::string>()) : "";
}

}  // namespace

std::string WhyGone(const CommandTemplate& state, const ExitStatus& status, const std::vector<std::string>& lines) {
  bool says_gone = false;
  std::string says;
  for (const std::string& line : lines) {
    const nlohmann::json object = nlohmann::json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!object.is_object()) continue;
    const auto gone = object.find("gone");
    says_gone = gone != object.end() && gone->is_boolean() && gone->get<bool>();
    says = TextOf(object, "why");
    if (says.empty()) says = TextOf(object, "state");
  }
  const bool by_code = status.signal == 0 &&
                       std::find(state.gone_exit.begin(), state.gone_exit.end(), status.code) != state.gone_exit.end();
  if (!by_code && !(status.ok() && says_gone)) return "";
  return says.empty() ? absl::StrCat("its state ", status.ToString()) : says;
}

CommandEngine::CommandEngine(const CommandHosts& hosts, ContactOptions contact, FdLoop& loop, const Clock& clock)
    : hosts_(hosts),
      environment_(contact.environment),
      loop_(loop),
      clock_(clock),
      contact_(OnTheCommandsWay(std::move(contact), hosts), loop, clock) {}

absl::Status CommandEngine::Start(EngineEvents& events) {
  events_ = &events;
  return contact_.Start(events);
}

void CommandEngine::Connect(const std::string& host) {
  MUSTER_CHECK(events_ != nullptr);
  if (reached_.insert(host).second || hosts_.setting.state.argv.empty()) return contact_.Connect(host);
  waiting_.push_back(host);
}

std::string CommandEngine::LastWords(const std::string& host) const {
  for (const auto& question : questions_)
    if (question->host == host && !question->answered) return "its state is asked";
  return contact_.LastWords(host);
}

absl::Time CommandEngine::deadline() const {
  absl::Time first = contact_.deadline();
  if (!waiting_.empty() && questions_.size() < ContactEngine::kAtOnce) return absl::InfinitePast();
  for (const auto& question : questions_)
    first = std::min(first, question->answered ? absl::InfinitePast() : question->run->deadline());
  return first;
}

void CommandEngine::OnTime() {
  for (const auto& question : questions_)
    if (!question->answered) question->run->OnTime();
  std::erase_if(questions_, [](const auto& question) { return question->answered; });
  while (!waiting_.empty() && questions_.size() < ContactEngine::kAtOnce) {
    const std::string host = std::move(waiting_.front());
    waiting_.pop_front();
    Ask(host);
  }
  contact_.OnTime();
}

void CommandEngine::Ask(const std::string& host) {
  auto question = std::make_unique<Question>();
  question->host = host;
  Question* const asked = question.get();
  const CommandOrder order{.words = ExpandCommand(hosts_.setting.state.argv, ValuesOfHost(hosts_, host)),
                           .environment = environment_,
                           .folder = hosts_.setting.folder,
                           .time_limit = hosts_.setting.state.time_limit};
  auto run = CommandRun::Start(order, loop_, clock_,
                               {.out = [asked](std::string_view line) { KeepLine(line, asked->lines); },
                                .err = [](std::string_view) {},
                                .ended = [this, asked](const CommandEnd& end) { OnAnswer(*asked, end); }});
  if (!run.ok()) return contact_.Connect(host);  // its state is unknown
  question->run = *std::move(run);
  questions_.push_back(std::move(question));
}

void CommandEngine::OnAnswer(Question& question, const CommandEnd& end) {
  question.answered = true;
  // One that was ended may exit with any code.
  const std::string why = end.time_over ? "" : WhyGone(hosts_.setting.state, end.status, question.lines);
  if (why.empty()) return contact_.Connect(question.host);
  events_->OnNoStream(question.host,
                      absl::FailedPreconditionError(absl::StrCat(question.host, " is the run's no more: ", why)));
}

}  // namespace muster
