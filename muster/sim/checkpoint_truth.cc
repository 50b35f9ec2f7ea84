#include "muster/sim/checkpoint_truth.h"

#include "absl/strings/str_cat.h"

namespace muster {

void CheckpointTruth::Begin(int64_t global_step, const std::array<PushLedger::Row, PushLedger::kVariables>& rows,
                            const std::vector<uint64_t>& counted) {
  pasts_.push_back({.first_step = global_step, .rows = rows, .counted = {}});
  counted_ = counted;
}

void CheckpointTruth::Count(const std::vector<uint64_t>& counted, const std::vector<uint64_t>& lives) {
  for (size_t worker = 0; worker < counted.size(); ++worker)
    if (counted[worker] > counted_[worker]) pasts_.back().counted.push_back(*ledger_.Newest(lives[worker]));
  counted_ = counted;
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
  for (const uint64_t life : marked.uncounted) cut.uncounted.push_back(*ledger_.Newest(life));
  cut.global_step = marked.global_step;
}

std::vector<PushLedger::Push> CheckpointTruth::Uncounted(const Cut& cut) const {
  std::vector<PushLedger::Push> inside = cut.uncounted;
  std::erase_if(inside, [&](const PushLedger::Push& push) { return (cut.missing >> push.worker & 1) != 0; });
  return inside;
}

int64_t CheckpointTruth::StepOf(const Cut& cut) const {
  if (ledger_.averaged()) return cut.global_step;
  return pasts_[cut.past].first_step + static_cast<int64_t>(cut.counted + Uncounted(cut).size());
}

// All that was inside, and of what was counted later nothing else. What never was counted may be there: its sender
// died.
std::optional<std::string> CheckpointTruth::CheckRow(const Cut& cut, int variable, const PushLedger::Row& row) const {
  const Past& past = pasts_[cut.past];
  const auto has = [&](const PushLedger::Push& push) {
    return (row[ledger_.Element(push)] & ledger_.Digit(push)) != 0;
  };
  const auto name = [](const PushLedger::Push& push) {
    return absl::StrCat("push ", push.number, " of worker ", push.worker);
  };
  for (int element = 0; element < ledger_.row(); ++element)
    if ((past.rows[variable][element] & ~row[element]) != 0) return "misses a push that its model began with";
  PushLedger::Row inside{};
  std::vector<PushLedger::Push> all(past.counted.begin(),
                                    past.counted.begin() + static_cast<std::ptrdiff_t>(cut.counted));
  for (const PushLedger::Push& push : Uncounted(cut)) all.push_back(push);
  for (const PushLedger::Push& push : all) {
    if (!PushLedger::TakesPart(push, variable)) continue;
    inside[ledger_.Element(push)] |= ledger_.Digit(push);
    if (!has(push)) return absl::StrCat("misses ", name(push), ", which its step counts");
  }
  for (size_t i = cut.counted; i < past.counted.size(); ++i) {
    const PushLedger::Push& push = past.counted[i];
    const bool known = (inside[ledger_.Element(push)] & ledger_.Digit(push)) != 0;
    const bool waited_for = (cut.absent >> push.worker & 1) == 0;
    if (PushLedger::TakesPart(push, variable) && has(push) && !known && waited_for)
      return absl::StrCat("has ", name(push), ", which its step doesn't count");
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
    // Whoever has not marked has no part.
    if (cut.generations.count(0) == 0 || StepOf(cut) != global_step ||
        cut.generations.size() < static_cast<size_t>(ledger_.num_ps()))
      continue;
    wrong.reset();
    for (size_t i = 0; i < rows.size() && !wrong; ++i) {
      if (!ledger_.averaged()) wrong = CheckRow(cut, variable, rows[i]);
      if (ledger_.averaged() && variable == 0) wrong = CheckTotal(cut, ps_of_row[i], digits[i]);
    }
    if (!wrong) return wrong;
  }
  return wrong;
}

}  // namespace muster
