#include "muster/sim/push_ledger.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

constexpr uint64_t kLowBits = 0x5555555555555555;

// Of the lowest digit in which `bits` has something.
std::string PushName(int element, uint64_t bits) {
  return absl::StrCat("push ", element % PushLedger::kBlocks * PushLedger::kPushesABlock + std::countr_zero(bits) / 2,
                      " of worker ", element / PushLedger::kBlocks);
}

}  // namespace

std::optional<PushLedger::Push> PushLedger::Begin(int worker) {
  if (next_[worker] == kBlocks * kPushesABlock) return std::nullopt;
  Push push{.worker = worker, .number = next_[worker]++};
  for (const Server& server : servers_) push.generations.push_back(server.generation);
  for (int variable = 0; variable < kVariables; ++variable)
    if (TakesPart(push, variable)) sent_[variable][Element(push)] |= Digit(push);
  ++sent_count_;
  return push;
}

void PushLedger::Acknowledge(const Push& push) {
  ++acknowledged_;
  for (size_t ps = 0; ps < servers_.size(); ++ps) {
    Server& server = servers_[ps];
    // A model that was replaced meanwhile need not have it.
    if (server.number == 0 || server.generation != push.generations[ps]) continue;
    ++server.acknowledged;
    for (int variable = 0; variable < kVariables; ++variable)
      if (TakesPart(push, variable)) server.must[variable][Element(push)] |= Digit(push);
  }
}

void PushLedger::BeginGeneration(int ps, uint64_t generation, int64_t global_step,
                                 const std::array<Row, kVariables>& rows) {
  Server& server = servers_[ps];
  server = {.generation = server.generation + 1, .number = generation, .first_step = global_step, .must = rows};
}

std::optional<std::string> PushLedger::ReadRows(ByteSpan bytes, std::vector<Row>& rows) {
  rows.resize(bytes.size() / (kRow * sizeof(double)));
  for (Row& row : rows) {
    std::array<double, kRow> values;
    std::memcpy(values.data(), bytes.data(), sizeof values);
    bytes = bytes.subspan(sizeof values);
    for (int element = 0; element < kRow; ++element) {
      const double value = values[element];
      if (!(value >= 0 && value < 0x1p52) || value != std::floor(value))
        return absl::StrCat("element ", element, " is ", value, ", which no number of pushes makes");
      const auto bits = static_cast<uint64_t>(value);
      if ((bits & ~kLowBits) != 0)
        return absl::StrCat(PushName(element, bits & ~kLowBits), " was applied more than once");
      row[element] = bits;
    }
  }
  return std::nullopt;
}

std::optional<std::string> PushLedger::CheckRow(int ps, int variable, const Row& row) const {
  for (int element = 0; element < kRow; ++element) {
    if (const uint64_t missing = servers_[ps].must[variable][element] & ~row[element]; missing != 0)
      return absl::StrCat(PushName(element, missing), " was acknowledged (or restored) and is missing");
    if (const uint64_t unknown = row[element] & ~sent_[variable][element]; unknown != 0)
      return absl::StrCat(PushName(element, unknown), " is there, but nobody sent it");
  }
  return std::nullopt;
}

int64_t PushLedger::Count(const Row& row) {
  int64_t count = 0;
  for (const uint64_t bits : row) count += std::popcount(bits);
  return count;
}

bool PushLedger::Aligned() const {
  return std::all_of(servers_.begin(), servers_.end(),
                     [&](const Server& server) { return server.number != 0 && server.number == servers_[0].number; });
}

}  // namespace muster
