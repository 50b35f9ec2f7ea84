#include "muster/summary/event_file_writer.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/time/time.h"
#include "muster/base/crc32c.h"
#include "muster/base/log.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/summary/summary_values.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "records are framed with little-endian numbers");

// Field numbers of tensorflow/core/util/event.proto.
constexpr protozero::pbf_tag_type kEventWallTime = 1;
constexpr protozero::pbf_tag_type kEventStep = 2;
constexpr protozero::pbf_tag_type kEventFileVersion = 3;
constexpr protozero::pbf_tag_type kEventGraphDef = 4;
constexpr protozero::pbf_tag_type kEventSummary = 5;
constexpr protozero::pbf_tag_type kEventSessionLog = 7;
constexpr protozero::pbf_tag_type kSessionLogStatus = 1;
constexpr protozero::pbf_tag_type kSessionLogCheckpointPath = 2;
constexpr protozero::pbf_tag_type kSessionLogMessage = 3;

constexpr std::string_view kFileVersion = "brain.Event:2";
// The name doesn't begin with "events": a program that lists a directory's event files must not find it.
constexpr char kLockFile[] = ".summary_writer.lock";

// After a failed write, and between looks whether the file is still there.
constexpr absl::Duration kFirstPause = absl::Seconds(5);
constexpr absl::Duration kLongestPause = absl::Minutes(1);
constexpr absl::Duration kBetweenLooks = absl::Seconds(5);

double Seconds(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

std::string MachineName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// Returns a file name that isn't taken in this directory: two writers within a second would get the same one.
std::string FreePath(FileSystem& files, const std::string& directory, const std::string& name) {
  std::string path = JoinPath(directory, name);
  for (int i = 1; files.Exists(path); ++i) path = JoinPath(directory, absl::StrCat(name, ".", i));
  return path;
}

// Returns the right to write in `directory`; null if the file system has no locks.
absl::StatusOr<std::unique_ptr<FileLock>> TakeDirectory(FileSystem& files, const std::string& directory,
                                                        absl::Time now) {
  auto taken = files.Lock(JoinPath(directory, kLockFile),
                          absl::StrCat("process ", getpid(), " on ", MachineName(), ", since ",
                                       absl::FormatTime("%Y-%m-%d %H:%M:%S UTC", now, absl::UTCTimeZone())));
  if (taken.ok()) return taken;
  if (absl::IsUnimplemented(taken.status())) {
    LogWarning(taken.status().message(), ": muster can't detect another process that writes summaries there");
    return nullptr;
  }
  if (!absl::IsFailedPrecondition(taken.status())) return taken.status();
  return WrongConfigurationError(absl::StrCat(
      "the summary directory ", directory, " has a writer already: ", taken.status().message(),
      "; TensorBoard loses events of two writers in one directory, so give this run another summary_dir or "
      "checkpoint_dir, or end the other one"));
}

}  // namespace

EventFileWriter::EventFileWriter(FileSystem& files, const Clock& clock, std::string directory, Options options)
    : files_(files),
      clock_(clock),
      directory_(std::move(directory)),
      options_(std::move(options)),
      pause_(kFirstPause, kLongestPause) {}

absl::StatusOr<std::unique_ptr<EventFileWriter>> EventFileWriter::Open(FileSystem& files, const Clock& clock,
                                                                       const std::string& directory,
                                                                       const Options& options) {
  std::unique_ptr<EventFileWriter> writer(new EventFileWriter(files, clock, directory, options));
  MutexLock lock(writer->mutex_);
  const absl::Status begun = writer->Begin();
  if (!begun.ok() && !absl::IsResourceExhausted(begun)) return begun;
  if (!begun.ok()) writer->GiveUpFile(begun);
  return writer;
}

absl::Status EventFileWriter::Begin() {
  RETURN_IF_ERROR(files_.CreateDirectory(directory_));
  const absl::Time now = clock_.Now();
  lock_ = nullptr;  // its file may have been deleted
  ASSIGN_OR_RETURN(lock_, TakeDirectory(files_, directory_, now));
  const std::string name = absl::StrFormat("events.out.tfevents.%010d.%s%s", absl::ToUnixSeconds(now),
                                           options_.host.empty() ? MachineName() : options_.host,
                                           options_.suffix.empty() ? absl::StrCat(".", getpid()) : options_.suffix);
  path_ = FreePath(files_, directory_, name);
  ASSIGN_OR_RETURN(file_, files_.CreateFile(path_));
  std::string event;
  protozero::pbf_writer encoder(event);
  encoder.add_double(kEventWallTime, Seconds(now));
  encoder.add_string(kEventFileVersion, kFileVersion.data(), kFileVersion.size());
  RETURN_IF_ERROR(Append(event));
  last_flush_ = now;
  look_at_ = now + kBetweenLooks;
  return file_->Flush();
}

void EventFileWriter::BeginAgainIfDue(absl::Time now) {
  if (file_ != nullptr) {
    if (now < look_at_) return;
    look_at_ = now + kBetweenLooks;
    if (files_.Exists(path_)) return;
    LogWarning(path_, " was deleted: summaries go on in a new file of ", directory_);
  } else if (now < retry_at_) {
    return;
  }
  if (const absl::Status begun = Begin(); !begun.ok()) return GiveUpFile(begun);
  pause_.Reset();
  LogInfo("summaries go on in ", path_);
}

void EventFileWriter::GiveUpFile(const absl::Status& why) {
  file_ = nullptr;
  const absl::Duration pause = pause_.Next();
  retry_at_ = clock_.Now() + pause;
  LogWarning("no summaries are written to ", directory_, ": ", why.message(), "; a new file is begun in ",
             absl::FormatDuration(pause), ", what is added until then is lost");
}

absl::Status EventFileWriter::CheckOpen() const {
  if (!closed_) return absl::OkStatus();
  return absl::FailedPreconditionError(absl::StrCat(path_, " is closed: nothing can be added to it"));
}

std::string EventFileWriter::path() const {
  MutexLock lock(mutex_);
  return path_;
}

absl::Status EventFileWriter::AddScalar(std::string_view tag, float value, int64_t step) {
  const ScalarSummary scalar = {.tag = std::string(tag), .value = value};
  return AddScalars({&scalar, 1}, step);
}

absl::Status EventFileWriter::AddScalars(std::span<const ScalarSummary> scalars, int64_t step) {
  std::string summary;
  for (const ScalarSummary& scalar : scalars) AppendScalar(summary, scalar.tag, scalar.value);
  return AddSummary(summary, step);
}

absl::Status EventFileWriter::AddHistogram(std::string_view tag, const ValueHistogram& histogram, int64_t step) {
  std::string summary;
  AppendHistogram(summary, tag, histogram);
  return AddSummary(summary, step);
}

absl::Status EventFileWriter::AddSummary(std::string_view summary, int64_t step) {
  return summary.empty() ? absl::OkStatus() : Add(kEventSummary, summary, step);
}

absl::Status EventFileWriter::AddGraph(std::string_view graph_def, int64_t step) {
  return Add(kEventGraphDef, graph_def, step);
}

absl::Status EventFileWriter::AddSessionLog(SessionStatus status, int64_t step, std::string_view checkpoint_path,
                                            std::string_view message) {
  std::string log;
  protozero::pbf_writer encoder(log);
  encoder.add_enum(kSessionLogStatus, static_cast<int32_t>(status));
  if (!checkpoint_path.empty())
    encoder.add_string(kSessionLogCheckpointPath, checkpoint_path.data(), checkpoint_path.size());
  if (!message.empty()) encoder.add_string(kSessionLogMessage, message.data(), message.size());
  return Add(kEventSessionLog, log, step);
}

absl::Status EventFileWriter::Add(int field, std::string_view message, int64_t step) {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckOpen());
  const absl::Time now = clock_.Now();
  BeginAgainIfDue(now);
  if (file_ == nullptr) return absl::OkStatus();
  std::string event;
  protozero::pbf_writer encoder(event);
  encoder.add_double(kEventWallTime, Seconds(now));
  encoder.add_int64(kEventStep, step);
  encoder.add_message(static_cast<protozero::pbf_tag_type>(field), message.data(), message.size());
  if (const absl::Status added = Append(event); !added.ok()) GiveUpFile(added);
  if (now - last_flush_ >= options_.flush_interval) FlushLocked(now);
  return absl::OkStatus();
}

absl::Status EventFileWriter::Append(std::string_view event) {
  const uint64_t length = event.size();
  std::string record(sizeof length, '\0');
  std::memcpy(record.data(), &length, sizeof length);
  const auto append_checksum = [&record](std::string_view of) {
    const uint32_t checksum = MaskedCrc32c(AsBytes(of.data(), of.size()));
    record.append(reinterpret_cast<const char*>(&checksum), sizeof checksum);
  };
  append_checksum(record);
  record.append(event);
  append_checksum(event);
  return file_->Append(AsBytes(record.data(), record.size()));
}

void EventFileWriter::FlushLocked(absl::Time now) {
  if (file_ == nullptr) return;
  last_flush_ = now;
  if (const absl::Status flushed = file_->Flush(); !flushed.ok()) GiveUpFile(flushed);
}

absl::Status EventFileWriter::Flush() {
  MutexLock lock(mutex_);
  RETURN_IF_ERROR(CheckOpen());
  FlushLocked(clock_.Now());
  return absl::OkStatus();
}

absl::Status EventFileWriter::Close() {
  MutexLock lock(mutex_);
  if (std::exchange(closed_, true)) return absl::OkStatus();
  if (file_ != nullptr) {
    absl::Status ended = file_->Flush();
    ended.Update(file_->Close());
    if (!ended.ok()) LogWarning("the last summaries may be lost: ", ended.message());
  }
  file_ = nullptr;
  lock_ = nullptr;
  return absl::OkStatus();
}

}  // namespace muster
