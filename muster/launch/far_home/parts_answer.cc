#include "muster/launch/far_home/parts_answer.h"

#include <unistd.h>

#include <algorithm>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/strip.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/far_home/far_places.h"
#include "muster/launch/far_home/parcel_receiver.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/job_file.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/files/requests.h"
#include "muster/launch/task_log/log_format.h"

namespace muster {
namespace {

constexpr size_t kMostRequestText = 4096;
constexpr size_t kMostAskedRequests = 64;
// Records get at most that of a message, so that logs come along.
constexpr size_t kMostOfRecords = size_t{512} << 10;
constexpr size_t kMostParts = 700;
constexpr size_t kMostDiffers = 100;

std::vector<std::string> NamesIn(const std::string& folder) {
  auto names = PosixFileSystem().ListDirectory(folder);
  return names.ok() ? *std::move(names) : std::vector<std::string>();
}

class PartsAnswer {
 public:
  PartsAnswer(const Home& home, const ExperimentId& id, const nlohmann::json& question)
      : home_(home), folder_(home.folder(id)), id_(id), question_(question) {}

  absl::StatusOr<FarMessage> Make();

 private:
  // Takes what the submitter asks of the supervisor.
  void TakeWishes();
  void TakeRequest(const std::string& name, const std::string& text);
  void NoteJob();
  // Adds what is new of a file that is only appended to, from the offset that the reader has. Returns whether that is
  // all of it.
  bool AddAppended(const std::string& place, uint64_t have, const std::string& tail);
  // Whether the question is about this task's logs.
  bool IsAsked(const std::string& task) const;
  void AddLogs();
  void AddLogsOf(const std::string& task, const nlohmann::json& has);
  void AddRecords();
  void AddWhole(const std::string& place, const std::optional<std::string>& text);
  void AddWholes();
  void AddPart(nlohmann::json part, const std::string& bytes);
  size_t room() const { return kMostFarBytes - std::min(kMostFarBytes, message_.bytes.size()); }
  std::string Has(const std::string& place) const;
  std::optional<std::string> ReadWhole(const std::string& place) const;

  const Home& home_;
  const std::string folder_;
  const ExperimentId id_;
  const nlohmann::json& question_;
  std::string after_, last_;  // the tasks that it is about are behind `after_`, up to `last_`
  bool rest_ = true;          // the reader has the logs of all others, up to the run's end
  FarMessage message_;
  std::optional<std::string> state_;  // state.json, as it was before anything else was read
  nlohmann::json records_part_;       // that is ready, with
  std::string records_bytes_;         // its bytes
  bool records_whole_ = true;         // they reach to the end
  bool ended_ = false;                // they contain the run's end
  bool more_ = false;
};

void PartsAnswer::AddPart(nlohmann::json part, const std::string& bytes) {
  part["bytes"] = bytes.size();
  message_.head["parts"].push_back(std::move(part));
  message_.bytes += bytes;
}

// Returns the checksum of the reader's copy; "" for none.
std::string PartsAnswer::Has(const std::string& place) const {
  const auto files = question_.find("files");
  if (files == question_.end() || !files->is_object()) return "";
  const auto found = files->find(place);
  return found != files->end() && found->is_string() ? found->get<std::string>() : "";
}

std::optional<std::string> PartsAnswer::ReadWhole(const std::string& place) const {
  const uint64_t most = FarPlaceOf(place)->most;
  const auto text = ReadBelow(folder_, place, 0, most + 1);
  return text.ok() && text->size() <= most ? std::optional(*text) : std::nullopt;
}

void PartsAnswer::TakeRequest(const std::string& name, const std::string& text) {
  const std::string done = absl::StrCat("requests/", name, ".done");
  if (!FarPlaceOf(done).has_value() || text.size() > kMostRequestText) return;
  const std::string folder = home_.requests(id_);
  if (PosixFileSystem().Exists(JoinPath(folder_, done)) || !PosixFileSystem().CreateDirectory(folder).ok()) return;
  const std::string request = JoinPath(folder, absl::StrCat(name, ".json"));
  if (!PosixFileSystem().Exists(request)) static_cast<void>(ReplaceFile(request, text, Durability::kProcess));
}

void PartsAnswer::TakeWishes() {
  std::set<std::string> asked;
  const nlohmann::json requests = question_.value("requests", nlohmann::json::object());
  for (const auto& [name, text] : requests.items()) {
    if (asked.size() >= kMostAskedRequests) break;
    asked.insert(name);
    TakeRequest(name, text.get<std::string>());
  }
  // Answers that the reader has taken.
  for (const std::string& file : NamesIn(home_.requests(id_))) {
    const std::string name(absl::StripSuffix(file, ".done"));
    if (name != file && !asked.contains(name)) unlink(JoinPath(home_.requests(id_), file).c_str());
  }
  if (question_.value("watched", false)) SayWatched(home_.requests(id_));
  if (!question_.value("killed", false)) return;
  const auto job = ReadJobFile(home_.job(id_));
  if (job.ok() && job->has_value() && !(*job)->killed) static_cast<void>(NoteKilled(home_.job(id_)));
}

void PartsAnswer::NoteJob() {
  const auto job = ReadJobFile(home_.job(id_));
  if (!job.ok() || !job->has_value()) return;
  message_.head["job"] = {{"id", (*job)->id},
                          {"requeues", (*job)->requeues},
                          {"restarts", (*job)->restarts},
                          {"wants_another", (*job)->wants_another},
                          {"doubtful", (*job)->doubtful},
                          {"ending_seconds", (*job)->ending_seconds}};
}

bool PartsAnswer::AddAppended(const std::string& place, uint64_t have, const std::string& tail) {
  const auto size = SizeBelow(folder_, place);
  if (!size.ok()) return true;
  const uint64_t most = std::min(FarPlaceOf(place)->most, *size);
  const auto own_tail = have <= *size ? TailBelow(folder_, place, have) : absl::StatusOr<std::string>("");
  if (have > 0 && (!own_tail.ok() || *own_tail != tail)) {
    if (message_.head["differs"].size() < kMostDiffers) message_.head["differs"].push_back(place);
    return true;
  }
  if (have >= most) return true;
  const size_t wanted = static_cast<size_t>(std::min<uint64_t>(most - have, room()));
  const auto bytes = ReadBelow(folder_, place, have, wanted);
  if (!bytes.ok()) return true;
  if (wanted == 0) return false;
  AddPart({{"place", place}, {"offset", have}}, *bytes);
  return have + bytes->size() >= most;
}

void PartsAnswer::AddLogsOf(const std::string& task, const nlohmann::json& has) {
  const int64_t last = has.value("number", int64_t{0});
  for (const int64_t number : LogFileNumbers(JoinPath(folder_, absl::StrCat("logs/", task)))) {
    const std::string place = absl::StrCat("logs/", task, "/", LogFileName(number));
    if (number < last || !FarPlaceOf(place).has_value()) continue;
    const bool is_last = number == last;
    const bool whole =
        message_.head["parts"].size() < kMostParts &&
        AddAppended(place, is_last ? has.value("bytes", uint64_t{0}) : 0, is_last ? has.value("tail", "") : "");
    if (whole) continue;
    more_ = true;
    return;
  }
}

bool PartsAnswer::IsAsked(const std::string& task) const {
  return IsTaskFolder(task) && task > after_ && (last_.empty() || task <= last_);
}

void PartsAnswer::AddLogs() {
  const nlohmann::json logs = question_.value("logs", nlohmann::json::object());
  for (const std::string& task : NamesIn(home_.logs(id_)))
    if (IsAsked(task)) AddLogsOf(task, logs.value(task, nlohmann::json::object()));
}

// Whole records only, of which the last says whether the run has ended.
void PartsAnswer::AddRecords() {
  const nlohmann::json has = question_.value("records", nlohmann::json::object());
  const uint64_t have = has.value("bytes", uint64_t{0});
  const std::string path = home_.records(id_);
  const auto tail = have > 0 ? TailBelow(folder_, "records", have) : absl::StatusOr<std::string>("");
  if (have > 0 && (!tail.ok() || *tail != has.value("tail", ""))) {
    message_.head["differs"].push_back("records");
    records_whole_ = false;
    return;
  }
  const auto read = ReadRecordsFrom(path, have);
  if (!read.ok() || read->records.empty()) return;
  if (const auto change = ParseRecordText(read->records.back()); change.ok()) ended_ = HasEnded(change->run.state);
  const auto bytes = ReadBelow(folder_, "records", have, read->end - have);
  if (!bytes.ok() || bytes->size() != read->end - have) return;
  size_t most = bytes->size();
  if (most > kMostOfRecords) most = bytes->rfind('\n', kMostOfRecords - 1) + 1;  // npos + 1 is 0
  records_whole_ = most == bytes->size();
  more_ = more_ || !records_whole_;
  ended_ = ended_ && records_whole_;
  records_part_ = {{"place", "records"}, {"offset", have}};
  records_bytes_ = bytes->substr(0, most);
}

void PartsAnswer::AddWhole(const std::string& place, const std::optional<std::string>& text) {
  const std::string has = Has(place);
  if (!text.has_value()) {
    if (!has.empty()) AddPart({{"place", place}, {"gone", true}}, "");
    return;
  }
  if (HexSha256(*text) == has) return;
  if (text->size() > room()) {
    more_ = true;
    return;
  }
  AddPart({{"place", place}, {"whole", true}}, *text);
}

void PartsAnswer::AddWholes() {
  for (const char* place : {"refused", "job_waits", "usage.json"}) AddWhole(place, ReadWhole(place));
  for (const std::string& task : NamesIn(home_.logs(id_))) {
    if (!IsAsked(task) || message_.head["parts"].size() >= kMostParts) continue;
    const std::string live = absl::StrCat("logs/", task, "/live");
    AddWhole(live, ReadWhole(live));
  }
  for (const std::string& file : NamesIn(home_.requests(id_))) {
    const std::string place = absl::StrCat("requests/", file);
    if (FarPlaceOf(place).has_value()) AddWhole(place, ReadWhole(place));
  }
}

absl::StatusOr<FarMessage> PartsAnswer::Make() {
  const std::string job = question_.at("job").get<std::string>();
  if (!HasReceived(home_, id_, job))
    return absl::NotFoundError(absl::StrCat("experiment ", id_.ToString(), " isn't in job ", job, " yet"));
  const nlohmann::json page = question_.value("page", nlohmann::json::object());
  after_ = page.value("after", "");
  last_ = page.value("last", "");
  rest_ = question_.value("rest", true);
  message_.head = {{"home", home_.path()}, {"parts", nlohmann::json::array()}, {"differs", nlohmann::json::array()}};
  TakeWishes();
  if (question_.value("collected", false))
    RETURN_IF_ERROR(ReplaceFile(FarFile(home_, id_, kFarCollectedName), job, Durability::kProcess));
  // Before all that it must not be ahead of.
  const bool over =
      PosixFileSystem().Exists(home_.job_over(id_)) || PosixFileSystem().Exists(FarFile(home_, id_, kFarLingersName));
  state_ = ReadWhole("state.json");
  NoteJob();
  AddRecords();
  const bool records_first = !ended_;
  if (records_first && !records_part_.is_null()) AddPart(records_part_, records_bytes_);
  AddLogs();
  for (const char* place : {"supervisor.log", "job.out"}) {
    const nlohmann::json has = question_.value("logs", nlohmann::json::object()).value(place, nlohmann::json::object());
    if (!AddAppended(place, has.value("bytes", uint64_t{0}), has.value("tail", ""))) more_ = true;
  }
  // The end comes once nothing that stands before it is missing.
  const bool with_end = ended_ && rest_ && !more_ && records_bytes_.size() <= room();
  if (with_end && !records_part_.is_null()) AddPart(records_part_, records_bytes_);
  if (ended_ && rest_ && !with_end) more_ = true;
  if (!ended_ || with_end) AddWholes();
  message_.head["ended"] = ended_;
  if ((records_first && records_whole_) || with_end) AddWhole("state.json", state_);
  message_.head["more"] = more_;
  message_.head["over"] = over;
  return std::move(message_);
}

}  // namespace

absl::StatusOr<FarMessage> AnswerParts(const Home& home, const ExperimentId& id, const FarMessage& question) {
  try {
    return PartsAnswer(home, id, question.head).Make();
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("it is no question of muster home parts");
  }
}

std::string AnswerFar(const Home& home, const std::string& verb, const std::string& id, const std::string& input) {
  const auto answer = [&]() -> absl::StatusOr<FarMessage> {
    ASSIGN_OR_RETURN(const ExperimentId parsed, ExperimentId::Parse(id));
    ASSIGN_OR_RETURN(const FarMessage question, ParseFarMessage(input));
    if (verb == "receive") return AnswerReceive(home, parsed, question);
    if (verb == "parts") return AnswerParts(home, parsed, question);
    if (verb == "outputs") return AnswerOutputs(home, parsed, question);
    return absl::InvalidArgumentError(absl::StrCat("muster home has no questions '", verb, "'"));
  }();
  return FarMessageText(answer.ok() ? *answer : FarRefusal(answer.status()));
}

}  // namespace muster
