// The device on which a task computes: its host's CPU or one of the host's GPUs. The requested device is compared with
// the available ones, and replaced by the CPU if soft placement (as TensorFlow has it) allows that. Pure functions and
// plain values, thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "absl/status/statusor.h"

namespace muster {

// The device of a task. The default is the CPU.
struct ComputeDevice {
  bool gpu = false;
  int index = 0;  // among those that the session may use; 0 for the CPU

  // Accepts "cpu", "cuda", "cuda:1" as torch writes them, and "/cpu:0", "/gpu:1", "/device:GPU:1" as TensorFlow does. A
  // missing number or "*" means 0. InvalidArgument names the text and what is accepted; it refuses another type, a job
  // or task, and a second CPU.
  static absl::StatusOr<ComputeDevice> Parse(std::string_view text);

  // Returns "cpu" or "cuda:1".
  std::string ToString() const;
  // Returns "/device:GPU:1".
  std::string ToDevice() const;

  bool operator==(const ComputeDevice&) const = default;
};

// Parses "3,1" into {3, 1}, and "" into an empty list. InvalidArgument: an entry isn't a number, or occurs twice.
absl::StatusOr<std::vector<int>> ParseGpuList(std::string_view visible_device_list);

struct PlacedComputation {
  ComputeDevice device;
  int gpu = 0;         // device.index as a number among the host's GPUs
  std::string notice;  // log line if it isn't the requested device; otherwise empty
};

// `gpus` is how many GPUs the host (or its libtorch) has. NotFound: the device doesn't exist and `soft` is false; the
// message names the available ones. InvalidArgument: the list names GPUs that the host lacks, which soft placement
// doesn't forgive either; on a host without GPUs the list has no meaning. Both errors are IsWrongConfiguration.
absl::StatusOr<PlacedComputation> PlaceComputation(const ComputeDevice& asked, int gpus,
                                                   std::string_view visible_device_list, bool soft);

}  // namespace muster
