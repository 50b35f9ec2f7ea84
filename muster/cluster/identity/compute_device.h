// On which device of its host a task computes: the CPU, or one of the GPUs. What was asked for is compared with what
// there is, and replaced by the CPU where that was allowed (TensorFlow's soft placement). Pure functions and plain
// values, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// Where a task computes unless somebody says otherwise: on the CPU.
struct ComputeDevice {
  bool gpu = false;
  int index = 0;  // among those that the session may use; 0 of the CPU

  // "cpu", "cuda", "cuda:1" as torch writes them, "/cpu:0", "/gpu:1", "/device:GPU:1" as TensorFlow does. No number, or
  // "*": 0. InvalidArgument, naming the text and what is accepted: another type, a job or task, a second CPU.
  static absl::StatusOr<ComputeDevice> Parse(std::string_view text);

  // "cpu" or "cuda:1".
  std::string ToString() const;
  // "/device:GPU:1".
  std::string ToDevice() const;

  bool operator==(const ComputeDevice&) const = default;
};

// "3,1" -> {3, 1}; "" is empty. InvalidArgument: what isn't a number, or is there twice.
absl::StatusOr<std::vector<int>> ParseGpuList(std::string_view visible_device_list);

struct PlacedComputation {
  ComputeDevice device;
  int gpu = 0;         // the host's number of device.index
  std::string notice;  // for the log, if it isn't what was asked for; empty otherwise
};

// `gpus` is how many the host (or its libtorch) has. NotFound: there is no such device and `soft` is false; the message
// names those that there are. InvalidArgument: a list that names GPUs beside those of the host, which soft placement
// doesn't forgive either; without any GPU the list means nothing. Both are IsWrongConfiguration.
absl::StatusOr<PlacedComputation> PlaceComputation(const ComputeDevice& asked, int gpus,
                                                   std::string_view visible_device_list, bool soft);

}  // namespace muster
