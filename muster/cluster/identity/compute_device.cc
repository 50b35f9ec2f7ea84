#include "muster/cluster/identity/compute_device.h"

#include <algorithm>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_split.h"
#include "muster/base/status_macros.h"
#include "muster/base/wrong_configuration.h"
#include "muster/cluster/device.h"
#include "muster/cluster/quoted.h"

namespace muster {
namespace {

absl::Status NotAComputeDevice(std::string_view text, const std::string& why) {
  return absl::InvalidArgumentError(
      absl::StrCat("device ", Quoted(text), ": ", why, "; accepted: cpu, cuda, cuda:N, /cpu:0, /gpu:N, /device:GPU:N"));
}

// Translates torch's names into TensorFlow's: "cuda:1" is "GPU:1".
std::string InTensorFlowsWords(std::string_view text) {
  std::string words = absl::AsciiStrToUpper(absl::string_view(text.data(), text.size()));
  if (words.substr(0, 4) == "CUDA") words = "GPU" + words.substr(4);
  if (words == "CPU" || words == "GPU") words += ":0";
  return words;
}

std::string DevicesThereAre(size_t gpus) {
  std::string there = "cpu";
  for (size_t i = 0; i < gpus; ++i) absl::StrAppend(&there, ", cuda:", i);
  return there;
}

}  // namespace

absl::StatusOr<ComputeDevice> ComputeDevice::Parse(std::string_view text) {
  const bool torchs = text.find('/') == std::string_view::npos;
  absl::StatusOr<DeviceSpec> spec = DeviceSpec::Parse(torchs ? InTensorFlowsWords(text) : std::string(text));
  if (!spec.ok() || !spec->device_type) return NotAComputeDevice(text, "not a device of a host");
  if (spec->job || spec->replica || spec->task) return NotAComputeDevice(text, "a task computes on its own host");
  const std::string type = absl::AsciiStrToUpper(*spec->device_type);
  const int index = spec->device_index.value_or(0);
  if (type == "GPU") return ComputeDevice{true, index};
  if (type != "CPU") return NotAComputeDevice(text, "not a device that tasks compute on");
  if (index != 0) return NotAComputeDevice(text, "a host's cores are one device");
  return ComputeDevice();
}

std::string ComputeDevice::ToString() const { return gpu ? absl::StrCat("cuda:", index) : "cpu"; }

std::string ComputeDevice::ToDevice() const { return absl::StrCat("/device:", gpu ? "GPU:" : "CPU:", index); }

absl::StatusOr<std::vector<int>> ParseGpuList(std::string_view visible_device_list) {
  std::vector<int> gpus;
  if (visible_device_list.empty()) return gpus;
  const auto bad = [&](const std::string& why) {
    return absl::InvalidArgumentError(absl::StrCat("gpu_options.visible_device_list ", Quoted(visible_device_list),
                                                   ": ", why, "; accepted: numbers of GPUs, each once, such as 0,2"));
  };
  for (const absl::string_view entry :
       absl::StrSplit(absl::string_view(visible_device_list.data(), visible_device_list.size()), ',')) {
    const std::string number(absl::StripAsciiWhitespace(entry));
    bool digits = !number.empty();
    for (char c : number) digits = digits && absl::ascii_isdigit(static_cast<unsigned char>(c));
    int gpu = 0;
    if (!digits || !absl::SimpleAtoi(number, &gpu)) return bad(Quoted(number) + " is not a number");
    if (std::find(gpus.begin(), gpus.end(), gpu) != gpus.end()) return bad(number + " is there twice");
    gpus.push_back(gpu);
  }
  return gpus;
}

absl::StatusOr<PlacedComputation> PlaceComputation(const ComputeDevice& asked, int gpus,
                                                   std::string_view visible_device_list, bool soft) {
  ASSIGN_OR_RETURN(std::vector<int> visible, ParseGpuList(visible_device_list));
  if (gpus == 0) visible.clear();
  for (const int gpu : visible)
    if (gpu >= gpus)
      return AsWrongConfiguration(
          absl::InvalidArgumentError(absl::StrCat("gpu_options.visible_device_list ", Quoted(visible_device_list),
                                                  ": there is no GPU ", gpu, "; accepted: 0 to ", gpus - 1)));
  const size_t usable = visible.empty() ? gpus : visible.size();
  if (!asked.gpu) return PlacedComputation{};
  if (static_cast<size_t>(asked.index) < usable)
    return PlacedComputation{asked, visible.empty() ? asked.index : visible[asked.index], ""};
  const std::string missing = absl::StrCat("there is no device ", asked.ToString(), " here");
  if (!soft)
    return AsWrongConfiguration(absl::NotFoundError(
        absl::StrCat(missing, "; there is: ", DevicesThereAre(usable),
                     ". Give --device one of these, or the session's config allow_soft_placement, which takes the CPU "
                     "instead")));
  return PlacedComputation{
      {}, 0, absl::StrCat(missing, " (there is: ", DevicesThereAre(usable), "): computing on the CPU instead")};
}

}  // namespace muster
