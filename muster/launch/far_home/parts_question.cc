#include "muster/launch/far_home/parts_question.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <iterator>
#include <utility>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/files/file_system.h"
#include "muster/base/os/uninterrupted.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/one_line.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {
namespace {

constexpr size_t kMostRequest = 4096;
constexpr size_t kMostPassedOn = 64;
constexpr size_t kMostOfRequests = 128 << 10;  // bytes of a question
constexpr size_t kMostOfPage = 768 << 10;      // bytes of a question that say which logs are here
constexpr size_t kMostLogFolders = 4096;
constexpr size_t kMostShownPlace = 200;
// Somebody who watches says so every few seconds.
constexpr absl::Duration kStillWatched = absl::Seconds(15);

std::vector<std::string> NamesHere(const std::string& folder) {
  auto names = PosixFileSystem().ListDirectory(folder);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

// Says how much of a file is here.
absl::StatusOr<nlohmann::json> HaveOf(const std::string& folder, const std::string& place) {
  const auto size = SizeBelow(folder, place);
  if (absl::IsNotFound(size.status())) return nlohmann::json{{"bytes", 0}, {"tail", ""}};
  RETURN_IF_ERROR(size.status());
  ASSIGN_OR_RETURN(const std::string tail, TailBelow(folder, place, *size));
  return nlohmann::json{{"bytes", *size}, {"tail", tail}};
}

// Counts whole records only: a reader that was killed may have left the beginning of one.
absl::StatusOr<nlohmann::json> RecordsHere(const Home& home, const ExperimentId& id) {
  ASSIGN_OR_RETURN(nlohmann::json have, HaveOf(home.folder(id), "records"));
  ASSIGN_OR_RETURN(const ReadRecords read, ReadRecordsFrom(home.records(id), 0));
  if (have.at("bytes") == read.end) return have;
  ASSIGN_OR_RETURN(const std::string tail, TailBelow(home.folder(id), "records", read.end));
  return nlohmann::json{{"bytes", read.end}, {"tail", tail}};
}

void AddWholeFile(const std::string& folder, const std::string& place, nlohmann::json& files) {
  const auto text = ReadBelow(folder, place, 0, FarPlaceOf(place)->most);
  if (text.ok()) files[place] = HexSha256(*text);
}

// Returns the tasks whose logs are here, by name.
std::vector<std::string> TasksHere(const Home& home, const ExperimentId& id) {
  std::vector<std::string> tasks = NamesHere(home.logs(id));
  std::erase_if(tasks, [](const std::string& task) { return !IsTaskFolder(task); });
  std::sort(tasks.begin(), tasks.end());
  if (tasks.size() > kMostLogFolders) tasks.resize(kMostLogFolders);
  return tasks;
}

// Says what is here of a task's logs. Returns how many bytes that takes in a question.
absl::StatusOr<size_t> AddLogsHere(const Home& home, const ExperimentId& id, const std::string& task,
                                   nlohmann::json& question) {
  const std::string live = absl::StrCat("logs/", task, "/live");
  size_t bytes = 0;
  AddWholeFile(home.folder(id), live, question["files"]);
  if (const auto file = question["files"].find(live); file != question["files"].end())
    bytes += live.size() + file->dump().size();
  const std::vector<int64_t> numbers = LogFileNumbers(JoinPath(home.logs(id), task));
  if (numbers.empty()) return bytes;
  ASSIGN_OR_RETURN(nlohmann::json have,
                   HaveOf(home.folder(id), absl::StrCat("logs/", task, "/", LogFileName(numbers.back()))));
  have["number"] = numbers.back();
  bytes += task.size() + have.dump().size();
  question["logs"][task] = std::move(have);
  return bytes;
}

// Returns the last task that fits; "": all do.
absl::StatusOr<std::string> AddPage(const Home& home, const ExperimentId& id, const std::string& after,
                                    nlohmann::json& question) {
  constexpr size_t kBetween = 8;  // bytes: quotes, a colon, a comma
  const std::vector<std::string> tasks = TasksHere(home, id);
  size_t bytes = 0;
  for (auto task = std::upper_bound(tasks.begin(), tasks.end(), after); task != tasks.end(); ++task) {
    if (bytes > kMostOfPage) return *std::prev(task);
    ASSIGN_OR_RETURN(const size_t more, AddLogsHere(home, id, *task, question));
    bytes += more + 2 * kBetween;
  }
  return "";
}

void AddRequests(const Home& home, const ExperimentId& id, nlohmann::json& question) {
  nlohmann::json requests = nlohmann::json::object();
  size_t bytes = 0;
  for (const std::string& file : NamesHere(home.requests(id))) {
    const std::string name(absl::StripSuffix(file, ".json"));
    if (name == file || requests.size() >= kMostPassedOn || bytes >= kMostOfRequests) continue;
    const auto text = PosixFileSystem().ReadShortFile(JoinPath(home.requests(id), file), kMostRequest);
    if (!text.ok()) continue;
    requests[name] = *text;
    bytes += requests[name].dump(-1, ' ', false, nlohmann::json::error_handler_t::replace).size();
  }
  question["requests"] = std::move(requests);
  const std::string watched = JoinPath(home.requests(id), "watched");
  question["watched"] =
      PosixFileSystem().Exists(watched) && AgeOfFile(watched).value_or(absl::InfiniteDuration()) < kStillWatched;
  const auto job = ReadJobFile(home.job(id));
  question["killed"] = job.ok() && job->has_value() && (*job)->killed;
}

absl::Status WriteAllFrom(int fd, std::string_view bytes, uint64_t offset) {
  while (!bytes.empty()) {
    const ssize_t put =
        Uninterrupted([&] { return pwrite(fd, bytes.data(), bytes.size(), static_cast<off_t>(offset)); });
    if (put <= 0) return absl::ErrnoToStatus(put == 0 ? ENOSPC : errno, "cannot write what the job has sent");
    bytes.remove_prefix(static_cast<size_t>(put));
    offset += static_cast<uint64_t>(put);
  }
  return absl::OkStatus();
}

absl::Status CheckRecords(const std::string& path, uint64_t from, uint64_t end) {
  ASSIGN_OR_RETURN(const ReadRecords read, ReadRecordsFrom(path, from));
  if (read.end != end) return absl::DataLossError("the job's answer has a record that isn't whole");
  for (const std::string& record : read.records) {
    const auto change = ParseRecordText(record);
    if (!change.ok())
      return absl::DataLossError(absl::StrCat("the job's answer has ", std::string(change.status().message())));
  }
  return absl::OkStatus();
}

absl::Status Append(const std::string& folder, const FarPart& part) {
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder, part.place, O_RDWR | O_CREAT));
  struct stat info;
  absl::Status written = fstat(fd, &info) == 0 ? absl::OkStatus() : absl::ErrnoToStatus(errno, "cannot look at a file");
  const bool is_records = part.kind.kind == PlaceKind::kRecords;
  const uint64_t size = written.ok() ? static_cast<uint64_t>(info.st_size) : 0;
  uint64_t end = size;
  if (is_records) {  // what stands behind whole ones is the beginning of one
    const auto read = ReadRecordsFrom(JoinPath(folder, part.place), 0);
    end = read.ok() ? read->end : 0;
    written.Update(read.status());
  }
  const bool fits = written.ok() && end == part.offset;
  if (fits && size > part.offset && ftruncate(fd, static_cast<off_t>(part.offset)) != 0)
    written = absl::ErrnoToStatus(errno, "cannot cut off half a record");
  if (fits && written.ok()) written = WriteAllFrom(fd, part.bytes, part.offset);
  if (fits && written.ok() && is_records)
    written = CheckRecords(JoinPath(folder, part.place), part.offset, part.offset + part.bytes.size());
  if (fits && !written.ok() && ftruncate(fd, static_cast<off_t>(part.offset)) != 0)
    written = absl::ErrnoToStatus(errno, "cannot take back what the job has sent");
  close(fd);
  return written;
}

// The answer of a request that nobody waits for any more is passed over.
absl::Status ReplaceWhole(const std::string& folder, const FarPart& part) {
  const std::string path = JoinPath(folder, part.place);
  if (part.gone) {
    // Never through a link: what can't be opened so isn't the job's.
    const auto there = SizeBelow(folder, part.place);
    if (there.ok()) unlink(path.c_str());
    return absl::OkStatus();
  }
  std::string request;
  if (absl::StartsWith(part.place, "requests/")) {
    request = absl::StrCat(absl::StripSuffix(path, ".done"), ".json");
    if (!PosixFileSystem().Exists(request)) return absl::OkStatus();
  }
  // Makes the folders, and finds what may not be there.
  ASSIGN_OR_RETURN(const int fd, OpenBelow(folder, absl::StrCat(part.place, ".far"), O_WRONLY | O_CREAT | O_TRUNC));
  absl::Status written = WriteAllFrom(fd, part.bytes, 0);
  close(fd);
  const std::string beside = path + ".far";
  if (written.ok() && rename(beside.c_str(), path.c_str()) != 0)
    written = absl::ErrnoToStatus(errno, absl::StrCat("cannot replace ", path));
  if (!written.ok()) unlink(beside.c_str());
  RETURN_IF_ERROR(written);
  if (!request.empty()) unlink(request.c_str());
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<FarQuestion> PartsQuestion(const Home& home, const ExperimentId& id, const std::string& job,
                                          const std::string& after) {
  const std::string folder = home.folder(id);
  FarQuestion asked;
  nlohmann::json& question = asked.head;
  question = {{"job", job}, {"files", nlohmann::json::object()}, {"logs", nlohmann::json::object()}};
  for (const char* place : {"state.json", "refused", "job_waits", "usage.json"})
    AddWholeFile(folder, place, question["files"]);
  ASSIGN_OR_RETURN(question["records"], RecordsHere(home, id));
  ASSIGN_OR_RETURN(asked.last, AddPage(home, id, after, question));
  for (const char* place : {"supervisor.log", "job.out"}) {
    ASSIGN_OR_RETURN(question["logs"][place], HaveOf(folder, place));
  }
  question["page"] = {{"after", after}, {"last", asked.last}};
  AddRequests(home, id, question);
  return asked;
}

absl::Status NotOfAnAnswer(const std::string& place) {
  return absl::DataLossError(
      absl::StrCat("the job's answer has '", OneLine(place, kMostShownPlace), "', which it may not have"));
}

absl::StatusOr<std::vector<FarPart>> ParseParts(const FarMessage& answer) {
  std::vector<FarPart> parts;
  size_t taken = 0;
  try {
    for (const nlohmann::json& one : answer.head.at("parts")) {
      FarPart part{.place = one.at("place").get<std::string>()};
      const std::optional<FarPlace> place = FarPlaceOf(part.place);
      const uint64_t bytes = one.at("bytes").get<uint64_t>();
      if (!place.has_value() || bytes > answer.bytes.size() - taken) return NotOfAnAnswer(part.place);
      part.kind = *place;
      part.gone = one.value("gone", false);
      part.offset = one.value("offset", uint64_t{0});
      part.bytes = answer.bytes.substr(taken, bytes);
      taken += bytes;
      const bool is_whole = place->kind == PlaceKind::kWhole;
      if (part.offset > place->most || bytes > place->most - part.offset || is_whole == one.contains("offset") ||
          (part.gone && !is_whole))
        return NotOfAnAnswer(part.place);
      parts.push_back(std::move(part));
    }
  } catch (const nlohmann::json::exception&) {
    return absl::DataLossError("the job's answer isn't one of muster home parts");
  }
  std::stable_sort(parts.begin(), parts.end(),
                   [](const FarPart& a, const FarPart& b) { return a.kind.rank < b.kind.rank; });
  return parts;
}

absl::Status WritePart(const Home& home, const ExperimentId& id, const FarPart& part) {
  const std::string folder = home.folder(id);
  if (absl::StartsWith(part.place, "logs/")) {
    const std::string logs = part.place.substr(0, part.place.rfind('/'));
    if (!PosixFileSystem().Exists(JoinPath(folder, logs)) && NamesHere(home.logs(id)).size() >= kMostLogFolders)
      return absl::DataLossError(
          absl::StrCat("the job's answer has the logs of more than ", kMostLogFolders, " tasks"));
  }
  return part.kind.kind == PlaceKind::kWhole ? ReplaceWhole(folder, part) : Append(folder, part);
}

void BoundLogs(const Home& home, const ExperimentId& id, int64_t log_bytes) {
  for (const std::string& task : NamesHere(home.logs(id))) {
    const std::string folder = JoinPath(home.logs(id), task);
    const std::vector<int64_t> numbers = LogFileNumbers(folder);
    int64_t all = 0;
    for (auto number = numbers.rbegin(); number != numbers.rend(); ++number) {
      const std::string path = JoinPath(folder, LogFileName(*number));
      all += static_cast<int64_t>(PosixFileSystem().FileSize(path).value_or(0));
      if (all > log_bytes && number != numbers.rbegin()) unlink(path.c_str());
    }
  }
}

}  // namespace muster
