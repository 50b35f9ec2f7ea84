#include "muster/checkpoint/checkpoint_directory.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <set>
#include <utility>

#include "absl/strings/escaping.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_split.h"
#include "absl/strings/strip.h"
#include "muster/base/absl_view.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/checkpoint/safetensors_file.h"

namespace muster {
namespace {

constexpr char kNamePrefix[] = "model.ckpt-";
constexpr char kSavePrefix[] = "model.ckpt.save-";
constexpr char kPartMark[] = ".ps-";
constexpr char kNumberMark[] = ".save-";
constexpr char kOldPartMark[] =
    ".part-";  // up to version 0.2: "model.ckpt-100.part-00000-of-00003.<save id>.safetensors"
constexpr char kPartSuffix[] = ".safetensors";
constexpr char kTemporarySuffix[] = ".tmp";  // WriteFileAtomically appends a process id
constexpr char kStateFile[] = "checkpoint";
constexpr size_t kMaxAnnouncementBytes = 64;
// Those who may write in the directory may put anything there: a pipe, or a file without an end.
constexpr size_t kMaxStateBytes = size_t{16} << 20;
constexpr size_t kMaxManifestBytes = size_t{1} << 30;
constexpr double kMaxSeconds = 1e12;  // limit of the times in the state file: far beyond any, and exact in milliseconds

std::optional<int64_t> StepOf(absl::string_view name) {
  int64_t step = 0;
  if (!absl::ConsumePrefix(&name, kNamePrefix) || !absl::SimpleAtoi(name, &step) || step < 0) return std::nullopt;
  if (absl::StrCat(step) != name) return std::nullopt;  // "+1", "007"
  return step;
}

struct PartName {
  int64_t step = 0;
  int part = 0;
  int num_parts = 0;
  int save_number = 1;
  std::string save_id = {};  // of a temporary part; empty: a part under its own name
};

// Parses what stands before ".safetensors" in a part's own name.
std::optional<PartName> ParseStem(absl::string_view stem) {
  const size_t mark = stem.find(kPartMark);
  if (mark == absl::string_view::npos) return std::nullopt;
  PartName found;
  const std::optional<int64_t> step = StepOf(stem.substr(0, mark));
  if (!step.has_value()) return std::nullopt;
  found.step = *step;
  const std::pair<absl::string_view, absl::string_view> which =
      absl::StrSplit(stem.substr(mark + std::strlen(kPartMark)), absl::MaxSplits(kNumberMark, 1));
  const std::pair<absl::string_view, absl::string_view> numbers = absl::StrSplit(which.first, "-of-");
  if (!absl::SimpleAtoi(numbers.first, &found.part) || !absl::SimpleAtoi(numbers.second, &found.num_parts))
    return std::nullopt;
  if (!which.second.empty() && !absl::SimpleAtoi(which.second, &found.save_number)) return std::nullopt;
  const bool canonical = PartFileName(found.step, found.part, found.num_parts, found.save_number) ==
                         absl::StrCat(stem, kPartSuffix);  // no "+1", "007"
  return canonical ? std::optional(found) : std::nullopt;
}

// The same for a name of version 0.2, which always contains the save id.
std::optional<PartName> ParseOldStem(absl::string_view stem) {
  const size_t mark = stem.find(kOldPartMark);
  const size_t dot = stem.rfind('.');
  if (mark == absl::string_view::npos || dot <= mark) return std::nullopt;
  const std::optional<int64_t> step = StepOf(stem.substr(0, mark));
  if (!step.has_value()) return std::nullopt;
  return PartName{.step = *step, .save_id = std::string(stem.substr(dot + 1))};
}

// Parses a part's name, temporary or not; nullopt for any other text.
std::optional<PartName> ParsePartName(absl::string_view name) {
  const bool temporary = absl::ConsumeSuffix(&name, kTemporarySuffix);
  if (absl::string_view stem = name; absl::ConsumeSuffix(&stem, kPartSuffix))
    if (std::optional<PartName> old = ParseOldStem(stem); old.has_value()) return old;
  std::string save_id;
  if (temporary) {
    const size_t dot = name.rfind('.');
    if (dot == absl::string_view::npos || dot + 1 == name.size()) return std::nullopt;
    save_id = std::string(name.substr(dot + 1));
    name = name.substr(0, dot);
  }
  if (!absl::ConsumeSuffix(&name, kPartSuffix)) return std::nullopt;
  std::optional<PartName> found = ParseStem(name);
  if (found.has_value()) found->save_id = std::move(save_id);
  return found;
}

bool IsTemporaryOf(absl::string_view name, absl::string_view file_suffix) {
  const size_t dot = name.rfind(kTemporarySuffix);
  return dot != absl::string_view::npos && absl::EndsWith(name.substr(0, dot), file_suffix);
}

// Returns the steps of the manifests in a directory.
std::set<int64_t> StepsOf(const std::vector<std::string>& names) {
  std::set<int64_t> steps;
  for (absl::string_view name : names)
    if (absl::ConsumeSuffix(&name, kManifestSuffix))
      if (const auto step = StepOf(name); step.has_value()) steps.insert(*step);
  return steps;
}

// Returns the checkpoints in order of their commits, as LatestCheckpoint's comment defines it.
std::vector<std::string> InOrder(const std::set<int64_t>& steps, const CheckpointState& state) {
  std::vector<std::string> order;
  std::set<int64_t> left = steps;
  const auto take = [&](const std::string& name) {
    if (const auto step = StepOf(name); step.has_value() && left.erase(*step) > 0) order.push_back(name);
  };
  for (const std::string& name : state.all)
    if (name != state.latest) take(name);
  take(state.latest);
  for (int64_t step : steps)
    if (left.contains(step)) order.push_back(CheckpointName(step));
  return order;
}

// Writes the state file; the newest checkpoint is the last of `state.all`.
absl::Status WriteState(FileSystem& files, const std::string& directory, const CheckpointState& state) {
  const auto seconds = [](absl::Time time) {
    const int64_t millis = absl::ToUnixMillis(time);
    return absl::StrFormat("%s%d.%03d", millis < 0 ? "-" : "", std::abs(millis) / 1000, std::abs(millis) % 1000);
  };
  std::string text = absl::StrFormat("model_checkpoint_path: \"%s\"\n", state.all.back());
  for (const std::string& name : state.all) absl::StrAppend(&text, "all_model_checkpoint_paths: \"", name, "\"\n");
  const auto has_time = [&](const std::string& name) { return state.saved.contains(name); };
  if (std::all_of(state.all.begin(), state.all.end(), has_time))
    for (const std::string& name : state.all)
      absl::StrAppend(&text, "all_model_checkpoint_timestamps: ", seconds(state.saved.at(name)), "\n");
  if (state.last_preserved) absl::StrAppend(&text, "last_preserved_timestamp: ", seconds(*state.last_preserved), "\n");
  return WriteFileAtomically(files, JoinPath(directory, kStateFile), AsBytes(text.data(), text.size()));
}

// Returns the state after the commit of `manifest`, whose checkpoint is among `steps`.
CheckpointState StateAfterCommit(const CheckpointState& before, const std::set<int64_t>& steps,
                                 const Manifest& manifest) {
  constexpr absl::Duration kTick = absl::Milliseconds(1);
  const std::string name = CheckpointName(manifest.global_step);
  CheckpointState after = {.latest = name, .all = InOrder(steps, before)};
  std::erase(after.all, name);
  absl::Time time = absl::FromUnixMillis(manifest.saved_at);
  if (before.IsPreserved(name)) {  // a job that went back to it saves its step again: it stays preserved
    time = before.saved.at(name);
  } else {
    // Later than any other, even if the clock was set back: a time up to last_preserved would mean that it is
    // preserved.
    if (before.last_preserved) time = std::max(time, *before.last_preserved + kTick);
    for (const std::string& other : after.all)
      if (const auto found = before.saved.find(other); found != before.saved.end())
        time = std::max(time, found->second + kTick);
  }
  after.all.push_back(name);
  after.saved[name] = time;
  absl::Time earliest = time;
  for (auto other = after.all.rbegin() + 1; other != after.all.rend(); ++other) {
    const auto found = before.saved.find(*other);
    // Times are missing if a commit stopped before the state file: assume a time just before the next checkpoint's.
    time = found != before.saved.end() ? found->second : time - kTick;
    after.saved[*other] = time;
    earliest = std::min(earliest, time);
  }
  after.last_preserved = before.last_preserved.value_or(earliest - kTick);
  return after;
}

// Returns the state; an empty one if there is no state file, and, with a warning, if it can't be understood: it only
// says what the manifests say, but for which of them is meant.
absl::StatusOr<CheckpointState> StateOrNone(FileSystem& files, const std::string& directory) {
  auto state = ReadCheckpointState(files, directory);
  if (absl::IsNotFound(state.status())) return CheckpointState();
  if (!absl::IsDataLoss(state.status())) return state;
  // Once: an evaluator looks several times a second.
  LogLineOnce(LogLevel::kWarning,
              absl::StrCat(state.status().message(), "; the checkpoint with the highest step counts as the newest"));
  return CheckpointState();
}

// Text from a file for a message: printable, and not the whole of it.
std::string Excerpt(absl::string_view text) {
  constexpr size_t kMost = 100;
  const std::string escaped = absl::CHexEscape(text);
  return escaped.size() <= kMost ? escaped : absl::StrCat(escaped.substr(0, kMost - 3), "...");
}

absl::Status RemoveIfThere(FileSystem& files, const std::string& path) {
  const absl::Status status = files.Remove(path);
  return absl::IsNotFound(status) ? absl::OkStatus() : status;
}

// Checks a part that a writer reported: it must be whole, under its temporary name or, after a failed commit, its own.
// Returns true for the temporary name. Under its own name, another save's part of the same size may stand.
absl::StatusOr<bool> IsTemporary(FileSystem& files, const std::string& directory, const ManifestPart& part,
                                 const std::string& save_id) {
  const std::string path = JoinPath(directory, part.file);
  const std::string temporary_path = TemporaryName(path, save_id);
  const bool temporary = files.Exists(temporary_path);
  if (temporary && files.Exists(path))
    return absl::AlreadyExistsError(absl::StrCat("cannot commit: another save of this step has made ", path));
  const auto bytes = files.FileSize(temporary ? temporary_path : path);
  if (absl::IsNotFound(bytes.status()))
    return absl::DataLossError(absl::StrCat("cannot commit: ", temporary_path, " is missing"));
  if (!bytes.ok()) return bytes.status();
  if (*bytes != part.bytes)
    return absl::DataLossError(
        absl::StrCat("cannot commit: ", path, " has ", *bytes, " bytes, its writer reported ", part.bytes));
  if (temporary) return true;
  ASSIGN_OR_RETURN(const auto reader, TensorFileReader::Open(files, path));
  RETURN_IF_ERROR(reader->Verify(part.crc32c));
  return false;
}

// Adds the possible remedies to the error about an unusable newest checkpoint.
absl::Status WithAdvice(const absl::Status& status, absl::string_view name) {
  return absl::Status(status.code(), absl::StrCat(status.message(),
                                                  "; bring the file back, or allow an older checkpoint, "
                                                  "or remove ",
                                                  name, kManifestSuffix, " and the file checkpoint"));
}

}  // namespace

std::string CheckpointName(int64_t global_step) { return absl::StrCat(kNamePrefix, global_step); }

std::string ManifestFileName(int64_t global_step) { return absl::StrCat(CheckpointName(global_step), kManifestSuffix); }

std::string PartFileName(int64_t global_step, int part, int num_parts, int save_number) {
  const std::string number = save_number == 1 ? "" : absl::StrCat(kNumberMark, save_number);
  return absl::StrCat(CheckpointName(global_step), kPartMark, part, "-of-", num_parts, number, kPartSuffix);
}

std::string TemporaryName(std::string_view file, std::string_view save_id) {
  return absl::StrCat(AbslView(file), ".", AbslView(save_id), kTemporarySuffix);
}

int FreeSaveNumber(FileSystem& files, const std::string& directory, int64_t global_step) {
  std::set<int> taken;
  for (const std::string& name : files.ListDirectory(directory).value_or(std::vector<std::string>()))
    if (const auto part = ParsePartName(name); part.has_value() && part->step == global_step && part->save_id.empty())
      taken.insert(part->save_number);
  int number = 1;
  while (taken.contains(number)) ++number;
  return number;
}

std::optional<int64_t> StepOfCheckpoint(std::string_view name) { return StepOf(AbslView(name)); }

bool MayBePart(std::string_view file) {
  return IsFileName(file) && file.starts_with(kNamePrefix) && file.ends_with(kPartSuffix);
}

bool CheckpointState::IsPreserved(const std::string& name) const {
  const auto time = saved.find(name);
  return last_preserved && time != saved.end() && time->second <= *last_preserved;
}

absl::Status AnnounceSave(FileSystem& files, const std::string& directory, std::string_view save_id) {
  RETURN_IF_ERROR(files.CreateDirectory(directory));
  ASSIGN_OR_RETURN(auto file, files.CreateFile(JoinPath(directory, absl::StrCat(kSavePrefix, AbslView(save_id)))));
  RETURN_IF_ERROR(file->Append(AsBytes(save_id.data(), save_id.size())));
  return file->Close();
}

bool SeesSave(FileSystem& files, const std::string& directory, std::string_view save_id) {
  const std::string path = JoinPath(directory, absl::StrCat(kSavePrefix, AbslView(save_id)));
  const auto content = files.ReadShortFile(path, kMaxAnnouncementBytes);
  return content.ok() && *content == save_id;
}

void AbandonSave(FileSystem& files, const std::string& directory, std::string_view save_id) {
  const auto names = files.ListDirectory(directory);
  if (!names.ok()) return;
  for (const std::string& name : *names) {
    const auto part = ParsePartName(name);
    const bool own_part = part.has_value() && part->save_id == save_id && absl::EndsWith(name, kTemporarySuffix);
    if (own_part || name == absl::StrCat(kSavePrefix, AbslView(save_id)))
      files.Remove(JoinPath(directory, name)).IgnoreError();
  }
}

absl::Status CommitManifest(FileSystem& files, const std::string& directory, const Manifest& manifest) {
  RETURN_IF_ERROR(ValidateManifest(manifest));
  const int num_parts = static_cast<int>(manifest.parts.size());
  std::vector<std::string> to_rename;
  for (int i = 0; i < num_parts; ++i) {
    const ManifestPart& part = manifest.parts[i];
    const std::optional<PartName> named = ParsePartName(part.file);
    const std::string wanted =
        PartFileName(manifest.global_step, i, num_parts, named.has_value() ? named->save_number : 1);
    if (part.file != wanted)
      return absl::InvalidArgumentError(absl::StrCat("part ", i, " is called ", part.file, ", wanted ", wanted));
    ASSIGN_OR_RETURN(const bool temporary, IsTemporary(files, directory, part, manifest.save_id));
    if (temporary) to_rename.push_back(JoinPath(directory, part.file));
  }
  for (const std::string& path : to_rename) RETURN_IF_ERROR(files.Rename(TemporaryName(path, manifest.save_id), path));
  // The names of the parts must not reach the disk after the manifest's.
  RETURN_IF_ERROR(files.SyncDirectory(directory));
  const std::string text = SerializeManifest(manifest);
  RETURN_IF_ERROR(WriteFileAtomically(files, JoinPath(directory, ManifestFileName(manifest.global_step)),
                                      AsBytes(text.data(), text.size())));

  ASSIGN_OR_RETURN(const auto names, files.ListDirectory(directory));
  const CheckpointState state = ReadCheckpointState(files, directory).value_or(CheckpointState());
  return WriteState(files, directory, StateAfterCommit(state, StepsOf(names), manifest));
}

absl::StatusOr<CheckpointState> ReadCheckpointState(FileSystem& files, const std::string& directory) {
  const std::string path = JoinPath(directory, kStateFile);
  ASSIGN_OR_RETURN(const std::string text, files.ReadShortFile(path, kMaxStateBytes));
  const auto damaged = [&](absl::string_view what) {
    return absl::DataLossError(
        absl::StrCat(path, " can't be understood: ", what,
                     "; write it again (model_checkpoint_path: \"model.ckpt-<step>\") or remove it"));
  };
  CheckpointState state;
  std::vector<absl::Time> times;
  for (absl::string_view line : absl::StrSplit(text, '\n')) {
    line = absl::StripAsciiWhitespace(line);
    if (line.empty()) continue;
    const std::pair<absl::string_view, absl::string_view> entry = absl::StrSplit(line, absl::MaxSplits(':', 1));
    absl::string_view value = absl::StripAsciiWhitespace(entry.second);
    const bool is_preserved = entry.first == "last_preserved_timestamp";
    if (is_preserved || entry.first == "all_model_checkpoint_timestamps") {
      double seconds = 0;
      if (!absl::SimpleAtod(value, &seconds) || !(std::abs(seconds) < kMaxSeconds))
        return damaged(absl::StrCat("line '", Excerpt(line), "'"));
      times.push_back(absl::FromUnixMillis(std::llround(seconds * 1000)));
      if (is_preserved) state.last_preserved = times.back();
      if (is_preserved) times.pop_back();
      continue;
    }
    const bool is_latest = entry.first == "model_checkpoint_path";
    if (!is_latest && entry.first != "all_model_checkpoint_paths")
      return damaged(absl::StrCat("line '", Excerpt(line), "'"));
    std::string name;
    if (!absl::ConsumePrefix(&value, "\"") || !absl::ConsumeSuffix(&value, "\"") || !absl::CUnescape(value, &name))
      return damaged(absl::StrCat("line '", Excerpt(line), "'"));
    absl::string_view relative = name;
    absl::ConsumePrefix(&relative, JoinPath(directory, ""));  // with its slash: the directory may be called "model"
    if (!StepOf(relative).has_value())
      return damaged(absl::StrCat("'", Excerpt(name), "' isn't a checkpoint of this directory"));
    if (is_latest) state.latest = std::string(relative);
    if (!is_latest) state.all.emplace_back(relative);
  }
  if (state.latest.empty()) return damaged("no model_checkpoint_path");
  // As in TensorFlow: a list of times without one per checkpoint is ignored.
  if (times.size() == state.all.size())
    for (size_t i = 0; i < times.size(); ++i) state.saved[state.all[i]] = times[i];
  return state;
}

absl::StatusOr<std::vector<std::string>> ListCheckpoints(FileSystem& files, const std::string& directory) {
  if (!files.Exists(directory)) return std::vector<std::string>();
  // Read in this order: the state file then doesn't know yet a commit made meanwhile, instead of listing a checkpoint
  // that seems to have vanished.
  ASSIGN_OR_RETURN(const CheckpointState state, StateOrNone(files, directory));
  ASSIGN_OR_RETURN(const auto names, files.ListDirectory(directory));
  return InOrder(StepsOf(names), state);
}

absl::StatusOr<std::optional<std::string>> LatestCheckpoint(FileSystem& files, const std::string& directory,
                                                            const LatestOptions& options) {
  ASSIGN_OR_RETURN(const auto reader, OpenLatestCheckpoint(files, directory, options));
  return reader != nullptr ? std::optional(reader->path()) : std::nullopt;
}

absl::StatusOr<std::unique_ptr<CheckpointReader>> OpenLatestCheckpoint(FileSystem& files, const std::string& directory,
                                                                       const LatestOptions& options) {
  if (!files.Exists(directory)) return nullptr;
  // Read in this order, as in ListCheckpoints.
  ASSIGN_OR_RETURN(const CheckpointState state, StateOrNone(files, directory));
  ASSIGN_OR_RETURN(const auto names, files.ListDirectory(directory));
  const std::set<int64_t> steps = StepsOf(names);
  const std::vector<std::string> order = InOrder(steps, state);
  if (!state.latest.empty() && !steps.contains(*StepOf(state.latest))) {
    // The last checkpoint is older than the one that the state file promises, unless the file doesn't list it.
    const bool newer = !order.empty() && std::find(state.all.begin(), state.all.end(), order.back()) == state.all.end();
    if (!newer && (order.empty() || !options.allow_older))
      return WithAdvice(absl::DataLossError(absl::StrCat(JoinPath(directory, state.latest), kManifestSuffix,
                                                         " is missing, but the file checkpoint names it")),
                        JoinPath(directory, state.latest));
    if (!newer) LogWarning(JoinPath(directory, state.latest), " is missing: going on from an older checkpoint");
  }
  absl::Status first_error;
  for (auto name = order.rbegin(); name != order.rend(); ++name) {
    const std::string path = JoinPath(directory, *name);
    auto reader = CheckpointReader::Open(files, path, {.verify_checksums = options.verify_checksums});
    if (reader.ok() && !first_error.ok())
      LogWarning(JoinPath(directory, order.back()), " is damaged: going on from ", path, ", which is older");
    if (reader.ok()) return reader;
    first_error.Update(WithAdvice(reader.status(), path));
    if (!options.allow_older) break;
  }
  if (!first_error.ok()) return first_error;
  return nullptr;
}

absl::StatusOr<std::string> FindCheckpoint(FileSystem& files, const std::string& path) {
  const std::string name(absl::StripSuffix(path, kManifestSuffix));
  if (files.Exists(absl::StrCat(name, kManifestSuffix))) return name;
  if (!files.ListDirectory(path).ok())
    return absl::NotFoundError(
        absl::StrCat(path, " is neither a checkpoint (a path like model_dir/model.ckpt-100) nor a model_dir"));
  ASSIGN_OR_RETURN(const std::vector<std::string> order, ListCheckpoints(files, path));
  if (order.empty()) return absl::FailedPreconditionError(absl::StrCat("there is no checkpoint in ", path));
  return JoinPath(path, order.back());
}

absl::Status RetainNewest(FileSystem& files, const std::string& directory, int keep, absl::Duration preserve_every) {
  if (keep < 0) return absl::InvalidArgumentError(absl::StrCat("cannot keep ", keep, " checkpoints; 0 keeps all"));
  if (keep == 0 || !files.Exists(directory)) return absl::OkStatus();
  ASSIGN_OR_RETURN(CheckpointState state, StateOrNone(files, directory));
  ASSIGN_OR_RETURN(const auto names, files.ListDirectory(directory));
  state.all = InOrder(StepsOf(names), state);
  std::vector<std::string> old = state.all;
  std::erase_if(old, [&](const std::string& name) { return state.IsPreserved(name); });
  if (old.size() <= static_cast<size_t>(keep)) return absl::OkStatus();
  old.resize(old.size() - keep);

  std::vector<std::string> parts;
  for (const std::string& name : old) {
    const auto saved = state.saved.find(name);
    if (saved != state.saved.end() && state.last_preserved && saved->second - *state.last_preserved >= preserve_every) {
      state.last_preserved = saved->second;
      continue;
    }
    std::erase(state.all, name);
    const std::string path = JoinPath(directory, absl::StrCat(name, kManifestSuffix));
    const auto text = files.ReadShortFile(path, kMaxManifestBytes);
    const auto manifest = text.ok() ? ParseManifest(*text, path) : text.status();
    if (manifest.ok())  // RemoveLeftovers finds the parts of a damaged one
      for (const ManifestPart& part : manifest->parts) parts.push_back(JoinPath(directory, part.file));
    RETURN_IF_ERROR(RemoveIfThere(files, path));
  }
  RETURN_IF_ERROR(files.SyncDirectory(directory));
  RETURN_IF_ERROR(WriteState(files, directory, state));
  for (const std::string& path : parts) RETURN_IF_ERROR(RemoveIfThere(files, path));
  return absl::OkStatus();
}

std::string NewSaveId(absl::Time now, uint64_t incarnation, uint64_t number) {
  return absl::StrCat("t", absl::Hex(absl::ToUnixMicros(now), absl::kZeroPad16), "i", absl::Hex(incarnation), "s",
                      absl::Hex(number, absl::kZeroPad8));
}

absl::Status Tidy(FileSystem& files, const std::string& directory, const Retention& retention,
                  std::string_view save_id) {
  RETURN_IF_ERROR(RetainNewest(files, directory, retention.keep, retention.preserve_every));
  return RemoveLeftovers(files, directory, save_id);
}

absl::Status RemoveLeftovers(FileSystem& files, const std::string& directory, std::string_view own_save_id) {
  if (!files.Exists(directory)) return absl::OkStatus();
  ASSIGN_OR_RETURN(const auto names, files.ListDirectory(directory));
  std::set<std::string> referenced;
  std::set<int64_t> unreadable;
  for (int64_t step : StepsOf(names)) {
    const std::string path = JoinPath(directory, ManifestFileName(step));
    const auto text = files.ReadShortFile(path, kMaxManifestBytes);
    const auto manifest = text.ok() ? ParseManifest(*text, path) : text.status();
    if (!manifest.ok()) unreadable.insert(step);
    if (manifest.ok())
      for (const ManifestPart& part : manifest->parts) referenced.insert(part.file);
  }
  const auto later = [&](std::string_view save_id) { return !own_save_id.empty() && save_id > own_save_id; };
  const auto announces_later = [&](std::string_view name) {
    return name.starts_with(kSavePrefix) && later(name.substr(std::strlen(kSavePrefix)));
  };
  const bool later_announced = std::any_of(names.begin(), names.end(), announces_later);
  for (const std::string& name : names) {
    bool leftover = IsTemporaryOf(name, kManifestSuffix) || IsTemporaryOf(name, kStateFile);
    if (name.starts_with(kSavePrefix)) leftover = !announces_later(name);
    if (const auto part = ParsePartName(name); part.has_value()) {
      const bool in_progress = part->save_id.empty() ? later_announced : later(part->save_id);
      leftover = !in_progress && !referenced.contains(name) && !unreadable.contains(part->step);
    }
    if (leftover) RETURN_IF_ERROR(RemoveIfThere(files, JoinPath(directory, name)));
  }
  return absl::OkStatus();
}

}  // namespace muster
