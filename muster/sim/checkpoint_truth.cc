#include "muster/sim/checkpoint_truth.h"

#include <algorithm>
#include <iterator>
#include <span>

#include "absl/strings/str_cat.h"

namespace muster {

void CheckpointTruth::SetBegun(int ps, const Rows& rows) { begun_[{ps, ledger_.server(ps).generation}] = rows; }

void CheckpointTruth::Begin(const Counted& counted) {
  pasts_.push_back({.first_step = counted.global_step, .minibatches = counted.minibatches, .counted = {}});
  numbers_ = counted.numbers;
}

PushLedger::Push CheckpointTruth::PushOf(uint64_t life, uint64_t number) const {
  const PushLedger::Push* push = ledger_.Find(life, number);
  return push == nullptr ? PushLedger::Push() : *push;
}

void CheckpointTruth::Count(const std::vector<uint64_t>& numbers, const std::vector<uint64_t>& lives) {
  for (size_t worker = 0; worker < numbers.size(); ++worker) {
    if (numbers[worker] <= numbers_[worker]) continue;
    Past& past = pasts_.back();
    past.counted.push_back(PushOf(lives[worker], numbers[worker]));
    past.minibatches += static_cast<int64_t>(past.counted.back().size());
  }
  numbers_ = numbers;
}

void CheckpointTruth::SetTotal(int ps, uint64_t round, uint64_t total) {
  totals_[{ps, ledger_.server(ps).generation, round}] = total;
}

void CheckpointTruth::Mark(Hold hold, int ps, const Marked& marked) {
  Cut& cut = cuts_[hold];
  if (!cut.generations.emplace(ps, ledger_.server(ps).generation).second) return;  // the answer was lost
  cut.absent |= marked.absent;
  cut.missing |= marked.missing;
  cut.ended |= marked.ended;
  cut.rounds[ps] = marked.round;
  if (ps != 0) return;
  cut.past = pasts_.size() - 1;
  cut.counted = pasts_.back().counted.size();
  for (const auto& [life, number] : marked.uncounted) cut.uncounted.push_back(PushOf(life, number));
  cut.global_step = marked.global_step;
}

std::vector<PushLedger::Push> CheckpointTruth::Uncounted(const Cut& cut) const {
  std::vector<PushLedger::Push> inside = cut.uncounted;
  std::erase_if(inside, [&](const PushLedger::Push& push) {
    return !push.empty() && (cut.missing >> push.front().worker & 1) != 0;
  });
  return inside;
}

int64_t CheckpointTruth::StepOf(const Cut& cut) const {
  if (ledger_.averaged()) return cut.global_step;
  return pasts_[cut.past].first_step + static_cast<int64_t>(cut.counted + Uncounted(cut).size());
}

// The row must have everything inside the cut and nothing that was counted later. It may have what was never counted
// because the sender died.
std::optional<std::string> CheckpointTruth::CheckRow(const Cut& cut, int ps, int variable,
                                                     const PushLedger::Row& row) const {
  const Past& past = pasts_[cut.past];
  const PushLedger::Row& begun = begun_.at({ps, cut.generations.at(ps)})[variable];
  const auto has = [&](const PushLedger::Row& any_row, const PushLedger::Minibatch& minibatch) {
    return (any_row[ledger_.Element(minibatch)] & ledger_.Digit(minibatch)) != 0;
  };
  const auto name = [](const PushLedger::Minibatch& minibatch) {
    return absl::StrCat("minibatch ", minibatch.number, " of worker ", minibatch.worker);
  };
  for (int element = 0; element < ledger_.row(); ++element)
    if ((begun[element] & ~row[element]) != 0) return "misses a push that its model began with";
  PushLedger::Row inside{};
  const auto split = past.counted.begin() + static_cast<std::ptrdiff_t>(cut.counted);
  const auto minibatches_of = [variable](std::span<const PushLedger::Push> pushes) {
    PushLedger::Push all;
    for (const PushLedger::Push& push : pushes)
      std::copy_if(push.begin(), push.end(), std::back_inserter(all),
                   [&](const auto& minibatch) { return PushLedger::TakesPart(minibatch, variable); });
    return all;
  };
  std::vector<PushLedger::Push> pushed(past.counted.begin(), split);
  for (const PushLedger::Push& push : Uncounted(cut)) pushed.push_back(push);
  for (const PushLedger::Minibatch& minibatch : minibatches_of(pushed)) {
    inside[ledger_.Element(minibatch)] |= ledger_.Digit(minibatch);
    if (!has(row, minibatch)) return absl::StrCat("misses ", name(minibatch), ", which its step counts");
  }
  for (const PushLedger::Minibatch& minibatch : minibatches_of({split, past.counted.end()})) {
    const bool waited_for = (cut.absent >> minibatch.worker & 1) == 0;
    if (has(row, minibatch) && !has(inside, minibatch) && waited_for)
      return absl::StrCat("has ", name(minibatch), ", which its step doesn't count");
  }
  return std::nullopt;
}

std::optional<std::string> CheckpointTruth::CheckTotal(const Cut& cut, int ps, const PushLedger::Digits& digits) const {
  const uint64_t total = ledger_.Total(digits);
  const uint64_t round = cut.ended ? cut.rounds.at(ps) : static_cast<uint64_t>(cut.global_step);
  const auto then = totals_.find({ps, cut.generations.at(ps), round});
  if (then == totals_.end()) return absl::StrCat("is of a round that ps ", ps, " never began");
  if (total == then->second) return std::nullopt;
  return absl::StrCat("has shares of ", total, " of ps ", ps, ", which had ", then->second, " in that round");
}

std::optional<std::string> CheckpointTruth::Check(int64_t global_step, int variable,
                                                  const std::vector<PushLedger::Digits>& digits,
                                                  const std::vector<PushLedger::Row>& rows,
                                                  const std::vector<int>& ps_of_row) const {
  std::optional<std::string> wrong = "is of a step at which nobody cut";
  for (const auto& [hold, cut] : cuts_) {
    // A ps that has not marked has no part.
    if (cut.generations.count(0) == 0 || StepOf(cut) != global_step ||
        cut.generations.size() < static_cast<size_t>(ledger_.num_ps()))
      continue;
    wrong.reset();
    for (size_t i = 0; i < rows.size() && !wrong; ++i) {
      if (!ledger_.averaged()) wrong = CheckRow(cut, ps_of_row[i], variable, rows[i]);
      if (ledger_.averaged() && variable == 0) wrong = CheckTotal(cut, ps_of_row[i], digits[i]);
    }
    if (!wrong) return wrong;
  }
  return wrong;
}

}  // namespace muster
