// The truth about a simulated training run: which pushes were sent, which were acknowledged, and what every ps must
// therefore hold. A push adds a power of four to one element of every row of the variables it takes part in, so a row
// spells out in base 4 how often each push was applied to it: 0 or 1, anything else is an error.
//
// Used by the thread whose turn it is.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "muster/base/bytes.h"

namespace muster {

class PushLedger {
 public:
  static constexpr int kMaxWorkers = 4;
  static constexpr int kBlocks = 8;         // elements a worker
  static constexpr int kPushesABlock = 26;  // base-4 digits that a double holds exactly
  static constexpr int kRow = kMaxWorkers * kBlocks;
  static constexpr int kVariables = 2;
  // The pushes that a row has seen, a bit (the lower of a base-4 digit) each.
  using Row = std::array<uint64_t, kRow>;

  struct Push {
    int worker = 0;
    int number = 0;                     // of this worker, from 0, over all its lives
    std::vector<uint64_t> generations;  // of every ps when it began
  };

  explicit PushLedger(int num_ps) : servers_(num_ps) {}

  // Which variables a push has gradients for: the first always, the second in two of three.
  static bool TakesPart(const Push& push, int variable) {
    return variable == 0 || (push.worker + push.number) % 3 != 0;
  }
  static int Element(const Push& push) { return push.worker * kBlocks + push.number / kPushesABlock; }
  static uint64_t Digit(const Push& push) { return uint64_t{1} << (2 * (push.number % kPushesABlock)); }

  // The next push of a worker; nothing when its digits are used up.
  std::optional<Push> Begin(int worker);
  void Acknowledge(const Push& push);

  // A ps holds values of `generation` (the chief's number) from now on; `rows`: what all rows of a variable have.
  void BeginGeneration(int ps, uint64_t generation, int64_t global_step, const std::array<Row, kVariables>& rows);
  // It has lost them.
  void EndGeneration(int ps) { servers_[ps].number = 0; }

  // Reads rows of a variable, all of them (`bytes` are whole rows). Errors say what is wrong: "push 3 of worker 1 was
  // applied twice".
  static std::optional<std::string> ReadRows(ByteSpan bytes, std::vector<Row>& rows);
  // What must be, and what may be, in every row of `variable` on `ps`.
  std::optional<std::string> CheckRow(int ps, int variable, const Row& row) const;
  // The pushes in it.
  static int64_t Count(const Row& row);

  struct Server {
    uint64_t generation = 0;  // counts the models that it held
    uint64_t number = 0;      // what the chief calls it; 0: it holds none
    int64_t first_step = 0;
    int64_t acknowledged = 0;  // whole pushes begun and acknowledged in this generation
    std::array<Row, kVariables> must{};
  };
  const Server& server(int ps) const { return servers_[ps]; }
  // All ps hold values of one generation.
  bool Aligned() const;

  int64_t sent() const { return sent_count_; }
  int64_t acknowledged() const { return acknowledged_; }

 private:
  std::vector<Server> servers_;
  std::array<int, kMaxWorkers> next_{};
  std::array<Row, kVariables> sent_{};
  int64_t sent_count_ = 0;
  int64_t acknowledged_ = 0;
};

}  // namespace muster
