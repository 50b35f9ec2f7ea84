// The ps's side of an elastic exchange (EASGD: Zhang, Choromanska and LeCun, NIPS 2015, arXiv 1412.6651, equations 2
// and 3): a worker pushes its values θ, the ps moves the centre c by α (θ − c) and tells the worker by how much, so
// that it moves as far towards the centre. The answer is kept in the arena until the worker's next exchange: a retry,
// even after a restart of the ps, gets the same one. Used by the ps for one push at a time.
#pragma once

#include "muster/optim/gradient_change.h"
#include "muster/store/arena/arena.h"

namespace muster {

// Where a client's last answer about a slice lies. Only its own pushes write there.
MutableByteSpan ExchangeAnswer(const Arena& arena, int client, int slice);

// For the rule add: changes the gradient, which is θ, to the step of the centre.
class ElasticForce final : public GradientChange {
 public:
  // `answer`: where the answer for the pushed slice goes.
  ElasticForce(double alpha, MutableByteSpan answer) : alpha_(alpha), answer_(answer) {}

  void Change(const Block& block, MutableByteSpan into) const override;

 private:
  const double alpha_;
  const MutableByteSpan answer_;
};

}  // namespace muster
