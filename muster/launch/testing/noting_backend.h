// For tests of code that decides: a Backend that starts nothing and notes which task was ended and how. Not
// thread-safe.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "muster/launch/backends/backend.h"

namespace muster {

class NotingBackend final : public Backend {
 public:
  absl::Status Start() override { return absl::OkStatus(); }
  int Stop() override { return 0; }
  void Reserve(const TaskId&, const std::vector<uint16_t>&) override {}
  void Launch(const ProcessSpec&) override {}
  void End(const TaskId& task, EndMode mode) override {
    ended_.push_back(task.ToString() + (mode == EndMode::kGently ? " gently" : " at once"));
  }
  void PauseOutput(bool) override {}
  void Input(const TaskId&, std::string_view) override {}
  absl::Time deadline() const override { return absl::InfiniteFuture(); }
  void OnTime() override {}

  // Returns what was noted since the last call: "chief:0 gently", "chief:0 at once".
  std::vector<std::string> Take() { return std::exchange(ended_, {}); }

 private:
  std::vector<std::string> ended_;
};

}  // namespace muster
