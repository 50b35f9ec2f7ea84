// The truth about a simulated training run: which pushes were sent, which were acknowledged, and what every ps must
// therefore hold. A push adds a power of four to one element of every row of the variables it takes part in, so a row
// spells out in base 4 how often each push was applied to it: 0 or 1, anything else is an error. Where a synchronous
// gate takes the mean, a digit is in base 256 and a push of it 60: what is there is 60 divided by the number of those
// who contributed, a whole number for up to six.
//
// Used by the thread whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/bytes.h"

namespace muster {

class PushLedger {
 public:
  static constexpr int kMaxWorkers = 4;
  static constexpr int kMaxRow = kMaxWorkers * 16;  // divides a stripe: a row is averaged as a whole
  static constexpr int kVariables = 2;
  // The pushes that a row has seen, a bit (the lowest of its digit) each.
  using Row = std::array<uint64_t, kMaxRow>;
  // The elements of a row as they are.
  using Digits = std::array<uint64_t, kMaxRow>;

  struct Push {
    int worker = 0;
    int number = 0;                     // of this worker, from 0, over all its lives
    std::vector<uint64_t> generations;  // of every ps when it began
  };

  // `averaged`: the pushes go through a synchronous gate.
  explicit PushLedger(int num_ps, bool averaged = false)
      : averaged_(averaged),
        blocks_(averaged ? 16 : 8),
        pushes_a_block_(averaged ? 6 : 26),
        digit_bits_(averaged ? 8 : 2),
        servers_(num_ps) {}

  int num_ps() const { return static_cast<int>(servers_.size()); }
  bool averaged() const { return averaged_; }
  // Elements of a row.
  int row() const { return kMaxWorkers * blocks_; }
  int digit_bits() const { return digit_bits_; }
  uint64_t unit() const { return averaged_ ? 60 : 1; }

  // Which variables a push has gradients for: the first always, the second in two of three.
  static bool TakesPart(const Push& push, int variable) {
    return variable == 0 || (push.worker + push.number) % 3 != 0;
  }
  int Element(const Push& push) const { return push.worker * blocks_ + push.number / pushes_a_block_; }
  uint64_t Digit(const Push& push) const { return uint64_t{1} << (digit_bits_ * (push.number % pushes_a_block_)); }
  int WorkerOf(int element) const { return element / blocks_; }

  // The next push of a worker; nothing when its digits are used up.
  // `life`: the incarnation of the process, of which a worker may have two for a while.
  std::optional<Push> Begin(int worker, uint64_t life);
  // Every ps has it; with a synchronous gate: ps 0 has (on the others it may have come too late). `global_step` is what
  // the answer said.
  void Acknowledge(const Push& push, int64_t global_step);

  // A ps holds values of `generation` (the chief's number) from now on; `rows`: what all rows of a variable have.
  void BeginGeneration(int ps, uint64_t generation, int64_t global_step, const std::array<Row, kVariables>& rows);
  // It has lost them.
  void EndGeneration(int ps) { servers_[ps].number = 0; }

  // Reads rows of a variable, all of them (`bytes` are whole rows). Errors say what is wrong: "push 3 of worker 1 was
  // applied twice".
  std::optional<std::string> ReadRows(ByteSpan bytes, std::vector<Row>& rows) const;
  // One row as it is; with a gate rounded to what the divisions should have given. Nothing if it can't be read so.
  std::optional<std::string> ReadDigits(ByteSpan row_bytes, Digits& digits) const;
  // What must be, and what may be, in every row of `variable` on `ps`.
  std::optional<std::string> CheckRow(int ps, int variable, const Row& row) const;
  // With a gate: the shares that are in it.
  uint64_t Total(const Digits& digits) const;
  // The pushes in it.
  static int64_t Count(const Row& row);

  struct Server {
    uint64_t generation = 0;  // counts the models that it held
    uint64_t number = 0;      // what the chief calls it; 0: it holds none
    int64_t first_step = 0;
    int64_t acknowledged = 0;  // updates begun and acknowledged in this generation
    std::array<Row, kVariables> must{};
  };
  const Server& server(int ps) const { return servers_[ps]; }
  // All ps hold values of one generation.
  bool Aligned() const;

  // The newest push of a life; null: it has begun none.
  const Push* Newest(uint64_t life) const {
    const auto push = newest_.find(life);
    return push == newest_.end() ? nullptr : &push->second;
  }

  int64_t sent() const { return sent_count_; }
  int64_t acknowledged() const { return acknowledged_; }

 private:
  std::string PushName(int element, uint64_t bits) const;
  std::optional<std::string> MarkPushes(const Digits& digits, Row& row) const;

  const bool averaged_;
  const int blocks_;          // elements a worker
  const int pushes_a_block_;  // digits that a double holds exactly
  const int digit_bits_;
  std::vector<Server> servers_;
  std::array<int, kMaxWorkers> next_{};
  std::map<uint64_t, Push> newest_;  // by life
  std::array<Row, kVariables> sent_{};
  int64_t sent_count_ = 0;
  int64_t acknowledged_ = 0;
};

}  // namespace muster
