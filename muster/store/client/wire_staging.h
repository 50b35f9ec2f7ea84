// A worker's memory for narrow precision on the wire: narrowed gradients wait here to be sent, and parameters arrive
// here before they are widened into the model. Allocated when a model is bound, and not in a step. For one push_pull at
// a time. Used by the training thread.
#pragma once

#include <vector>

#include "muster/store/model/wire_precision.h"

namespace muster {

class WireStaging {
 public:
  explicit WireStaging(const WireOptions& options) : options_(options) {}

  const WireOptions& options() const { return options_; }
  // Later indices refer to `variables`.
  void Bind(const std::vector<VariableSpec>& variables);

  // Returns what to send for `piece`, which begins at byte `offset` of the variable's gradient: itself, or its narrowed
  // copy, which stays valid until the piece is requested again.
  ByteSpan Outgoing(size_t variable, size_t offset, ByteSpan piece);
  // Returns where parameters for `piece` of the bound memory arrive: there, or here.
  MutableByteSpan Incoming(size_t variable, size_t offset, MutableByteSpan piece);
  // Call it when they have arrived.
  void TakeIn(size_t variable, size_t offset, MutableByteSpan piece);

  // Whether finite gradients would be sent as infinite.
  bool Overflows(size_t variable, ByteSpan gradient, double sum_of_squares) const;

 private:
  struct Staged {
    WireForm gradient;
    WireForm parameters;
    std::vector<std::byte> outgoing;  // empty: sent as it is
    std::vector<std::byte> incoming;
  };

  const WireOptions options_;
  std::vector<Staged> variables_;
};

}  // namespace muster
