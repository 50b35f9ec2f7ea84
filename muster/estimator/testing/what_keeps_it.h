// For tests of evaluations in the middle of a training: what the worker is told to do instead of training, as its
// heartbeats tell the ps.
#pragma once

#include <string>
#include <utility>
#include <vector>

#include "muster/estimator/model/input_fn.h"
#include "muster/store/client/store_client.h"
#include "muster/train/hook_api/session_hook.h"

namespace muster {

// A hook of the training.
class WhatKeepsIt final : public SessionHook {
 public:
  absl::Status AfterCreateSession(const SessionContext& session) override {
    progress_ = &session.client->progress();
    return absl::OkStatus();
  }
  // Returns `input` for evaluations during that training, which notes what keeps the worker when they begin.
  InputFn Watch(InputFn input) {
    return [this, input = std::move(input)](const InputContext& context) {
      seen.push_back(progress_->busy());
      return input(context);
    };
  }

  std::vector<std::string> seen;

 private:
  const WorkerProgress* progress_ = nullptr;
};

}  // namespace muster
