// A worker's side of narrow precision on the wire: the memory in which gradients, narrowed, wait to be sent, and in
// which parameters arrive before they are widened into the model. Made when a model is bound; a step allocates nothing.
// For one push_pull at a time. Used by the training thread.
#pragma once

#include <vector>

#include "muster/store/model/wire_precision.h"

namespace muster {

class WireStaging {
 public:
  explicit WireStaging(const WireOptions& options) : options_(options) {}

  const WireOptions& options() const { return options_; }
  // Every later index is into `variables`.
  void Bind(const std::vector<VariableSpec>& variables);

  // What is sent for `piece`, which begins at byte `offset` of the gradient of that variable: itself, or its copy here,
  // which stays until the piece is asked for again.
  ByteSpan Outgoing(size_t variable, size_t offset, ByteSpan piece);
  // Where parameters for `piece` of the bound memory arrive: there, or here.
  MutableByteSpan Incoming(size_t variable, size_t offset, MutableByteSpan piece);
  // They have arrived.
  void TakeIn(size_t variable, size_t offset, MutableByteSpan piece);

  // Of what is pushed, finite gradients that would be sent as infinite.
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
