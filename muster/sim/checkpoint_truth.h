// What the checkpoints of a simulated run must hold: the steps at which all ps were cut, the pushes that ps 0 had
// counted by then and, with a synchronous gate, how many rounds had changed each ps. StoreWatch fills it. Used by the
// thread whose turn it is.
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

  // The counters of ps 0. `numbers`: by worker, the number of its last counted push.
  struct Counted {
    int64_t global_step = 0;
    int64_t minibatches = 0;
    std::vector<uint64_t> numbers;
  };
  using Rows = std::array<PushLedger::Row, PushLedger::kVariables>;
  // Says that a ps holds other values from now on, which the ledger knows; `rows` is what all rows of a variable have
  // there. Each ps is recorded separately: a push whose sender died may be on only some of them, and in the checkpoint
  // that they began with.
  void SetBegun(int ps, const Rows& rows);
  // Says that ps 0 begins with these counters.
  void Begin(const Counted& counted);
  // Records the numbers now, and the workers' lives: a worker's push has been counted if its number has changed.
  void Count(const std::vector<uint64_t>& numbers, const std::vector<uint64_t>& lives);
  // Returns how many minibatches the updates counted by ps 0 must consist of.
  int64_t minibatches() const { return pasts_.back().minibatches; }
  // With a gate: records how many shares every row of ps `ps` has when `round` begins.
  void SetTotal(int ps, uint64_t round, uint64_t total);
  // Records a ps's answer to a mark. `Hold` is incarnation and number.
  using Hold = std::pair<uint64_t, uint64_t>;
  struct Marked {
    int64_t global_step = 0;  // only on ps 0, with a gate
    uint64_t round = 0;       // of this ps, with a gate
    bool ended = false;       // training was over on this ps: no round fires any more
    uint64_t absent = 0;      // workers that were not waited for, one bit each
    uint64_t missing = 0;     // those of them whose newest push isn't on this ps
    // On ps 0: life and number of each client whose newest push is on it but not yet counted.
    std::vector<std::pair<uint64_t, uint64_t>> uncounted;
  };
  void Mark(Hold hold, int ps, const Marked& marked);

  // Describes what is wrong with these rows of a variable in a checkpoint of that step. `ps_of_row` is the ps of each
  // row.
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
    bool ended = false;                   // on one of the ps; then rounds may differ
    std::map<int, uint64_t> rounds;       // by ps
    std::map<int, uint64_t> generations;  // by ps: the ledger's, for what was marked
  };

  // Returns an empty push if there is none.
  PushLedger::Push PushOf(uint64_t life, uint64_t number) const;
  // Uncounted: the pushes that were uncounted on ps 0 and that every ps has. StepOf: the step they lead to.
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
