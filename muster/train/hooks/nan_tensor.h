// Ends a training that has diverged, with the semantics of TensorFlow's NanTensorHook. Used by one session's training
// thread.
#pragma once

#include <memory>
#include <string>

#include "muster/train/hook_api/session_hook.h"

namespace muster {

// A loss that isn't a number: an error (OutOfRange would be a clean end, so Internal: "NaN loss during training."), or
// a stop without one.
struct NanTensorOptions {
  std::string tensor = "loss";  // as in LoggingTensor; a run without it is InvalidArgument
  bool fail_on_nan_loss = true;
};
std::shared_ptr<SessionHook> NanTensor(const NanTensorOptions& options = {});

}  // namespace muster
