// Where gradients come from, as the algorithms see it: a model whose variables live in plain memory and that can
// compute one minibatch. torch_bridge implements it for torch modules; tests implement it in ten lines. Not
// thread-safe: used by the training thread only.
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

// Gradients of rows of variable `variable`, a table of rows.
struct TableGradient {
  size_t variable = 0;
  RowsIn rows;
};

class GradientSource {
 public:
  virtual ~GradientSource() = default;

  // In order of creation; fixed for the source's life. Aliases (tied weights) appear once, under the first name.
  virtual const std::vector<VariableSpec>& variables() const = 0;

  // The memory of variable i, variables()[i].bytes() long, row-major; empty for a table of rows. Pulls write here; the
  // address changes with UseMemory only.
  virtual MutableByteSpan value(size_t i) = 0;

  // Moves variable i: from now on value(i) is `memory`, of the same length, which `owner` keeps there, with what it
  // holds. Others may change it at any time. False: this source can't, and everything is as before.
  virtual bool UseMemory(size_t i, MutableByteSpan memory, std::shared_ptr<void> owner) {
    static_cast<void>(i), static_cast<void>(memory), static_cast<void>(owner);
    return false;
  }

  // Of a model that computes on a copy of its values (on a GPU): the copy becomes what value(i) holds now, for who
  // looks at the model between two minibatches. ComputeGradients does so by itself.
  [[nodiscard]] virtual absl::Status ShowValues() { return absl::OkStatus(); }

  // Runs forward and backward for one minibatch and returns the loss. Errors: what the user's function threw.
  virtual absl::StatusOr<double> ComputeGradients() = 0;

  // From now on called in mid-ComputeGradients, on its thread, once gradient(i) is final and nobody reads value(i) any
  // more in this minibatch: the gradient may be sent, and the value may be overwritten. At most once a minibatch and
  // variable; what hasn't been announced is final when ComputeGradients returns. Must not throw. Empty: no calls.
  using GradientReady = std::function<void(size_t i)>;
  virtual void AnnounceGradients(GradientReady ready) { static_cast<void>(ready); }

  // The gradient of variable i, same type and size as value(i), valid until the next ComputeGradients; empty if the
  // variable isn't trainable or had no part in the last minibatch.
  virtual ByteSpan gradient(size_t i) = 0;

  // The memory of gradient(i), which may be overwritten until the next ComputeGradients; empty: it may not.
  virtual MutableByteSpan OverwritableGradient(size_t i) {
    static_cast<void>(i);
    return {};
  }

  // The memory that gradient(i) gives now stays as it is until the next call of this. False: it doesn't.
  virtual bool KeepGradients() { return false; }

  // The reverse of ShowValues: what the program itself has made of the model becomes value(i).
  [[nodiscard]] virtual absl::Status TakeValues() { return absl::OkStatus(); }

  // Where the rows of tables (variables of kind kRows) that a minibatch needs are looked up from now on; empty:
  // nowhere.
  using LookUp = std::function<absl::Status(size_t variable, const RowsOut& rows)>;
  virtual void LookUpThrough(LookUp look_up) { static_cast<void>(look_up); }

  // Gradients of rows that the last minibatch has looked up, at most one entry a table. Valid until the next
  // ComputeGradients.
  virtual std::span<const TableGradient> row_gradients() { return {}; }
};

}  // namespace muster
