// The truth about a simulated training run: which pushes were sent, which were acknowledged, and what every ps must
// therefore hold. A minibatch adds a power of four to one element of every row of the variables it takes part in, so a
// row spells out in base 4 how often each minibatch was applied to it: 0 or 1, anything else is an error. A push brings
// one minibatch, or all of a window. Where a synchronous gate takes the mean, a digit is in base 256 and a minibatch of
// it 60: what is there is 60 divided by the number of those who contributed, a whole number for up to six. Where a push
// is scaled by itself, each of its minibatches has an element for itself, with 1 divided by a whole number.
//
// Used by the thread whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "muster/base/bytes.h"

namespace muster {

// What the ps makes of a push.
enum class LedgerForm {
  kWhole,        // it is added as it is
  kAveraged,     // … through a synchronous gate
  kMean,         // … divided by its minibatches
  kByStaleness,  // … divided by 1 + its staleness, of each ps
};

class PushLedger {
 public:
  static constexpr int kMaxWorkers = 4;
  static constexpr int kMaxRow = kMaxWorkers * 64;  // divides a stripe: a row is averaged as a whole
  static constexpr int kVariables = 2;
  // The minibatches that a row has seen, a bit (the lowest of its digit) each.
  using Row = std::array<uint64_t, kMaxRow>;
  // The elements of a row as they are; where pushes are scaled, what each was divided by.
  using Digits = std::array<uint64_t, kMaxRow>;

  struct Minibatch {
    int worker = 0;
    int number = 0;                     // of this worker, from 0, over all its lives
    std::vector<uint64_t> generations;  // of every ps when it was computed
  };
  using Push = std::vector<Minibatch>;

  explicit PushLedger(int num_ps, LedgerForm form = LedgerForm::kWhole)
      : form_(form),
        blocks_(scaled()     ? 64
                : averaged() ? 16
                             : 8),
        minibatches_a_block_(scaled()     ? 1
                             : averaged() ? 6
                                          : 26),
        digit_bits_(averaged() ? 8 : 2),
        servers_(num_ps) {}

  int num_ps() const { return static_cast<int>(servers_.size()); }
  LedgerForm form() const { return form_; }
  bool averaged() const { return form_ == LedgerForm::kAveraged; }
  bool scaled() const { return form_ == LedgerForm::kMean || form_ == LedgerForm::kByStaleness; }
  // Elements of a row.
  int row() const { return kMaxWorkers * blocks_; }
  int digit_bits() const { return digit_bits_; }
  uint64_t unit() const { return averaged() ? 60 : 1; }

  // Which variables a minibatch has gradients for: the first always, the second in two of three.
  static bool TakesPart(const Minibatch& minibatch, int variable) {
    return variable == 0 || (minibatch.worker + minibatch.number) % 3 != 0;
  }
  int Element(const Minibatch& minibatch) const {
    return minibatch.worker * blocks_ + minibatch.number / minibatches_a_block_;
  }
  uint64_t Digit(const Minibatch& minibatch) const {
    return uint64_t{1} << (digit_bits_ * (minibatch.number % minibatches_a_block_));
  }
  int WorkerOf(int element) const { return element / blocks_; }

  // The next minibatch of a worker, which nobody else knows of yet; nothing when its digits are used up.
  std::optional<Minibatch> Begin(int worker);
  // Any ps may have it from now on. `life`: the incarnation of the process, of which a worker may have two for a while.
  void Send(uint64_t life, const Push& push);
  // A request of that number leaves the process: if it is a push, it is the newest that was sent, or an earlier one
  // that is sent again.
  void Number(uint64_t life, uint64_t number);
  // Every ps has it; with a synchronous gate: ps 0 has (on the others it may have come too late). `global_step` is what
  // the answer said.
  void Acknowledge(const Push& push, int64_t global_step);

  // A ps holds values of `generation` (the chief's number) from now on; `rows`: what all rows of a variable have.
  void BeginGeneration(int ps, uint64_t generation, int64_t global_step, const std::array<Row, kVariables>& rows);
  // It has lost them.
  void EndGeneration(int ps) { servers_[ps].number = 0; }

  // Reads rows of a variable, all of them (`bytes` are whole rows). Errors say what is wrong: "minibatch 3 of worker 1
  // was applied more than once".
  std::optional<std::string> ReadRows(ByteSpan bytes, std::vector<Row>& rows) const;
  // One row as it is; with a gate rounded to what the divisions should have given. Nothing if it can't be read so.
  std::optional<std::string> ReadDigits(ByteSpan row_bytes, Digits& digits) const;
  // What must be, and what may be, in every row of `variable` on `ps`.
  std::optional<std::string> CheckRow(int ps, int variable, const Row& row) const;
  // With a gate: the shares that are in it.
  uint64_t Total(const Digits& digits) const;
  // The minibatches in it.
  static int64_t Count(const Row& row);

  struct Server {
    uint64_t generation = 0;  // counts the models that it held
    uint64_t number = 0;      // what the chief calls it; 0: it holds none
    int64_t first_step = 0;
    int64_t acknowledged = 0;  // pushes begun and acknowledged in this generation
    std::array<Row, kVariables> must{};
  };
  const Server& server(int ps) const { return servers_[ps]; }
  // Of every ps, the models that it has held so far.
  std::vector<uint64_t> Generations() const;
  // All ps hold values of one generation.
  bool Aligned() const;

  // What a life has pushed under that number; null: nothing. Its newest may be another: what a ps applies or counts
  // without a message (it had kept it back, or died in it) is seen late.
  const Push* Find(uint64_t life, uint64_t number) const;

  int64_t acknowledged() const { return acknowledged_; }
  int64_t minibatches() const { return minibatches_; }
  // Minibatches of which nobody has heard that they were applied.
  int64_t lost() const { return minibatches_ - acknowledged_minibatches_; }

 private:
  std::string MinibatchName(int element, uint64_t bits) const;
  std::optional<std::string> ReadDivisor(int element, double value, uint64_t& divisor) const;
  std::optional<std::string> MarkMinibatches(const Digits& digits, Row& row) const;

  const LedgerForm form_;
  const int blocks_;               // elements a worker
  const int minibatches_a_block_;  // digits that a double holds exactly
  const int digit_bits_;
  std::vector<Server> servers_;
  std::array<int, kMaxWorkers> next_{};
  std::map<uint64_t, Push> newest_;                         // by life
  std::map<std::pair<uint64_t, uint64_t>, Push> numbered_;  // by life and number
  std::array<Row, kVariables> sent_{};
  std::array<uint64_t, kMaxRow> windows_{};  // where they are scaled: how many minibatches each one's push has
  int64_t acknowledged_ = 0;
  int64_t minibatches_ = 0;
  int64_t acknowledged_minibatches_ = 0;
};

}  // namespace muster
