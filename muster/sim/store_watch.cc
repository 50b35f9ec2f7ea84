#include "muster/sim/store_watch.h"

#include <algorithm>
#include <numeric>

#include "absl/strings/str_cat.h"

namespace muster {

namespace {

std::string DescribeRequest(int ps, const IncomingRequest& request) {
  std::string text = absl::StrCat("ps:", ps, " gets ", StoreMethodName(request.method));
  PushPullRequest push;
  DoneRequest stamped;  // the stamp is the first field of all that have one
  if (request.method == static_cast<uint16_t>(StoreMethod::kPushPull) && Decode(request.control, push).ok()) {
    absl::StrAppend(&text, push.part == UpdatePart::kWhole ? "" : " (a part)", " of ", push.pushed.size(),
                    " slices, counting ", push.minibatches);
    stamped.stamp = push.stamp;
  } else if (request.method == static_cast<uint16_t>(StoreMethod::kJoin) || !Decode(request.control, stamped).ok()) {
    return text;
  }
  absl::StrAppend(&text, " from client ", stamped.stamp.client, ", incarnation ", stamped.stamp.incarnation,
                  ", number ", stamped.stamp.sequence);
  return text;
}

}  // namespace

StoreWatch::StoreWatch(int ps, StoreService& service, RequestHandler& inner, Peers peers)
    : ps_(ps),
      service_(service),
      inner_(inner),
      peers_(std::move(peers)),
      gate_(ps, service,
            {peers_.ledger, &peers_.truth->gates, &peers_.truth->barriers, &peers_.truth->checkpoints,
             peers_.truth->violated}),
      progress_(ps, service, peers_.truth->violated),
      turns_(ps, service, {&peers_.truth->turns, peers_.truth->violated}),
      scales_(ps, service, {peers_.ledger, peers_.truth->violated}) {
  if (service.MakeView().arena == nullptr) peers_.truth->leases[ps] = {};
  Verify();
}

void StoreWatch::Violated(const std::string& what) const {
  peers_.truth->violated(absl::StrCat("ps ", ps_, ": ", what));
}

absl::StatusOr<std::unique_ptr<BulkTarget>> StoreWatch::PrepareBulk(const IncomingRequest& request) {
  auto target = inner_.PrepareBulk(request);
  Verify();
  return target;
}

void StoreWatch::Handle(IncomingRequest& request, std::unique_ptr<BulkTarget> bulk, Responder responder) {
  Verify();  // what was held back and applied meanwhile: at most one push per client
  peers_.truth->note([&] { return DescribeRequest(ps_, request); });
  // The request may replace the values.
  if (request.method == static_cast<uint16_t>(StoreMethod::kInitialize)) VerifyAll();
  turns_.Note(request);
  Responder watched = gate_.Wrap(request, std::move(responder));
  inner_.Handle(request, std::move(bulk), std::move(watched));
  Verify();
}

void StoreWatch::OnDisconnect(ConnectionId connection) {
  inner_.OnDisconnect(connection);
  Verify();
}

void StoreWatch::Verify() {
  const StoreService::View view = service_.MakeView();
  VerifyLease(view);
  scales_.Verify();
  if (view.arena == nullptr) return;
  if (view.arena != arena_ || view.arena->header().generation != generation_) BeginModel(view);
  VerifyCounters(view);
  gate_.Verify();
  progress_.Verify();
  turns_.Verify();
}

void StoreWatch::BeginModel(const StoreService::View& view) {
  arena_ = view.arena;
  generation_ = arena_->header().generation;
  staleness_before_ = std::accumulate(view.staleness.begin(), view.staleness.end(), uint64_t{0});
  updates_before_ = arena_->header().counters.updates;
  step_ = arena_->header().counters.global_step;
  peers_.truth->note([&] { return absl::StrCat("ps:", ps_, " has generation ", generation_, ", step ", step_); });
  // This model is from the memory of an earlier life, so it must still have what that life had.
  if (peers_.ledger->server(ps_).number == generation_) return VerifyAll();
  std::array<PushLedger::Row, PushLedger::kVariables> common;
  for (PushLedger::Row& row : common) row.fill(~uint64_t{0});
  std::array<bool, PushLedger::kVariables> here{};
  for (size_t i = 0; i < arena_->model().slices.size(); ++i) {
    const int variable = arena_->model().slices[i].variable;
    if (variable >= PushLedger::kVariables || !ReadSlice(*arena_, static_cast<int>(i))) continue;
    here[variable] = true;
    for (const PushLedger::Row& row : rows_)
      for (int element = 0; element < peers_.ledger->row(); ++element) common[variable][element] &= row[element];
  }
  for (int variable = 0; variable < PushLedger::kVariables; ++variable)
    if (!here[variable]) common[variable].fill(0);
  peers_.ledger->BeginGeneration(ps_, generation_, step_, common);
  peers_.truth->checkpoints.SetBegun(ps_, common);
  if (ps_ == 0) peers_.truth->checkpoints.Begin({step_, arena_->header().counters.minibatches, CountedNumbers()});
}

std::vector<uint64_t> StoreWatch::Lives() const {
  std::vector<uint64_t> lives;
  for (int i = 0; i < arena_->layout().num_clients(); ++i) lives.push_back(arena_->client(i).incarnation);
  return lives;
}

std::vector<uint64_t> StoreWatch::CountedNumbers() const {
  std::vector<uint64_t> numbers;
  for (int i = 0; i < arena_->layout().num_clients(); ++i) numbers.push_back(arena_->client(i).numbers.last_counted);
  return numbers;
}

void StoreWatch::VerifyLease(const StoreService::View& view) {
  ClusterTruth::Lease& lease = peers_.truth->leases[ps_];
  const uint64_t epoch = view.clients->chief_epoch();
  if (epoch < lease.epoch) Violated(absl::StrCat("the chief's epoch fell from ", lease.epoch, " to ", epoch));
  if (epoch > 0 && view.clients->chief() >= 0) {
    const std::pair<int, uint64_t> holder = {view.clients->chief(), view.clients->chief_incarnation()};
    const auto [known, is_new] = lease.holders.emplace(epoch, holder);
    if (!is_new && known->second != holder) Violated(absl::StrCat("epoch ", epoch, " has two holders"));
  }
  lease.epoch = epoch;
}

void StoreWatch::VerifyCounters(const StoreService::View& view) {
  const ArenaCounters& counters = view.arena->header().counters;
  const uint64_t staleness = std::accumulate(view.staleness.begin(), view.staleness.end(), uint64_t{0});
  // Pushes that a synchronous gate takes aren't in the histogram.
  const bool gated = view.arena->model().gated();
  if (!gated && staleness - staleness_before_ != counters.updates - updates_before_)
    Violated(absl::StrCat("the staleness histogram has ", staleness - staleness_before_, " pushes, but ",
                          counters.updates - updates_before_, " were applied"));
  if (counters.minibatches < counters.global_step)
    Violated(absl::StrCat(counters.minibatches, " minibatches at global step ", counters.global_step));
  if (counters.global_step < step_)
    Violated(absl::StrCat("the global step fell from ", step_, " to ", counters.global_step));
  const bool counted = counters.global_step > step_;
  step_ = counters.global_step;
  if (ps_ != 0) return;
  CheckpointTruth& checkpoints = peers_.truth->checkpoints;
  checkpoints.Count(CountedNumbers(), Lives());
  if (!gated && counters.minibatches != checkpoints.minibatches())
    Violated(absl::StrCat(counters.minibatches, " minibatches, but the pushes that were counted had ",
                          checkpoints.minibatches()));
  peers_.truth->highest_step = std::max(peers_.truth->highest_step, step_);
  if (counted && !gated) VerifyCountedPushes();
}

// Every ps must have all of what is counted: a push counts only when all have it.
void StoreWatch::VerifyCountedPushes() {
  const PushLedger& ledger = *peers_.ledger;
  // While a chief replaces the models one by one, the ps have different histories.
  if (!ledger.Aligned()) return;
  for (int ps = 0; peers_.service(ps) != nullptr; ++ps) CheckHolds(ps, arena_->header().counters.minibatches);
}

void StoreWatch::CheckHolds(int ps, int64_t minibatches) {
  Arena* arena = peers_.service(ps)->MakeView().arena;
  if (arena == nullptr) return;
  for (size_t i = 0; i < arena->model().slices.size(); ++i) {
    if (arena->model().slices[i].variable != 0) continue;
    if (!ReadSlice(*arena, static_cast<int>(i))) return;
    for (const PushLedger::Row& row : rows_)
      if (PushLedger::Count(row) < minibatches)
        return Violated(
            absl::StrCat("counted ", minibatches, " minibatches, but ps ", ps, " has only ", PushLedger::Count(row)));
  }
}

bool StoreWatch::ReadSlice(Arena& arena, int slice) {
  bytes_.resize(arena.layout().slices()[slice].bytes);
  arena.Read(slice, MutableByteSpan(bytes_));
  const auto wrong = peers_.ledger->ReadRows(bytes_, rows_);
  if (wrong) Violated(*wrong);
  return !wrong;
}

void StoreWatch::VerifyAll() {
  if (arena_ == nullptr) return;
  for (size_t i = 0; i < arena_->model().slices.size(); ++i) {
    const int variable = arena_->model().slices[i].variable;
    if (variable >= PushLedger::kVariables || !ReadSlice(*arena_, static_cast<int>(i))) continue;
    for (const PushLedger::Row& row : rows_)
      if (const auto wrong = peers_.ledger->CheckRow(ps_, variable, row)) return Violated(*wrong);
  }
  const PushLedger::Server& server = peers_.ledger->server(ps_);
  step_ = arena_->header().counters.global_step;  // held-back pushes are applied between two requests
  if (ps_ == 0 && step_ < server.first_step + server.acknowledged)
    Violated(absl::StrCat("global step is ", step_, ", but it began at ", server.first_step, " and ",
                          server.acknowledged, " updates were acknowledged since"));
}

}  // namespace muster
