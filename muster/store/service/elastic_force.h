// The ps's side of an elastic exchange (EASGD: Zhang, Choromanska and LeCun, NIPS 2015, arXiv 1412.6651, equations 2
// and 3): a worker pushes its values θ, the centre c is moved by α (θ − c), and the worker is told by how much, so that
// it moves as far towards the centre. What it is told is kept in the arena until its next exchange: a retry, also after
// a restart of the ps, gets the same answer. Used by the ps for one push at a time.
#pragma once

#include "muster/optim/gradient_change.h"
#include "muster/store/arena/arena.h"

namespace muster {

// Where a client's last answer about a slice lies. Only its own pushes write there.
MutableByteSpan ExchangeAnswer(const Arena& arena, int client, int slice);

// For the rule add: the gradient is θ, what becomes of it the step of the centre.
class ElasticForce final : public GradientChange {
 public:
  // `answer`: of the slice that is pushed.
  ElasticForce(double alpha, MutableByteSpan answer) : alpha_(alpha), answer_(answer) {}

  void Change(const Block& block, MutableByteSpan into) const override;

 private:
  const double alpha_;
  const MutableByteSpan answer_;
};

}  // namespace muster
