// For tests of hooks: calls one hook as a session would, without a session, and captures the log meanwhile.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_split.h"
#include "absl/strings/string_view.h"
#include "muster/base/log.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

class Driver {
 public:
  explicit Driver(std::shared_ptr<SessionHook> hook) : hook_(std::move(hook)) {}

  absl::Status Begin() { return hook_->Begin(); }
  absl::Status Create(int64_t step) { return hook_->AfterCreateSession(Context(step)); }
  // Makes one run that ends at global step `step`. Returns whether the hook requested a stop.
  bool Run(int64_t step, double loss = 0.5, std::vector<std::pair<std::string, double>> scalars = {}) {
    RunContext context(Context(step - 1));
    EXPECT_EQ(hook_->BeforeRun(context), absl::OkStatus());
    context.MoveTo(step, now);
    status = hook_->AfterRun(context, {.loss = loss, .global_step = step, .scalars = std::move(scalars)});
    return context.stop_requested();
  }
  absl::Status End(int64_t step) { return hook_->End(Context(step)); }

  SessionContext Context(int64_t step) const {
    return {.is_chief = is_chief,
            .now = now,
            .global_step = step,
            .summaries = summaries,
            .algorithm = algorithm,
            .files = files,
            .tracer = tracer};
  }

  static absl::Time StartTime() { return absl::FromUnixSeconds(5000); }
  absl::Time now = StartTime();
  bool is_chief = true;
  EventFileWriter* summaries = nullptr;
  Algorithm* algorithm = nullptr;
  FileSystem* files = nullptr;
  Tracer* tracer = nullptr;
  absl::Status status;  // of the last run

 private:
  const std::shared_ptr<SessionHook> hook_;
};

// Returns the lines logged while `action` runs, without their times.
template <typename Action>
std::vector<std::string> Logged(const Action& action) {
  testing::internal::CaptureStderr();
  SetUpLog("");
  action();
  const std::string text = testing::internal::GetCapturedStderr();
  std::vector<std::string> lines;
  for (absl::string_view line : absl::StrSplit(text, '\n', absl::SkipEmpty())) {
    // "02:03:04.567 I message"
    lines.emplace_back(line.substr(std::min(line.size(), line.find(' ') + 3)));
  }
  return lines;
}

}  // namespace muster
