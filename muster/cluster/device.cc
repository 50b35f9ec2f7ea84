#include "muster/cluster/device.h"

#include <vector>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

constexpr char kAccepted[] = "; accepted: /job:NAME/replica:N/task:N/device:TYPE:N (N may be * for the device)";

absl::Status Bad(std::string_view text, const std::string& why) {
  return absl::InvalidArgumentError(absl::StrCat("device ", Quoted(text), ": ", why, kAccepted));
}

absl::StatusOr<int> ParseNumber(std::string_view text, const std::string& digits) {
  int number = 0;
  bool good = !digits.empty() && digits.size() <= 10;
  for (char c : digits) good = good && absl::ascii_isdigit(static_cast<unsigned char>(c));
  if (!good || !absl::SimpleAtoi(digits, &number)) return Bad(text, Quoted(digits) + " is not a number");
  return number;
}

// The device types that may be written without "device:" before them.
bool IsShortForm(const std::string& type) {
  for (const char* known : {"CPU", "GPU", "TPU", "CUSTOM", "EPU"}) {
    if (type == known) return true;
  }
  return false;
}

absl::Status SetDevice(std::string_view text, std::string type, const std::string& index, DeviceSpec& spec) {
  if (spec.device_type) return Bad(text, "two device types");
  if (type.empty()) return Bad(text, "an empty device type");
  spec.device_type = std::move(type);
  if (index != "*") {
    ASSIGN_OR_RETURN(spec.device_index, ParseNumber(text, index));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<DeviceSpec> DeviceSpec::Parse(std::string_view text) {
  DeviceSpec spec;
  std::vector<std::string> parts = absl::StrSplit(absl::string_view(text.data(), text.size()), '/', absl::SkipEmpty());
  for (const std::string& part : parts) {
    std::vector<std::string> fields = absl::StrSplit(part, ':');
    std::string upper = absl::AsciiStrToUpper(fields[0]);
    if (fields.size() == 2 && fields[0] == "job") {
      if (fields[1].empty()) return Bad(text, "an empty job");
      spec.job = fields[1];
    } else if (fields.size() == 2 && fields[0] == "replica") {
      ASSIGN_OR_RETURN(spec.replica, ParseNumber(text, fields[1]));
    } else if (fields.size() == 2 && fields[0] == "task") {
      ASSIGN_OR_RETURN(spec.task, ParseNumber(text, fields[1]));
    } else if (fields.size() <= 2 && IsShortForm(upper)) {
      RETURN_IF_ERROR(SetDevice(text, upper, fields.size() == 2 ? fields[1] : "*", spec));
    } else if (fields.size() == 3 && fields[0] == "device") {
      // Old programs write only these two in lower case; TensorFlow leaves other types as they are.
      bool old = fields[1] == "cpu" || fields[1] == "gpu";
      RETURN_IF_ERROR(SetDevice(text, old ? absl::AsciiStrToUpper(fields[1]) : fields[1], fields[2], spec));
    } else {
      return Bad(text, "unknown part " + Quoted(part));
    }
  }
  return spec;
}

std::string DeviceSpec::ToString() const {
  std::string text;
  if (job) absl::StrAppend(&text, "/job:", *job);
  if (replica) absl::StrAppend(&text, "/replica:", *replica);
  if (task) absl::StrAppend(&text, "/task:", *task);
  if (device_type) {
    absl::StrAppend(&text, "/device:", *device_type, ":");
    absl::StrAppend(&text, device_index ? absl::StrCat(*device_index) : "*");
  }
  return text;
}

DeviceSpec DeviceSpec::MergedWith(const DeviceSpec& inner) const {
  DeviceSpec merged = *this;
  if (inner.job) merged.job = inner.job;
  if (inner.replica) merged.replica = inner.replica;
  if (inner.task) merged.task = inner.task;
  if (inner.device_type) merged.device_type = inner.device_type;
  if (inner.device_index) merged.device_index = inner.device_index;
  return merged;
}

}  // namespace muster
