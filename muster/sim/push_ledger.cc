#include "muster/sim/push_ledger.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr uint64_t kLowBits = 0x5555555555555555;

}  // namespace

// Names the minibatch of the lowest nonzero digit in `bits`.
std::string PushLedger::MinibatchName(int element, uint64_t bits) const {
  return absl::StrCat("minibatch ", element % blocks_ * minibatches_a_block_ + std::countr_zero(bits) / digit_bits_,
                      " of worker ", WorkerOf(element));
}

std::optional<PushLedger::Minibatch> PushLedger::Begin(int worker) {
  if (next_[worker] == blocks_ * minibatches_a_block_) return std::nullopt;
  ++minibatches_;
  return Minibatch{.worker = worker, .number = next_[worker]++, .generations = Generations()};
}

void PushLedger::Send(uint64_t life, const Push& push) {
  newest_[life] = push;
  for (const Minibatch& minibatch : push)
    if (scaled()) windows_[Element(minibatch)] = push.size();
  for (const Minibatch& minibatch : push)
    for (int variable = 0; variable < kVariables; ++variable)
      if (TakesPart(minibatch, variable)) sent_[variable][Element(minibatch)] |= Digit(minibatch);
}

void PushLedger::Number(uint64_t life, uint64_t number) {
  if (const auto newest = newest_.find(life); newest != newest_.end())
    numbered_.emplace(std::pair(life, number), newest->second);
}

const PushLedger::Push* PushLedger::Find(uint64_t life, uint64_t number) const {
  const auto push = numbered_.find({life, number});
  return push == numbered_.end() ? nullptr : &push->second;
}

void PushLedger::Acknowledge(const Push& push, int64_t global_step) {
  ++acknowledged_;
  acknowledged_minibatches_ += static_cast<int64_t>(push.size());
  for (size_t ps = 0; ps < (averaged() ? 1 : servers_.size()); ++ps) {
    Server& server = servers_[ps];
    // A model that has replaced that one needn't have the push.
    if (server.number == 0 || server.generation != push.back().generations[ps]) continue;
    server.acknowledged =
        averaged() ? std::max(server.acknowledged, global_step - server.first_step) : server.acknowledged + 1;
    for (const Minibatch& minibatch : push)
      for (int variable = 0; variable < kVariables; ++variable)
        if (TakesPart(minibatch, variable)) server.must[variable][Element(minibatch)] |= Digit(minibatch);
  }
}

void PushLedger::BeginGeneration(int ps, uint64_t generation, int64_t global_step,
                                 const std::array<Row, kVariables>& rows) {
  Server& server = servers_[ps];
  server = {.generation = server.generation + 1, .number = generation, .first_step = global_step, .must = rows};
}

std::optional<std::string> PushLedger::ReadDivisor(int element, double value, uint64_t& divisor) const {
  divisor = 0;
  if (value == 0) return std::nullopt;
  const double inverse = std::round(1 / value);
  if (!(inverse >= 1 && inverse < 0x1p20) || std::abs(value * inverse - 1) > 1e-9)
    return absl::StrCat(MinibatchName(element, 1), " is there with ", value, ", which is not 1 over a whole number");
  divisor = static_cast<uint64_t>(inverse);
  // The window's size isn't known while its push is on its way. A worker's own values then have each minibatch
  // undivided.
  if (form_ == LedgerForm::kMean && windows_[element] != 0 && divisor != windows_[element])
    return absl::StrCat(MinibatchName(element, 1), " is there divided by ", divisor, ", in a window of ",
                        windows_[element]);
  return std::nullopt;
}

std::optional<std::string> PushLedger::ReadDigits(ByteSpan bytes, Digits& digits) const {
  std::array<double, kMaxRow> values;
  std::memcpy(values.data(), bytes.data(), row() * sizeof(double));
  // A mean of three or five isn't exact, but within this.
  const double tolerance = averaged() ? 0.25 : 0;
  for (int element = 0; element < row(); ++element) {
    if (scaled()) {
      if (auto wrong = ReadDivisor(element, values[element], digits[element])) return wrong;
      continue;
    }
    const double value = std::round(values[element]);
    if (!(value >= 0 && value < 0x1p52) || std::abs(value - values[element]) > tolerance)
      return absl::StrCat("element ", element, " is ", values[element], ", which no number of pushes makes");
    digits[element] = static_cast<uint64_t>(value);
  }
  return std::nullopt;
}

std::optional<std::string> PushLedger::MarkMinibatches(const Digits& digits, Row& row) const {
  row.fill(0);
  for (int element = 0; element < this->row(); ++element) {
    const uint64_t bits = digits[element];
    if (scaled()) {
      row[element] = bits != 0 ? 1 : 0;
      continue;
    }
    if (!averaged()) {
      if ((bits & ~kLowBits) != 0)
        return absl::StrCat(MinibatchName(element, bits & ~kLowBits), " was applied more than once");
      row[element] = bits;
      continue;
    }
    for (int shift = 0; bits >> shift != 0; shift += digit_bits_) {
      const uint64_t share = bits >> shift & 255;
      if (share == 0) continue;
      row[element] |= uint64_t{1} << shift;
      if (unit() % share != 0)
        return absl::StrCat(MinibatchName(element, uint64_t{1} << shift), " is there with ", share, " of ", unit(),
                            ", which no mean gives");
    }
  }
  return std::nullopt;
}

std::optional<std::string> PushLedger::ReadRows(ByteSpan bytes, std::vector<Row>& rows) const {
  const size_t row_bytes = row() * sizeof(double);
  rows.resize(bytes.size() / row_bytes);
  Digits digits;
  for (Row& row : rows) {
    if (auto wrong = ReadDigits(bytes.first(row_bytes), digits)) return wrong;
    if (auto wrong = MarkMinibatches(digits, row)) return wrong;
    bytes = bytes.subspan(row_bytes);
  }
  return std::nullopt;
}

std::optional<std::string> PushLedger::CheckRow(int ps, int variable, const Row& row) const {
  for (int element = 0; element < this->row(); ++element) {
    if (const uint64_t missing = servers_[ps].must[variable][element] & ~row[element]; missing != 0)
      return absl::StrCat(MinibatchName(element, missing), " was acknowledged (or restored) and is missing");
    if (const uint64_t unknown = row[element] & ~sent_[variable][element]; unknown != 0)
      return absl::StrCat(MinibatchName(element, unknown), " is there, but nobody sent it");
  }
  return std::nullopt;
}

uint64_t PushLedger::Total(const Digits& digits) const {
  uint64_t total = 0;
  for (int element = 0; element < row(); ++element)
    for (uint64_t rest = digits[element]; rest != 0; rest >>= digit_bits_)
      total += rest & ((uint64_t{1} << digit_bits_) - 1);
  return total;
}

int64_t PushLedger::Count(const Row& row) {
  int64_t count = 0;
  for (const uint64_t bits : row) count += std::popcount(bits);
  return count;
}

std::vector<uint64_t> PushLedger::Generations() const {
  std::vector<uint64_t> generations;
  for (const Server& server : servers_) generations.push_back(server.generation);
  return generations;
}

bool PushLedger::Aligned() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [&](const Server& server) { return server.number != 0 && server.number == servers_[0].number; });
}

}  // namespace muster
