#include "muster/launch/experiment/handover.h"

#include <fcntl.h>
#include <unistd.h>

#include <nlohmann/json.hpp>
#include <utility>

#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/absl_view.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/files/record_file.h"

namespace muster {
namespace {

using nlohmann::json;

constexpr size_t kMostHandoverBytes = 16 << 20;
constexpr size_t kLineBytes = 384;  // of LoggedOutputFile; a job's name is at most 255 bytes

// The JSON has objects with tasks as names.
template <typename Value>
json ByTask(const std::map<TaskId, Value>& values) {
  json object = json::object();
  for (const auto& [task, value] : values) object[task.ToString()] = value;
  return object;
}

template <typename Value>
absl::StatusOr<std::map<TaskId, Value>> TasksIn(const json& object) {
  std::map<TaskId, Value> values;
  for (const auto& [name, value] : object.items()) {
    ASSIGN_OR_RETURN(const TaskId task, TaskId::Parse(name));
    values[task] = value.template get<Value>();
    if constexpr (requires { values[task].back().back(); })
      if (values[task].empty()) return absl::DataLossError(absl::StrCat(name, " has no addresses"));
  }
  return values;
}

absl::StatusOr<Handover> Parse(const json& object) {
  Handover handover;
  handover.job = object.at("job").get<std::string>();
  handover.supervisor = object.at("supervisor").get<uint64_t>();
  handover.run_id = object.at("run_id").get<std::string>();
  handover.job_token = object.at("job_token").get<std::string>();
  ASSIGN_OR_RETURN(handover.addresses, TasksIn<std::vector<std::vector<std::string>>>(object.at("addresses")));
  ASSIGN_OR_RETURN(handover.placement, TasksIn<std::string>(object.at("placement")));
  ASSIGN_OR_RETURN(handover.lives, TasksIn<int>(object.at("lives")));
  for (const auto& [host, code] : object.at("hosts").items()) {
    PlacedCode& placed = handover.hosts[host];
    placed.work = code.at("work").get<std::string>();
    placed.output = code.at("output").get<std::string>();
  }
  return handover;
}

}  // namespace

absl::StatusOr<Handover> ReadHandover(const Home& home, const ExperimentId& id) {
  const std::string path = home.handover(id);
  ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().ReadShortFile(path, kMostHandoverBytes));
  absl::StatusOr<Handover> handover = absl::DataLossError("");
  try {
    handover = Parse(json::parse(text));
  } catch (const json::exception& error) {
    handover = absl::DataLossError(error.what());
  }
  if (!handover.ok())
    return absl::DataLossError(
        absl::StrCat(path, " isn't what muster writes: ", std::string(handover.status().message())));
  return handover;
}

absl::Status WriteHandover(const Home& home, const ExperimentId& id, const Handover& handover) {
  json hosts = json::object();
  for (const auto& [host, code] : handover.hosts) hosts[host] = {{"work", code.work}, {"output", code.output}};
  const json object = {{"job", handover.job},
                       {"supervisor", handover.supervisor},
                       {"run_id", handover.run_id},
                       {"job_token", handover.job_token},
                       {"addresses", ByTask(handover.addresses)},
                       {"placement", ByTask(handover.placement)},
                       {"hosts", hosts},
                       {"lives", ByTask(handover.lives)}};
  return ReplaceFile(home.handover(id), object.dump() + "\n", Durability::kProcess);
}

void RemoveHandover(const Home& home, const ExperimentId& id) {
  unlink(home.handover(id).c_str());
  unlink(home.logged_output(id).c_str());
}

absl::StatusOr<LoggedOutputFile> LoggedOutputFile::Make(const Home& home, const ExperimentId& id,
                                                        const std::vector<TaskOutput>& tasks) {
  const std::string path = home.logged_output(id), beside = path + ".new";
  const int fd = open(beside.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", beside));
  LoggedOutputFile file(fd);
  for (const TaskOutput& one : tasks) file.Note(one.task, one.life, one.logged);
  if (rename(beside.c_str(), path.c_str()) != 0) return absl::ErrnoToStatus(errno, absl::StrCat("cannot write ", path));
  return file;
}

LoggedOutputFile::LoggedOutputFile(LoggedOutputFile&& other) noexcept
    : fd_(std::exchange(other.fd_, -1)), places_(std::move(other.places_)) {}

LoggedOutputFile::~LoggedOutputFile() {
  if (fd_ >= 0) close(fd_);
}

void LoggedOutputFile::Note(const TaskId& task, int life, const LoggedOutput& logged) {
  const int place = places_.try_emplace(task, static_cast<int>(places_.size())).first->second;
  std::string line = absl::StrCat(task.ToString(), " ", life, " ", logged.out, " ", logged.err, " ", logged.end.file,
                                  " ", logged.end.bytes);
  line.resize(kLineBytes - 1, ' ');
  line += '\n';
  // A line that is written in part counts for nothing.
  static_cast<void>(!pwrite(fd_, line.data(), line.size(), static_cast<off_t>(place * kLineBytes)));
}

std::map<TaskId, LoggedOutput> ReadLoggedOutput(const Home& home, const ExperimentId& id,
                                                const std::map<TaskId, int>& lives) {
  std::map<TaskId, LoggedOutput> logged;
  const std::string text =
      PosixFileSystem().ReadShortFile(home.logged_output(id), kMostHandoverBytes).value_or(std::string());
  for (const absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    const std::vector<absl::string_view> words = absl::StrSplit(line, ' ', absl::SkipEmpty());
    if (line.size() != kLineBytes - 1 || words.size() != 6) continue;
    const absl::StatusOr<TaskId> task = TaskId::Parse(std::string_view(words[0].data(), words[0].size()));
    int life = 0;
    LoggedOutput output;
    if (!task.ok() || !absl::SimpleAtoi(words[1], &life) || !absl::SimpleAtoi(words[2], &output.out) ||
        !absl::SimpleAtoi(words[3], &output.err) || !absl::SimpleAtoi(words[4], &output.end.file) ||
        !absl::SimpleAtoi(words[5], &output.end.bytes))
      continue;
    if (const auto known = lives.find(*task); known != lives.end() && known->second == life) logged[*task] = output;
  }
  return logged;
}

}  // namespace muster
