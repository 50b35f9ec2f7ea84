#include "muster/store/client/wire_staging.h"

#include <utility>

namespace muster {

void WireStaging::Bind(const std::vector<VariableSpec>& variables) {
  variables_.clear();
  for (const VariableSpec& variable : variables) {
    Staged staged{WireForm(options_.gradients, variable), WireForm(options_.parameters, variable), {}, {}};
    if (staged.gradient.narrow()) staged.outgoing.resize(staged.gradient.bytes(variable.bytes()));
    if (staged.parameters.narrow()) staged.incoming.resize(staged.parameters.bytes(variable.bytes()));
    variables_.push_back(std::move(staged));
  }
}

ByteSpan WireStaging::Outgoing(size_t variable, size_t offset, ByteSpan piece) {
  Staged& staged = variables_[variable];
  if (!staged.gradient.narrow()) return piece;
  const MutableByteSpan copy = staged.gradient.Part(MutableByteSpan(staged.outgoing), offset, piece.size());
  staged.gradient.Write(piece, copy);
  return copy;
}

MutableByteSpan WireStaging::Incoming(size_t variable, size_t offset, MutableByteSpan piece) {
  Staged& staged = variables_[variable];
  if (!staged.parameters.narrow()) return piece;
  return staged.parameters.Part(MutableByteSpan(staged.incoming), offset, piece.size());
}

void WireStaging::TakeIn(size_t variable, size_t offset, MutableByteSpan piece) {
  Staged& staged = variables_[variable];
  if (staged.parameters.narrow())
    staged.parameters.Read(staged.parameters.Part(ByteSpan(staged.incoming), offset, piece.size()), piece);
}

bool WireStaging::Overflows(size_t variable, ByteSpan gradient, double sum_of_squares) const {
  return variables_[variable].gradient.Overflows(gradient, sum_of_squares);
}

}  // namespace muster
