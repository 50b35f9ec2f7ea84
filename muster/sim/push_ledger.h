// The truth about a simulated training run: which pushes were sent, which were acknowledged, and therefore what every
// ps must hold. A minibatch adds a power of four to one element of every row of the variables it uses, so a row shows
// in base 4 how often each minibatch was applied to it; anything but 0 or 1 is an error. A push has one minibatch, or
// all of a window. If a synchronous gate takes the mean, digits are in base 256 and a minibatch adds 60: the row then
// has 60 divided by the number of contributors, a whole number for up to six. If each push is scaled by its own factor,
// each of its minibatches has its own element, holding 1 divided by a whole number.
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

// How a ps applies a push.
enum class LedgerForm {
  kWhole,        // added as it is
  kAveraged,     // averaged by a synchronous gate
  kMean,         // divided by its number of minibatches
  kByStaleness,  // divided by 1 + its staleness on each ps
};

class PushLedger {
 public:
  static constexpr int kMaxWorkers = 4;
  static constexpr int kMaxRow = kMaxWorkers * 64;  // divides a stripe: a row is averaged as a whole
  static constexpr int kVariables = 2;
  // The minibatches in a row, one bit each (the lowest of its digit).
  using Row = std::array<uint64_t, kMaxRow>;
  // The elements of a row; if pushes are scaled, the divisor of each.
  using Digits = std::array<uint64_t, kMaxRow>;

  struct Minibatch {
    int worker = 0;
    int number = 0;                     // counts this worker's minibatches from 0, over all its lives
    std::vector<uint64_t> generations;  // of every ps when the minibatch was computed
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
  // Number of elements in a row.
  int row() const { return kMaxWorkers * blocks_; }
  int digit_bits() const { return digit_bits_; }
  uint64_t unit() const { return averaged() ? 60 : 1; }

  // Returns whether a minibatch has gradients for a variable: always for the first, in two of three for the second.
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

  // Returns the worker's next minibatch, which no other process knows yet; nullopt when its digits are used up.
  std::optional<Minibatch> Begin(int worker);
  // Says that any ps may have the push from now on. `life` is the process's incarnation; a worker may have two for a
  // while.
  void Send(uint64_t life, const Push& push);
  // Says that a request of that number leaves the process. If it is a push, it is the newest that was sent, or an
  // earlier one sent again.
  void Number(uint64_t life, uint64_t number);
  // Says that every ps has the push; with a synchronous gate, that ps 0 has it (for the others it may have come too
  // late). `global_step` is the one in the answer.
  void Acknowledge(const Push& push, int64_t global_step);

  // Says that a ps holds values of `generation` (the chief's number); `rows` is what all rows of a variable have.
  void BeginGeneration(int ps, uint64_t generation, int64_t global_step, const std::array<Row, kVariables>& rows);
  // Says that the ps has lost them.
  void EndGeneration(int ps) { servers_[ps].number = 0; }

  // Reads the rows of a variable; `bytes` are whole rows. Errors say what is wrong: "minibatch 3 of worker 1 was
  // applied more than once".
  std::optional<std::string> ReadRows(ByteSpan bytes, std::vector<Row>& rows) const;
  // Reads one row; with a gate, rounds to what the divisions should have given. Returns an error if that is impossible.
  std::optional<std::string> ReadDigits(ByteSpan row_bytes, Digits& digits) const;
  // Checks every row of `variable` on `ps` for what must be in it and what may be in it.
  std::optional<std::string> CheckRow(int ps, int variable, const Row& row) const;
  // With a gate: returns the number of shares in the row.
  uint64_t Total(const Digits& digits) const;
  // Returns the number of minibatches in the row.
  static int64_t Count(const Row& row);

  struct Server {
    uint64_t generation = 0;  // counts the models that the ps has held
    uint64_t number = 0;      // the chief's number of the model; 0: it holds none
    int64_t first_step = 0;
    int64_t acknowledged = 0;  // pushes begun and acknowledged in this generation
    std::array<Row, kVariables> must{};
  };
  const Server& server(int ps) const { return servers_[ps]; }
  // Returns, for every ps, how many models it has held so far.
  std::vector<uint64_t> Generations() const;
  // Returns whether all ps hold values of one generation.
  bool Aligned() const;

  // Returns the life's push of that number; null if there is none. It needn't be the life's newest: pushes that a ps
  // applies or counts without a message (one it had held back, or died in) are seen late.
  const Push* Find(uint64_t life, uint64_t number) const;

  int64_t acknowledged() const { return acknowledged_; }
  int64_t minibatches() const { return minibatches_; }
  // Returns the number of minibatches that weren't reported as applied to any worker.
  int64_t lost() const { return minibatches_ - acknowledged_minibatches_; }

 private:
  std::string MinibatchName(int element, uint64_t bits) const;
  std::optional<std::string> ReadDivisor(int element, double value, uint64_t& divisor) const;
  std::optional<std::string> MarkMinibatches(const Digits& digits, Row& row) const;

  const LedgerForm form_;
  const int blocks_;               // elements per worker
  const int minibatches_a_block_;  // digits that a double holds exactly
  const int digit_bits_;
  std::vector<Server> servers_;
  std::array<int, kMaxWorkers> next_{};
  std::map<uint64_t, Push> newest_;                         // by life
  std::map<std::pair<uint64_t, uint64_t>, Push> numbered_;  // by life and number
  std::array<Row, kVariables> sent_{};
  std::array<uint64_t, kMaxRow> windows_{};  // if pushes are scaled: how many minibatches the push of each one has
  int64_t acknowledged_ = 0;
  int64_t minibatches_ = 0;
  int64_t acknowledged_minibatches_ = 0;
};

}  // namespace muster
