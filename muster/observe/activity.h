// What a thread of a task may be doing: the rows of the step-time table and the names of events in a trace. A fixed
// set, so that an event is a few plain numbers.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>

namespace muster {

enum class Activity : uint8_t {
  kStep,        // as a whole: a worker's minibatch, or a push or pull on a ps
  kCompute,     // forward and backward
  kPush,        // handing gradients to the transport, until the last byte is sent; or publishing them in the arena
  kWait,        // for the ps, for other workers, for the cut of a checkpoint
  kApply,       // changing variables: on the ps, or in its arena
  kPull,        // receiving or copying values
  kReduce,      // an all-reduce of gradients, including waiting for the others
  kHooks,       // before_run and after_run
  kCheckpoint,  // saving a checkpoint, or writing a part of it
  kAnswer,      // a ps hands a reply to the transport
};
inline constexpr size_t kActivities = 10;

inline constexpr std::array<const char*, kActivities> kActivityNames = {
    "step", "compute", "push", "wait", "apply", "pull", "reduce", "hooks", "checkpoint", "answer"};

inline const char* ActivityName(Activity activity) { return kActivityNames[static_cast<size_t>(activity)]; }

}  // namespace muster
