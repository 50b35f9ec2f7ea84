#include "muster/launch/registry/index_refresh.h"

#include <sys/stat.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <filesystem>
#include <iterator>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "muster/base/files/file_system.h"
#include "muster/base/status_macros.h"
#include "muster/launch/registry/experiment_json.h"
#include "muster/launch/registry/files/other_home.h"
#include "muster/launch/registry/files/record_file.h"
#include "muster/launch/registry/index_schema.h"
#include "muster/launch/registry/registry_rows.h"
#include "muster/launch/spec/experiment_file.h"

namespace muster {
namespace {

constexpr char kNoteTime[] =
    "INSERT INTO notes VALUES ('folders_ns', ?) ON CONFLICT (name) DO UPDATE SET value = excluded.value";
constexpr char kOpenNumbers[] = "SELECT DISTINCT number FROM runs INDEXED BY runs_open WHERE ended_us IS NULL";
constexpr char kAllNumbers[] = "SELECT number FROM experiments";
constexpr char kRunPlaces[] =
    "SELECT run, records FROM runs WHERE number = ?1 AND (run = ?2 OR (?2 = 0 AND ended_us IS NULL)) ORDER BY run";
// By so much other hosts' clocks may differ, and for so long a host may take to fill a folder that it has made.
constexpr int64_t kSettledNs = 10'000'000'000;
constexpr int64_t kSecondNs = 1'000'000'000;
// To read more than so many experiments may take seconds on a network file system.
constexpr size_t kMany = 1000;

int64_t Nanoseconds(const timespec& time) { return time.tv_sec * 1'000'000'000LL + time.tv_nsec; }

// Returns when names were last added to the folder or removed from it; 0: it isn't there.
int64_t TimeOfFolder(const std::string& folder) {
  struct stat info;
  return stat(folder.c_str(), &info) == 0 ? Nanoseconds(info.st_mtim) : 0;
}

absl::StatusOr<int64_t> KnownTime(SqliteDatabase& database) {
  return database.Value("SELECT value FROM notes WHERE name = 'folders_ns'");
}

int64_t SinceFileTime(int64_t time) {
  timespec now{};
  clock_gettime(CLOCK_REALTIME_COARSE, &now);
  return Nanoseconds(now) - time;
}

uint64_t SizeOfFile(const std::string& path) {
  struct stat info;
  return stat(path.c_str(), &info) == 0 ? static_cast<uint64_t>(info.st_size) : 0;
}

absl::StatusOr<std::set<int64_t>> Numbers(SqliteDatabase& database, const char* query) {
  ASSIGN_OR_RETURN(SqliteStatement select, database.Prepare(query));
  std::set<int64_t> numbers;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return numbers;
    numbers.insert(select.Int(0));
  }
}

// Returns the names in the folder that are numbers.
std::set<int64_t> NumbersIn(const std::string& folder) {
  std::set<int64_t> numbers;
  const auto names = PosixFileSystem().ListDirectory(folder);
  if (!names.ok()) return numbers;
  for (const std::string& name : *names) {
    int64_t number = 0;
    if (absl::SimpleAtoi(name, &number) && number > 0) numbers.insert(number);
  }
  return numbers;
}

absl::Status SetNumber(SqliteDatabase& database, const char* sql, int64_t value) {
  ASSIGN_OR_RETURN(SqliteStatement statement, database.Prepare(sql));
  return statement.BindInt(value).Run();
}

// Returns the root of OUTPUT_DIRs that the experiment's file states; "": none.
absl::StatusOr<std::string> StatedOutput(SqliteDatabase& database, int64_t number) {
  ASSIGN_OR_RETURN(SqliteStatement select,
                   database.Prepare("SELECT file_text, file_name FROM experiments WHERE number = ?"));
  select.BindInt(number);
  ASSIGN_OR_RETURN(const bool row, select.Step());
  const auto file = ParseExperimentFile(row ? select.Text(0) : "", row ? select.Text(1) : "");
  return file.ok() ? file->output : "";
}

bool IsPlainPathBelow(const std::string& path, const std::string& folder) {
  return !folder.empty() && absl::StartsWith(path, folder + "/") &&
         std::filesystem::path(path).lexically_normal().string() == path;
}

// Makes a change, as the other side of a job has written it, mean the same here: nothing of that side's processes and
// GPUs is this machine's. What is read as its output lies in the run's own folder or where the user has said, whatever
// the job names.
absl::Status BringToThisSide(const OtherHome& other, const Home& home, SqliteDatabase& database, const ExperimentId& id,
                             RunChange& change) {
  std::string& output = change.run.output_dir;
  output = PathOnThisSide(other, home.path(), output);
  if (!other.elsewhere) return absl::OkStatus();
  change.run.run_id.clear();
  change.gpus.clear();
  if (output.empty() || IsPlainPathBelow(output, home.folder(id))) return absl::OkStatus();
  ASSIGN_OR_RETURN(const std::string stated, StatedOutput(database, id.number));
  if (!IsPlainPathBelow(output, stated)) output.clear();
  return absl::OkStatus();
}

struct RunPlace {
  int run;
  uint64_t records;
};

absl::StatusOr<std::vector<RunPlace>> PlacesOf(SqliteDatabase& database, int64_t number, int run) {
  ASSIGN_OR_RETURN(SqliteStatement select, database.Prepare(kRunPlaces));
  select.BindInt(number).BindInt(run);
  std::vector<RunPlace> places;
  for (;;) {
    ASSIGN_OR_RETURN(const bool row, select.Step());
    if (!row) return places;
    places.push_back({.run = static_cast<int>(select.Int(0)), .records = static_cast<uint64_t>(select.Int(1))});
  }
}

// Returns the signature of experiment.json that the row has; nullopt: there is no row.
absl::StatusOr<std::optional<std::string>> KnownSignature(SqliteDatabase& database, int64_t number) {
  ASSIGN_OR_RETURN(SqliteStatement select, database.Prepare("SELECT signature FROM experiments WHERE number = ?"));
  ASSIGN_OR_RETURN(const bool row, select.BindInt(number).Step());
  return row ? std::optional<std::string>(select.Text(0)) : std::nullopt;
}

}  // namespace

absl::Status IndexRefresh::Several(bool ended_too) {
  if (database_.read_only()) return absl::OkStatus();
  ASSIGN_OR_RETURN(std::set<int64_t> candidates, Numbers(database_, kOpenNumbers));
  candidates.merge(NumbersIn(home_.open_folder()));
  const int64_t time = TimeOfFolder(home_.experiments());
  ASSIGN_OR_RETURN(const int64_t known_time, KnownTime(database_));
  const bool folders_changed = ended_too && time != known_time;
  bool settled = folders_changed && IsSettled(time);  // asked before the folders are listed
  std::set<int64_t> gone;
  int64_t greatest = 0;
  if (folders_changed) {
    const std::set<int64_t> folders = NumbersIn(home_.experiments());
    ASSIGN_OR_RETURN(const std::set<int64_t> rows, Numbers(database_, kAllNumbers));
    std::set_difference(folders.begin(), folders.end(), rows.begin(), rows.end(),
                        std::inserter(candidates, candidates.end()));
    std::set_difference(rows.begin(), rows.end(), folders.begin(), folders.end(), std::inserter(gone, gone.end()));
    if (!folders.empty()) greatest = *folders.rbegin();
    // Its folder stays when it is forgotten.
    if (rows.contains(greatest) && IsEmpty(greatest)) gone.insert(greatest);
    // Another host may be about to fill one.
    const auto may_be_filled = [&](int64_t number) {
      return !rows.contains(number) && IsEmpty(number) &&
             SinceFileTime(TimeOfFolder(home_.folder({.number = number}))) <= kSettledNs;
    };
    if (std::any_of(folders.begin(), folders.end(), may_be_filled)) settled = false;
    // A file system that fails for a while looks the same, so the next command looks whether they are there.
    if (!gone.empty()) settled = false;
  }
  std::vector<int64_t> behind;
  for (const int64_t number : candidates) {
    ASSIGN_OR_RETURN(const bool is_behind, IsBehind(number, 0));
    if (is_behind) behind.push_back(number);
  }
  if (behind.empty() && gone.empty() && !settled) return absl::OkStatus();
  if (behind.size() > kMany)
    std::fprintf(stderr, "muster: reading %zu experiments of %s that this host's index doesn't have yet\n",
                 behind.size(), home_.path().c_str());
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database_, Durability::kProcess));
  for (const int64_t number : behind) {
    ASSIGN_OR_RETURN(const bool is_known, Absorb(number, 0));
    settled = settled && is_known;
  }
  // Looks again: another command may have made it between the two lists.
  for (const int64_t number : gone)
    if (IsEmpty(number)) RETURN_IF_ERROR(DropExperiment(database_, number));
  if (settled) RETURN_IF_ERROR(SetNumber(database_, kNoteTime, time));
  RETURN_IF_ERROR(
      SetNumber(database_, "UPDATE sqlite_sequence SET seq = max(seq, ?) WHERE name = 'experiments'", greatest));
  return transaction.Commit();
}

absl::Status IndexRefresh::One(int64_t number, int run) {
  if (database_.read_only()) return absl::OkStatus();
  ASSIGN_OR_RETURN(const bool is_behind, IsBehind(number, run));
  if (!is_behind) return absl::OkStatus();
  if (database_.in_transaction()) return Absorb(number, run).status();
  ASSIGN_OR_RETURN(SqliteTransaction transaction, SqliteTransaction::Begin(database_, Durability::kProcess));
  RETURN_IF_ERROR(Absorb(number, run).status());
  return transaction.Commit();
}

// A file system of this host takes its times from the coarse clock, so what changes once that has gone on has a later
// time. Some keep whole seconds only, or two.
bool IndexRefresh::IsSettled(int64_t time) const {
  const bool is_coarse = place_.shared || time % kSecondNs == 0;
  return SinceFileTime(time) > (is_coarse ? kSettledNs : 0);
}

bool IndexRefresh::IsEmpty(int64_t number) const { return SignatureOf(home_.experiment_file(number)).empty(); }

absl::StatusOr<bool> IndexRefresh::IsBehind(int64_t number, int run) {
  ASSIGN_OR_RETURN(const std::optional<std::string> known, KnownSignature(database_, number));
  const std::string present = SignatureOf(home_.experiment_file(number));
  if (known.value_or("") != present) return true;
  ASSIGN_OR_RETURN(const std::vector<RunPlace> places, PlacesOf(database_, number, run));
  return std::any_of(places.begin(), places.end(), [&](const RunPlace& place) {
    return SizeOfFile(home_.records({.number = number, .run = place.run})) != place.records;
  });
}

absl::StatusOr<bool> IndexRefresh::Absorb(int64_t number, int run) {
  ASSIGN_OR_RETURN(const std::optional<std::string> known, KnownSignature(database_, number));
  const std::string signature = SignatureOf(home_.experiment_file(number));
  if (signature.empty()) {
    if (known.has_value()) RETURN_IF_ERROR(DropExperiment(database_, number));
    return true;
  }
  const bool is_new = known.value_or("") != signature;
  bool is_known = true;
  if (is_new) {
    ASSIGN_OR_RETURN(is_known, AbsorbExperiment(number));
  }
  // Runs that have begun again are open now.
  ASSIGN_OR_RETURN(const std::vector<RunPlace> places, PlacesOf(database_, number, is_new ? 0 : run));
  for (const RunPlace& place : places) {
    const ExperimentId id{.number = number, .run = place.run};
    const uint64_t size = SizeOfFile(home_.records(id));
    if (size != place.records) RETURN_IF_ERROR(AbsorbRecords(id, size < place.records ? 0 : place.records));
  }
  return is_known;
}

absl::StatusOr<bool> IndexRefresh::AbsorbExperiment(int64_t number) {
  const std::string path = home_.experiment_file(number);
  const std::string signature = SignatureOf(path);
  ASSIGN_OR_RETURN(const std::string text, PosixFileSystem().ReadFile(path));
  const auto file = ParseExperimentText(text);
  if (!file.ok() || file->number != number) {
    std::fprintf(stderr, "muster: %s can't be used: %s\n", path.c_str(),
                 file.ok() ? "it is another experiment's" : std::string(file.status().message()).c_str());
    return false;
  }
  ASSIGN_OR_RETURN(SqliteStatement upsert,
                   database_.Prepare("INSERT INTO experiments (number, project, folder, tree, runs, file_name, options,"
                                     " environment, file_text, signature) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?)"
                                     " ON CONFLICT (number) DO UPDATE SET project = excluded.project,"
                                     " folder = excluded.folder, tree = excluded.tree, runs = excluded.runs,"
                                     " file_name = excluded.file_name, options = excluded.options,"
                                     " environment = excluded.environment, file_text = excluded.file_text,"
                                     " signature = excluded.signature"));
  const int runs = file->experiment.grid ? static_cast<int>(file->runs.size()) - 1 : 0;
  upsert.BindInt(number);
  BindSpecification(upsert, file->experiment, runs);
  RETURN_IF_ERROR(upsert.BindText(signature).Run());
  for (AskedRun asked : file->runs) {
    const std::optional<OtherHome> other = ReadOtherHome(home_.other_home({.number = number, .run = asked.run}));
    if (other.has_value()) asked.output_dir = PathOnThisSide(*other, home_.path(), asked.output_dir);
    RETURN_IF_ERROR(ApplyAskedRun(database_, number, asked));
  }
  RETURN_IF_ERROR(DropRunsAbove(database_, number, runs));
  return true;
}

absl::Status IndexRefresh::AbsorbRecords(const ExperimentId& id, uint64_t from) {
  ASSIGN_OR_RETURN(ReadRecords read, ReadRecordsFrom(home_.records(id), from));
  // Another file is there, or what was read was taken back: whole rows may be read again.
  if (from > 0 && read.records.empty() && SizeOfFile(home_.records(id)) > from) {
    ASSIGN_OR_RETURN(read, ReadRecordsFrom(home_.records(id), 0));
  }
  const std::optional<OtherHome> other = ReadOtherHome(home_.other_home(id));
  for (const std::string& record : read.records) {
    auto change = ParseRecordText(record);
    if (change.ok()) {
      if (other.has_value()) RETURN_IF_ERROR(BringToThisSide(*other, home_, database_, id, *change));
      const bool here = place_.machine.HasSameKernel(MachineId::Parse(change->run.machine));
      RETURN_IF_ERROR(ApplyChange(database_, id, *change, here));
    } else {
      std::fprintf(stderr, "muster: %s: %s\n", home_.records(id).c_str(),
                   std::string(change.status().message()).c_str());
    }
  }
  ASSIGN_OR_RETURN(SqliteStatement update,
                   database_.Prepare("UPDATE runs SET records = ? WHERE number = ? AND run = ?"));
  return update.BindInt(static_cast<int64_t>(read.end)).BindInt(id.number).BindInt(id.run).Run();
}

}  // namespace muster
