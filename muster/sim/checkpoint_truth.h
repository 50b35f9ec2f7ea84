// What the checkpoints of a simulated run must hold: at which steps all ps were cut, which pushes ps 0 had counted by
// then, and, with a synchronous gate, how many rounds had changed each ps. Filled by StoreWatch. Used by the thread
// whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "muster/sim/push_ledger.h"

namespace muster {

class CheckpointTruth {
 public:
  explicit CheckpointTruth(const PushLedger& ledger) : ledger_(ledger) {}

  // Of ps 0. `numbers`: by worker, that of its last push that was counted.
  struct Counted {
    int64_t global_step = 0;
    int64_t minibatches = 0;
    std::vector<uint64_t> numbers;
  };
  using Rows = std::array<PushLedger::Row, PushLedger::kVariables>;
  // A ps holds other values from now on, which the ledger knows of; `rows`: what all rows of a variable have there. Of
  // each ps by itself: a push whose sender died may be on some of them, and in the checkpoint that they began with.
  void SetBegun(int ps, const Rows& rows);
  // ps 0 does.
  void Begin(const Counted& counted);
  // The numbers now, and the lives of the workers: whose number has changed, of him the push of that number has been
  // counted.
  void Count(const std::vector<uint64_t>& numbers, const std::vector<uint64_t>& lives);
  // What ps 0 has counted must have been made of so many.
  int64_t minibatches() const { return pasts_.back().minibatches; }
  // With a gate: ps `ps` has such shares in every row when `round` begins.
  void SetTotal(int ps, uint64_t round, uint64_t total);
  // A ps has answered a mark. `hold`: incarnation and number.
  using Hold = std::pair<uint64_t, uint64_t>;
  struct Marked {
    int64_t global_step = 0;  // ps 0, with a gate
    uint64_t round = 0;       // of this ps, with a gate
    bool ended = false;       // training was over there: no round fires any more
    uint64_t absent = 0;      // workers that were not waited for, a bit each
    uint64_t missing = 0;     // … whose newest push is not here
    // ps 0: life and number of those whose newest push is here, and not counted yet.
    std::vector<std::pair<uint64_t, uint64_t>> uncounted;
  };
  void Mark(Hold hold, int ps, const Marked& marked);

  // What is wrong with these rows of a variable in a checkpoint of that step; `ps_of_row`: who held each.
  std::optional<std::string> Check(int64_t global_step, int variable, const std::vector<PushLedger::Digits>& digits,
                                   const std::vector<PushLedger::Row>& rows, const std::vector<int>& ps_of_row) const;

 private:
  // What ps 0 held from one Begin to the next.
  struct Past {
    int64_t first_step = 0;
    int64_t minibatches = 0;
    std::vector<PushLedger::Push> counted;  // [i]: by step first_step + i + 1
  };
  struct Cut {
    size_t past = 0;
    size_t counted = 0;                       // of that past
    std::vector<PushLedger::Push> uncounted;  // on ps 0
    int64_t global_step = 0;
    uint64_t absent = 0;
    uint64_t missing = 0;
    bool ended = false;                   // for one of them: rounds may differ
    std::map<int, uint64_t> rounds;       // by ps
    std::map<int, uint64_t> generations;  // by ps: the ledger's, of what it marked
  };

  // Empty if there is none.
  PushLedger::Push PushOf(uint64_t life, uint64_t number) const;
  // Of what was uncounted on ps 0, what every ps has; and the step that it makes.
  std::vector<PushLedger::Push> Uncounted(const Cut& cut) const;
  int64_t StepOf(const Cut& cut) const;
  std::optional<std::string> CheckRow(const Cut& cut, int ps, int variable, const PushLedger::Row& row) const;
  std::optional<std::string> CheckTotal(const Cut& cut, int ps, const PushLedger::Digits& digits) const;

  const PushLedger& ledger_;
  std::vector<Past> pasts_;
  std::vector<uint64_t> numbers_;
  std::map<std::pair<int, uint64_t>, Rows> begun_;                  // ps, generation
  std::map<std::tuple<int, uint64_t, uint64_t>, uint64_t> totals_;  // ps, generation, round
  std::map<Hold, Cut> cuts_;
};

}  // namespace muster
