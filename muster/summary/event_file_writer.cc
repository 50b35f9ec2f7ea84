#include "muster/summary/event_file_writer.h"

#include <unistd.h>

#include <array>
#include <bit>
#include <cstring>
#include <protozero/pbf_writer.hpp>
#include <utility>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/crc32c.h"
#include "muster/base/status_macros.h"

namespace muster {
namespace {

static_assert(std::endian::native == std::endian::little, "records are framed with little-endian numbers");

// Field numbers of tensorflow/core/util/event.proto and framework/summary.proto.
constexpr protozero::pbf_tag_type kEventWallTime = 1;
constexpr protozero::pbf_tag_type kEventStep = 2;
constexpr protozero::pbf_tag_type kEventFileVersion = 3;
constexpr protozero::pbf_tag_type kEventSummary = 5;
constexpr protozero::pbf_tag_type kEventSessionLog = 7;
constexpr protozero::pbf_tag_type kSummaryValue = 1;
constexpr protozero::pbf_tag_type kValueTag = 1;
constexpr protozero::pbf_tag_type kValueSimpleValue = 2;
constexpr protozero::pbf_tag_type kValueHistogram = 5;
constexpr protozero::pbf_tag_type kHistogramMin = 1;
constexpr protozero::pbf_tag_type kHistogramMax = 2;
constexpr protozero::pbf_tag_type kHistogramNum = 3;
constexpr protozero::pbf_tag_type kHistogramSum = 4;
constexpr protozero::pbf_tag_type kHistogramSumSquares = 5;
constexpr protozero::pbf_tag_type kHistogramLimits = 6;
constexpr protozero::pbf_tag_type kHistogramCounts = 7;
constexpr protozero::pbf_tag_type kSessionLogStatus = 1;
constexpr protozero::pbf_tag_type kSessionLogCheckpointPath = 2;
constexpr protozero::pbf_tag_type kSessionLogMessage = 3;

constexpr std::string_view kFileVersion = "brain.Event:2";

double Seconds(absl::Time time) { return static_cast<double>(absl::ToUnixMicros(time)) / 1e6; }

std::string MachineName() {
  std::array<char, 256> name{};
  if (gethostname(name.data(), name.size() - 1) != 0) return "localhost";
  return name.data();
}

// A file name of this directory that isn't taken: two writers within a second would get the same one.
std::string FreePath(FileSystem& files, const std::string& directory, const std::string& name) {
  std::string path = JoinPath(directory, name);
  for (int i = 1; files.Exists(path); ++i) path = JoinPath(directory, absl::StrCat(name, ".", i));
  return path;
}

}  // namespace

EventFileWriter::EventFileWriter(const Clock& clock, std::string path, absl::Duration flush_interval,
                                 std::unique_ptr<WritableFile> file)
    : clock_(clock),
      path_(std::move(path)),
      flush_interval_(flush_interval),
      file_(std::move(file)),
      last_flush_(clock.Now()) {}

absl::StatusOr<std::unique_ptr<EventFileWriter>> EventFileWriter::Open(FileSystem& files, const Clock& clock,
                                                                       const std::string& directory,
                                                                       const Options& options) {
  RETURN_IF_ERROR(files.CreateDirectory(directory));
  const double now = Seconds(clock.Now());
  const std::string name = absl::StrFormat("events.out.tfevents.%010d.%s%s", static_cast<int64_t>(now),
                                           options.host.empty() ? MachineName() : options.host,
                                           options.suffix.empty() ? absl::StrCat(".", getpid()) : options.suffix);
  const std::string path = FreePath(files, directory, name);
  ASSIGN_OR_RETURN(auto file, files.OpenForWriting(path));
  auto writer =
      std::unique_ptr<EventFileWriter>(new EventFileWriter(clock, path, options.flush_interval, std::move(file)));
  std::string event;
  protozero::pbf_writer encoder(event);
  encoder.add_double(kEventWallTime, now);
  encoder.add_string(kEventFileVersion, kFileVersion.data(), kFileVersion.size());
  MutexLock lock(writer->mutex_);
  RETURN_IF_ERROR(writer->Write(event));
  RETURN_IF_ERROR(writer->FlushLocked());
  return writer;
}

absl::Status EventFileWriter::AddScalar(std::string_view tag, float value, int64_t step) {
  const ScalarSummary scalar = {.tag = std::string(tag), .value = value};
  return AddScalars({&scalar, 1}, step);
}

absl::Status EventFileWriter::AddScalars(std::span<const ScalarSummary> scalars, int64_t step) {
  std::string summary;
  protozero::pbf_writer encoder(summary);
  for (const ScalarSummary& scalar : scalars) {
    protozero::pbf_writer value(encoder, kSummaryValue);
    value.add_string(kValueTag, scalar.tag);
    value.add_float(kValueSimpleValue, scalar.value);
  }
  return Add(kEventSummary, summary, step);
}

absl::Status EventFileWriter::AddHistogram(std::string_view tag, const ValueHistogram& histogram, int64_t step) {
  std::string summary;
  protozero::pbf_writer encoder(summary);
  {
    protozero::pbf_writer value(encoder, kSummaryValue);
    value.add_string(kValueTag, tag.data(), tag.size());
    protozero::pbf_writer message(value, kValueHistogram);
    message.add_double(kHistogramMin, histogram.min);
    message.add_double(kHistogramMax, histogram.max);
    message.add_double(kHistogramNum, histogram.num);
    message.add_double(kHistogramSum, histogram.sum);
    message.add_double(kHistogramSumSquares, histogram.sum_squares);
    message.add_packed_double(kHistogramLimits, histogram.bucket_limit.begin(), histogram.bucket_limit.end());
    message.add_packed_double(kHistogramCounts, histogram.bucket.begin(), histogram.bucket.end());
  }
  return Add(kEventSummary, summary, step);
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
  const absl::Time now = clock_.Now();
  std::string event;
  protozero::pbf_writer encoder(event);
  encoder.add_double(kEventWallTime, Seconds(now));
  encoder.add_int64(kEventStep, step);
  encoder.add_message(static_cast<protozero::pbf_tag_type>(field), message.data(), message.size());
  RETURN_IF_ERROR(Write(event));
  return now - last_flush_ >= flush_interval_ ? FlushLocked() : absl::OkStatus();
}

absl::Status EventFileWriter::Write(std::string_view event) {
  if (!status_.ok()) return status_;
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
  status_ = file_->Append(AsBytes(record.data(), record.size()));
  return status_;
}

absl::Status EventFileWriter::FlushLocked() {
  if (!status_.ok()) return status_;
  last_flush_ = clock_.Now();
  status_ = file_->Flush();
  return status_;
}

absl::Status EventFileWriter::Flush() {
  MutexLock lock(mutex_);
  return FlushLocked();
}

absl::Status EventFileWriter::Close() {
  MutexLock lock(mutex_);
  if (file_ == nullptr) return absl::OkStatus();
  absl::Status result = FlushLocked();
  result.Update(file_->Close());
  file_ = nullptr;
  status_ = absl::FailedPreconditionError(absl::StrCat(path_, " is closed: nothing can be added to it"));
  return result;
}

}  // namespace muster
