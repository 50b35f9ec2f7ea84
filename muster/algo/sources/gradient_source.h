// A source of gradients, as the algorithms see it: a model whose variables live in plain memory and that can compute
// one minibatch. torch_bridge implements it for torch modules; tests implement it in ten lines. Not thread-safe: used
// by the training thread only.
#pragma once

#include <functional>
#include <memory>
#include <span>
#include <vector>

#include "absl/status/statusor.h"
#include "muster/base/bytes.h"
#include "muster/cluster/placement/variable_spec.h"
#include "muster/store/model/rows.h"

namespace muster {

// Gradients of some rows of the table `variable`.
struct TableGradient {
  size_t variable = 0;
  RowsIn rows;
};

class GradientSource {
 public:
  virtual ~GradientSource() = default;

  // In order of creation; fixed for the source's life. Aliases (tied weights) appear once, under the first name.
  virtual const std::vector<VariableSpec>& variables() const = 0;

  // Returns the memory of variable i, variables()[i].bytes() long, row-major; empty for a table of rows. Pulls write to
  // it. Only UseMemory changes the address.
  virtual MutableByteSpan value(size_t i) = 0;

  // Moves variable i, with its values, to `memory`, which has the same length and which `owner` keeps alive. value(i)
  // is that memory from now on, and others may change it at any time. False: this source can't, and nothing has
  // changed.
  virtual bool UseMemory(size_t i, MutableByteSpan memory, std::shared_ptr<void> owner) {
    static_cast<void>(i), static_cast<void>(memory), static_cast<void>(owner);
    return false;
  }

  // For a model that computes on a copy of its values (on a GPU): copies value(i) to it, so that a reader sees the
  // current model between two minibatches. ComputeGradients does this automatically.
  [[nodiscard]] virtual absl::Status ShowValues() { return absl::OkStatus(); }

  // Runs forward and backward for one minibatch and returns the loss. Errors: whatever the user's function threw.
  virtual absl::StatusOr<double> ComputeGradients() = 0;

  // Sets a callback that ComputeGradients calls on its own thread, once gradient(i) is final and value(i) is no longer
  // read in this minibatch: the gradient may be sent and the value overwritten. Called at most once per minibatch and
  // variable; gradients not announced are final when ComputeGradients returns. Must not throw. Empty: no calls.
  using GradientReady = std::function<void(size_t i)>;
  virtual void AnnounceGradients(GradientReady ready) { static_cast<void>(ready); }

  // Returns the gradient of variable i, with the type and size of value(i), valid until the next ComputeGradients.
  // Empty if the variable isn't trainable or the last minibatch didn't use it.
  virtual ByteSpan gradient(size_t i) = 0;

  // Returns the memory of gradient(i) if it may be overwritten until the next ComputeGradients; else empty.
  virtual MutableByteSpan OverwritableGradient(size_t i) {
    static_cast<void>(i);
    return {};
  }

  // Keeps the memory that gradient(i) returns now unchanged until the next call of this. False: this source can't.
  virtual bool KeepGradients() { return false; }

  // Reverses ShowValues: copies what the program has changed in the model to value(i).
  [[nodiscard]] virtual absl::Status TakeValues() { return absl::OkStatus(); }

  // Sets the function that looks up the rows of tables (variables of kind kRows) that a minibatch needs. Empty: none.
  using LookUp = std::function<absl::Status(size_t variable, const RowsOut& rows)>;
  virtual void LookUpThrough(LookUp look_up) { static_cast<void>(look_up); }

  // Returns the gradients of the rows that the last minibatch looked up, at most one entry per table. Valid until the
  // next ComputeGradients.
  virtual std::span<const TableGradient> row_gradients() { return {}; }
};

}  // namespace muster
