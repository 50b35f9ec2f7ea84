#include "muster/summary/event_file_reader.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <optional>
#include <protozero/pbf_reader.hpp>

#include "absl/strings/str_cat.h"
#include "muster/base/crc32c.h"
#include "muster/base/status_macros.h"
#include "muster/summary/shared_fields.h"

namespace muster {
namespace event_reader {  // the writers of this layer have fields of the same names, without the type
namespace {

static_assert(std::endian::native == std::endian::little, "records are framed with little-endian numbers");

using protozero::pbf_wire_type;

// A field's number and encoding: the reader skips fields that have the number in another encoding.
constexpr uint32_t Field(protozero::pbf_tag_type number, pbf_wire_type type) {
  return protozero::tag_and_type(number, type);
}

// Field numbers of tensorflow/core/util/event.proto and core/framework/{summary,tensor,types}.proto.
constexpr uint32_t kEventWallTime = Field(1, pbf_wire_type::fixed64);
constexpr uint32_t kEventStep = Field(2, pbf_wire_type::varint);
constexpr uint32_t kEventFileVersion = Field(3, pbf_wire_type::length_delimited);
constexpr uint32_t kEventSummary = Field(5, pbf_wire_type::length_delimited);
constexpr uint32_t kEventSessionLog = Field(7, pbf_wire_type::length_delimited);
constexpr uint32_t kSessionLogStatus = Field(1, pbf_wire_type::varint);
constexpr uint32_t kSessionLogCheckpointPath = Field(2, pbf_wire_type::length_delimited);
constexpr uint32_t kSummaryValue = Field(1, pbf_wire_type::length_delimited);
constexpr uint32_t kValueTag = Field(1, pbf_wire_type::length_delimited);
constexpr uint32_t kValueSimpleValue = Field(2, pbf_wire_type::fixed32);
constexpr uint32_t kValueHisto = Field(5, pbf_wire_type::length_delimited);
constexpr uint32_t kValueTensor = Field(8, pbf_wire_type::length_delimited);
constexpr uint32_t kHistoNum = Field(3, pbf_wire_type::fixed64);
constexpr uint32_t kTensorDtype = Field(1, pbf_wire_type::varint);
constexpr uint32_t kTensorShape = Field(2, pbf_wire_type::length_delimited);
constexpr uint32_t kTensorContent = Field(4, pbf_wire_type::length_delimited);
constexpr uint32_t kTensorFloatVal = Field(5, pbf_wire_type::fixed32);
constexpr uint32_t kTensorPackedFloatVal = Field(5, pbf_wire_type::length_delimited);
constexpr uint32_t kTensorDoubleVal = Field(6, pbf_wire_type::fixed64);
constexpr uint32_t kTensorPackedDoubleVal = Field(6, pbf_wire_type::length_delimited);
constexpr int32_t kDtFloat = 1;
constexpr int32_t kDtDouble = 2;

constexpr size_t kHeaderBytes = 12;  // length and its checksum
constexpr size_t kChecksumBytes = 4;
// No record is longer: protobuf limits a message to 2 GiB.
constexpr uint64_t kMostRecordBytes = uint64_t{2} << 30;
constexpr size_t kBlockBytes = 4 << 20;

enum class RecordState { kWhole, kCut, kBroken };

struct Record {
  RecordState state = RecordState::kCut;
  size_t bytes = kHeaderBytes;  // of the record; kCut: at least this many are needed
  std::string_view event;       // kWhole
};

// True if the four bytes at `stored` are the masked checksum of `data`.
bool HasChecksum(std::string_view data, const char* stored) {
  uint32_t checksum = 0;
  std::memcpy(&checksum, stored, sizeof checksum);
  return checksum == MaskedCrc32c(AsBytes(data.data(), data.size()));
}

Record FirstRecord(std::string_view bytes) {
  if (bytes.size() < kHeaderBytes) return {};
  uint64_t length = 0;
  std::memcpy(&length, bytes.data(), sizeof length);
  if (!HasChecksum(bytes.substr(0, sizeof length), bytes.data() + sizeof length) || length > kMostRecordBytes)
    return {.state = RecordState::kBroken};
  const size_t whole = kHeaderBytes + length + kChecksumBytes;
  if (bytes.size() < whole) return {.state = RecordState::kCut, .bytes = whole};
  const std::string_view event = bytes.substr(kHeaderBytes, length);
  if (!HasChecksum(event, bytes.data() + kHeaderBytes + length)) return {.state = RecordState::kBroken};
  return {.state = RecordState::kWhole, .bytes = whole, .event = event};
}

double HistogramValues(protozero::pbf_reader histogram) {
  double num = 0;
  while (histogram.next()) {
    if (histogram.tag_and_type() == kHistoNum) {
      num = histogram.get_double();
    } else {
      histogram.skip();
    }
  }
  return num;
}

// Reads the number from packed bytes, as in tensor_content and packed fields; nullopt unless there is exactly one.
template <typename T>
std::optional<double> OnlyNumber(const std::string& bytes) {
  T number = 0;
  if (bytes.size() != sizeof number) return std::nullopt;
  std::memcpy(&number, bytes.data(), sizeof number);
  return static_cast<double>(number);
}

// Returns the value of a float or double tensor without dimensions.
std::optional<double> ScalarOf(protozero::pbf_reader tensor) {
  int32_t dtype = 0;
  bool has_dimensions = false;
  std::string content;
  std::optional<double> as_float, as_double;
  while (tensor.next()) {
    switch (tensor.tag_and_type()) {
      case kTensorDtype:
        dtype = tensor.get_enum();
        break;
      case kTensorShape:
        has_dimensions |= tensor.get_message().next(kShapeDim);
        break;
      case kTensorContent:
        content = tensor.get_bytes();
        break;
      case kTensorFloatVal:
        as_float = static_cast<double>(tensor.get_float());
        break;
      case kTensorPackedFloatVal:
        as_float = OnlyNumber<float>(tensor.get_bytes());
        break;
      case kTensorDoubleVal:
        as_double = tensor.get_double();
        break;
      case kTensorPackedDoubleVal:
        as_double = OnlyNumber<double>(tensor.get_bytes());
        break;
      default:
        tensor.skip();
    }
  }
  if (has_dimensions) return std::nullopt;
  if (dtype == kDtFloat) return content.empty() ? as_float : OnlyNumber<float>(content);
  if (dtype == kDtDouble) return content.empty() ? as_double : OnlyNumber<double>(content);
  return std::nullopt;
}

void ReadValue(protozero::pbf_reader value, SummaryEvent& event) {
  std::string tag;
  std::optional<double> scalar, histogram;
  while (value.next()) {
    switch (value.tag_and_type()) {
      case kValueTag:
        tag = value.get_string();
        break;
      case kValueSimpleValue:
        scalar = static_cast<double>(value.get_float());
        break;
      case kValueTensor:
        scalar = ScalarOf(value.get_message());
        break;
      case kValueHisto:
        histogram = HistogramValues(value.get_message());
        break;
      default:
        value.skip();
    }
  }
  if (histogram.has_value()) {
    event.histograms.emplace_back(std::move(tag), *histogram);
  } else if (scalar.has_value()) {
    event.scalars.emplace_back(std::move(tag), *scalar);
  }
}

void ReadSummary(protozero::pbf_reader summary, SummaryEvent& event) {
  while (summary.next()) {
    if (summary.tag_and_type() == kSummaryValue) {
      ReadValue(summary.get_message(), event);
    } else {
      summary.skip();
    }
  }
}

void ReadSessionLog(protozero::pbf_reader log, SummaryEvent& event) {
  while (log.next()) {
    if (log.tag_and_type() == kSessionLogStatus) {
      event.session_status = log.get_enum();
    } else if (log.tag_and_type() == kSessionLogCheckpointPath) {
      event.checkpoint_path = log.get_string();
    } else {
      log.skip();
    }
  }
}

// Nullopt: the event only states the format's version. Throws protozero::exception if the bytes aren't an Event.
std::optional<SummaryEvent> EventOf(std::string_view bytes) {
  SummaryEvent event;
  bool is_version = false;
  for (protozero::pbf_reader fields(bytes.data(), bytes.size()); fields.next();) {
    switch (fields.tag_and_type()) {
      case kEventWallTime:
        event.wall_time = fields.get_double();
        break;
      case kEventStep:
        event.step = fields.get_int64();
        break;
      case kEventFileVersion:
        is_version = true;
        fields.skip();
        break;
      case kEventSummary:
        ReadSummary(fields.get_message(), event);
        break;
      case kEventSessionLog:
        ReadSessionLog(fields.get_message(), event);
        break;
      default:
        fields.skip();
    }
  }
  if (is_version) return std::nullopt;
  return event;
}

// Removes the whole records at the beginning of `bytes`. Returns what follows: the beginning of a record, or nothing.
Record TakeRecords(std::string_view& bytes, const std::function<void(const SummaryEvent& event)>& take) {
  Record record = FirstRecord(bytes);
  for (; record.state == RecordState::kWhole; record = FirstRecord(bytes)) {
    std::optional<SummaryEvent> event;
    try {
      event = EventOf(record.event);
    } catch (const protozero::exception&) {
      return {.state = RecordState::kBroken};
    }
    if (event.has_value()) take(*event);
    bytes.remove_prefix(record.bytes);
  }
  return record;
}

}  // namespace
}  // namespace event_reader

std::string SummaryEvent::ToString() const {
  constexpr std::array<const char*, 4> kStatuses = {"", " START", " STOP", " CHECKPOINT "};
  std::string text = absl::StrCat(step, ":");
  for (const auto& [tag, value] : scalars) absl::StrAppend(&text, " ", tag, "=", value);
  for (const auto& [tag, values] : histograms) absl::StrAppend(&text, " ", tag, " of ", values);
  const bool known = session_status >= 0 && static_cast<size_t>(session_status) < kStatuses.size();
  return absl::StrCat(text, known ? kStatuses.at(static_cast<size_t>(session_status)) : " STATUS ", checkpoint_path);
}

std::vector<SummaryEvent> ReadEventFile(std::string_view bytes) {
  std::vector<SummaryEvent> events;
  event_reader::TakeRecords(bytes, [&events](const SummaryEvent& event) { events.push_back(event); });
  return events;
}

absl::Status ReadEventFile(FileSystem& files, const std::string& path,
                           const std::function<void(const SummaryEvent& event)>& take) {
  ASSIGN_OR_RETURN(const uint64_t size, files.FileSize(path));
  std::string buffer;
  for (uint64_t read = 0; read < size;) {
    std::string_view rest = buffer;
    const event_reader::Record next = event_reader::TakeRecords(rest, take);
    buffer.erase(0, buffer.size() - rest.size());
    if (next.state == event_reader::RecordState::kBroken || next.bytes > buffer.size() + (size - read))
      return absl::OkStatus();
    const size_t begin = buffer.size();
    buffer.resize(begin + std::min<uint64_t>(size - read, std::max(event_reader::kBlockBytes, next.bytes - begin)));
    RETURN_IF_ERROR(files.ReadAt(path, read, AsMutableBytes(buffer.data() + begin, buffer.size() - begin)));
    read += buffer.size() - begin;
  }
  std::string_view rest = buffer;
  event_reader::TakeRecords(rest, take);
  return absl::OkStatus();
}

bool IsEventFileName(std::string_view name) { return name.find("tfevents") != std::string_view::npos; }

std::vector<SummaryEvent> ReadEventFiles(FileSystem& files, const std::string& directory) {
  std::vector<SummaryEvent> events;
  for (const std::string& name : files.ListDirectory(directory).value_or(std::vector<std::string>())) {
    if (!IsEventFileName(name)) continue;
    for (SummaryEvent& event : ReadEventFile(files.ReadFile(JoinPath(directory, name)).value_or("")))
      events.push_back(std::move(event));
  }
  return events;
}

}  // namespace muster
