#include "muster/launch/engines/command/held_hosts.h"

#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <string_view>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/retry_pause.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/environment_list.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/hosts/command_json.h"
#include "muster/launch/registry/files/machine_id.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/system/random_hex.h"
#include "muster/launch/task/task_environment.h"

namespace muster {
namespace {

constexpr int kMarkOfHeldBytes = 8;
constexpr size_t kMostHeldBytes = size_t{1} << 20;
constexpr char kHeldEnd[] = ".json";
constexpr char kHeldLockEnd[] = ".lock";
// Between two questions to an `acquire` that has said "not now".
constexpr absl::Duration kFirstAcquirePause = absl::Seconds(1);
constexpr absl::Duration kLongestAcquirePause = absl::Seconds(30);

bool HasCode(const std::vector<int>& codes, const ExitStatus& status) {
  return status.signal == 0 && std::find(codes.begin(), codes.end(), status.code) != codes.end();
}

// What is needed to give hosts back.
struct HeldFile {
  std::string who;
  std::string machine;  // MachineId::host
  std::string run_id;
  CommandSetting setting;
  CommandValues values;
};

// Without a job, a release that names one has nothing to give back.
bool HasRelease(const CommandSetting& setting, const CommandValues& values) {
  const auto job = values.find("job");
  const bool has_job = job != values.end() && !job->second.empty();
  return !setting.release.argv.empty() && (has_job || !UsesPlaceholder(setting.release.argv, "job"));
}

// Unavailable says how it failed.
absl::Status RunRelease(const CommandSetting& setting, const CommandValues& values,
                        const std::vector<std::string>& environment, const Clock& clock,
                        const std::function<void(const std::string& line)>& say) {
  if (!HasRelease(setting, values)) return absl::OkStatus();
  const CommandOrder order{.words = ExpandCommand(setting.release.argv, values),
                           .environment = environment,
                           .folder = setting.folder,
                           .time_limit = setting.release.time_limit};
  ASSIGN_OR_RETURN(const CommandOutput output, RunCommand(order, clock, [&say](std::string_view line) {
                     say(absl::StrCat("release: ", std::string(line)));
                   }));
  const bool done = output.end.status.ok() || HasCode(setting.release.gone_exit, output.end.status);
  // One that was ended may exit with any code.
  return done && !output.end.time_over ? absl::OkStatus() : absl::UnavailableError(output.end.text);
}

absl::StatusOr<HeldFile> ReadHeldFile(const std::string& path) {
  struct stat about;
  if (lstat(path.c_str(), &about) != 0) return absl::ErrnoToStatus(errno, path);
  // Its words become a command.
  if (!S_ISREG(about.st_mode) || about.st_uid != geteuid() || (about.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return absl::PermissionDeniedError(absl::StrCat(path, " isn't this user's alone"));
  ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().ReadShortFile(path, kMostHeldBytes));
  const nlohmann::json object = nlohmann::json::parse(text, nullptr, /*allow_exceptions=*/false);
  try {
    return HeldFile{.who = object.at("who").get<std::string>(),
                    .machine = object.at("machine").get<std::string>(),
                    .run_id = object.at("run_id").get<std::string>(),
                    .setting = CommandsOfJson(object.at("commands")),
                    .values = object.at("values").get<CommandValues>()};
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError(absl::StrCat(path, " isn't what muster writes"));
  }
}

// Returns a line for the user; "" if there is nothing to say.
std::string GiveBackOne(const std::string& path, const std::vector<std::string>& environment,
                        const std::function<void(const std::string& run_id)>& end_left, const Clock& clock) {
  const std::string beginning = path.substr(0, path.size() - std::string_view(kHeldEnd).size());
  if (const auto looked = ReadHeldFile(path); !looked.ok() || looked->machine != MachineId::This().host) return "";
  const auto lock = PosixFileSystem().Lock(beginning + kHeldLockEnd, "muster gives its hosts back");
  if (!lock.ok()) return "";  // its holder lives, or another command is at it
  // Another command may have given them back between the two.
  const absl::StatusOr<HeldFile> held = ReadHeldFile(path);
  if (!held.ok()) return "";
  end_left(held->run_id);
  const absl::Status released = RunRelease(held->setting, held->values, environment, clock, [](const std::string&) {});
  if (!released.ok())
    return absl::StrCat("the hosts of ", OneLine(held->who),
                        " couldn't be given back: ", std::string(released.message()),
                        "; the next command of muster tries it again, until it works or ", path, " is removed");
  unlink(path.c_str());
  unlink((beginning + kHeldLockEnd).c_str());
  return HasRelease(held->setting, held->values)
             ? absl::StrCat("gave back the hosts of ", OneLine(held->who), ", which were still held: ",
                            TypedCommand(ExpandCommand(held->setting.release.argv, held->values)))
             : "";
}

}  // namespace

HeldHosts::HeldHosts(const HeldOrder& order, const Clock& clock)
    : order_(order), clock_(clock), mark_(RandomHex(kMarkOfHeldBytes)) {}

HeldHosts::~HeldHosts() { GiveBack(order_.say_at_end); }

absl::StatusOr<std::unique_ptr<HeldHosts>> HeldHosts::Acquire(const HeldOrder& order, const HeldCalls& calls,
                                                              FdLoop& loop, const Clock& clock) {
  std::unique_ptr<HeldHosts> held(new HeldHosts(order, clock));
  RETURN_IF_ERROR(held->Begin());
  const absl::Status went = held->Await(calls, loop);
  calls.waits("");
  if (went.ok()) return held;
  held->GiveBack(calls.say);
  return went;
}

absl::Status HeldHosts::Begin() {
  RETURN_IF_ERROR(PosixFileSystem().CreateDirectory(order_.folder));
  ASSIGN_OR_RETURN(lock_, PosixFileSystem().Lock(JoinPath(order_.folder, mark_ + kHeldLockEnd), order_.who));
  return WriteFile();
}

absl::Status HeldHosts::WriteFile() const {
  CommandValues values = order_.values;
  values["job"] = acquired_.job;
  const nlohmann::json object = {{"who", order_.who},
                                 {"machine", MachineId::This().host},
                                 {"run_id", mark_},
                                 {"commands", JsonOfCommands(order_.setting)},
                                 {"values", values}};
  std::string text;
  try {
    text = object.dump(1, ' ', true);
  } catch (const nlohmann::json::type_error&) {
    return absl::InvalidArgumentError(
        "a word of hosts_by, or the path of its folder, isn't text, and can't be noted for `release`; accepted: UTF-8");
  }
  return ReplaceFile(JoinPath(order_.folder, mark_ + kHeldEnd), text + "\n", Durability::kDisk);
}

absl::Status HeldHosts::Await(const HeldCalls& calls, FdLoop& loop) {
  const absl::Time until = clock_.Now() + order_.setting.acquire.time_limit;
  RetryPause pause(kFirstAcquirePause, kLongestAcquirePause);
  while (true) {
    ASSIGN_OR_RETURN(const Try tried, TryOnce(calls, loop, until));
    if (!tried.again) return tried.went;
    calls.waits(acquired_.waits.empty() ? std::string(tried.went.message()) : acquired_.waits);
    const absl::Time again = clock_.Now() + pause.Next();
    if (again >= until) return absl::DeadlineExceededError(tried.went.message());
    while (clock_.Now() < again) {
      loop.RunOnce(std::min(again, calls.deadline()));
      RETURN_IF_ERROR(calls.on_time());
    }
  }
}

absl::StatusOr<HeldHosts::Try> HeldHosts::TryOnce(const HeldCalls& calls, FdLoop& loop, absl::Time until) {
  CommandOrder order{.words = ExpandCommand(order_.setting.acquire.argv, order_.values),
                     .environment = order_.environment,
                     .folder = order_.setting.folder,
                     .time_limit = until - clock_.Now()};
  std::erase_if(order.environment, [](const std::string& variable) { return IsVariable(variable, kRunIdVariable); });
  order.environment.push_back(absl::StrCat(kRunIdVariable, "=", mark_));
  std::optional<CommandEnd> end;
  absl::Status wrong;
  CommandRun* running = nullptr;
  CommandRun::Calls its_calls{
      .out =
          [&](std::string_view line) {
            if (!wrong.ok()) return;
            wrong = TakeLine(line, calls);
            if (!wrong.ok() && running != nullptr) running->End();
          },
      .err = [&calls](std::string_view line) { calls.say(absl::StrCat("acquire: ", std::string(line))); },
      .ended = [&end](const CommandEnd& how) { end = how; }};
  ASSIGN_OR_RETURN(const std::unique_ptr<CommandRun> run, CommandRun::Start(order, loop, clock_, std::move(its_calls)));
  asked_ = true;
  running = run.get();
  absl::Status stop;
  while (!end.has_value()) {
    loop.RunOnce(std::min(run->deadline(), stop.ok() ? calls.deadline() : absl::InfiniteFuture()));
    run->OnTime();
    if (!stop.ok() || end.has_value()) continue;
    stop = calls.on_time();
    if (!stop.ok()) run->End();
  }
  RETURN_IF_ERROR(stop);
  // When its time is over it may be killed in the middle of a line.
  if (!wrong.ok() && !end->time_over)
    return absl::Status(wrong.code(), absl::StrCat(TypedCommand(order.words), ": ", std::string(wrong.message())));
  return Judge(*end);
}

absl::Status HeldHosts::TakeLine(std::string_view line, const HeldCalls& calls) {
  ASSIGN_OR_RETURN(const AcquireLine kind, TakeAcquireLine(line, acquired_));
  const size_t count = acquired_.hosts.size();
  switch (kind) {
    case AcquireLine::kJob:
      calls.say(absl::StrCat("acquire: its job is ", OneLine(acquired_.job)));
      return WriteFile();
    case AcquireLine::kWaits:
      calls.waits(acquired_.waits);
      return absl::OkStatus();
    case AcquireLine::kHost:
      break;
  }
  calls.say(absl::StrCat("acquire: got ", acquired_.hosts.back().name, ", ", count, " of ", order_.setting.hosts));
  return absl::OkStatus();
}

HeldHosts::Try HeldHosts::Judge(const CommandEnd& end) const {
  const int wanted = order_.setting.hosts, got = static_cast<int>(acquired_.hosts.size());
  const std::string had = absl::StrCat("; it had got ", got, " of ", wanted, wanted == 1 ? " host" : " hosts",
                                       acquired_.waits.empty() ? "" : absl::StrCat(", and waited: ", acquired_.waits));
  if (end.time_over) return {absl::DeadlineExceededError(absl::StrCat(end.text, had))};
  if (HasCode(order_.setting.acquire.refused_exit, end.status))
    return {absl::InvalidArgumentError(absl::StrCat("the hosts are refused: ", end.text))};
  if (HasCode(order_.setting.acquire.retry_exit, end.status) && acquired_.empty())
    return {absl::UnavailableError(absl::StrCat("not now: ", end.text)), /*again=*/true};
  if (!end.status.ok() || got < wanted) return {absl::UnavailableError(absl::StrCat(end.text, had))};
  return {absl::OkStatus()};
}

CommandHosts HeldHosts::ForEngine() const {
  CommandHosts hosts{.setting = order_.setting, .values = order_.values, .ids = acquired_.ids, .addresses = {}};
  hosts.values["job"] = acquired_.job;
  for (const Host& host : acquired_.hosts) hosts.addresses[host.name] = host.address;
  return hosts;
}

void HeldHosts::GiveBack(const std::function<void(const std::string& line)>& say) {
  if (lock_ == nullptr || std::exchange(given_back_, true)) return;
  CommandValues values = order_.values;
  values["job"] = acquired_.job;
  const std::string path = JoinPath(order_.folder, mark_);
  const absl::Status released =
      asked_ ? RunRelease(order_.setting, values, order_.environment, clock_, say) : absl::OkStatus();
  if (released.ok()) {
    unlink((path + kHeldEnd).c_str());
    unlink((path + kHeldLockEnd).c_str());
  } else {
    say(absl::StrCat("the hosts couldn't be given back: ", std::string(released.message()),
                     "; the next command of muster on this machine tries it again"));
  }
  lock_.reset();
}

std::vector<std::string> GiveBackLeft(const std::string& folder, const std::vector<std::string>& environment,
                                      const std::function<void(const std::string& run_id)>& end_left,
                                      const Clock& clock) {
  std::vector<std::string> lines;
  const auto names = PosixFileSystem().ListDirectory(folder);
  if (!names.ok()) return lines;
  for (const std::string& name : *names) {
    if (!absl::EndsWith(name, kHeldEnd)) continue;
    if (std::string line = GiveBackOne(JoinPath(folder, name), environment, end_left, clock); !line.empty())
      lines.push_back(std::move(line));
  }
  return lines;
}

}  // namespace muster
