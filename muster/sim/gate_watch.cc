#include "muster/sim/gate_watch.h"

#include <algorithm>
#include <memory>

#include "absl/strings/str_cat.h"

namespace muster {
namespace {

// Passes answers on to another sink, after reporting them.
class WatchedSink final : public Responder::Sink {
 public:
  WatchedSink(Responder inner, std::function<void()> on_ok) : inner_(std::move(inner)), on_ok_(std::move(on_ok)) {}
  void Send(uint64_t, absl::Status status, absl::string_view control, absl::Span<const ByteSpan> bulk,
            std::shared_ptr<const void> keep_alive) override {
    if (!status.ok()) return inner_.Fail(std::move(status));
    on_ok_();
    inner_.Send(control, bulk, std::move(keep_alive));
  }

 private:
  Responder inner_;
  const std::function<void()> on_ok_;
};

}  // namespace

GateWatch::GateWatch(int ps, const StoreService& service, Peers peers)
    : ps_(ps), service_(service), peers_(std::move(peers)), truth_((*peers_.gates)[ps]) {
  if (service.MakeView().arena == nullptr) truth_ = {};
}

void GateWatch::Violated(const std::string& what) const { peers_.violated(absl::StrCat("ps ", ps_, ": ", what)); }

void GateWatch::Verify() {
  Arena* arena = service_.MakeView().arena;
  if (arena == nullptr || !arena->model().gated()) return;
  const ArenaHeader& header = arena->header();
  if (header.generation != truth_.generation) {
    GateTruth truth = {.generation = header.generation, .round = header.gate.round};
    for (size_t i = 0; i < arena->model().slices.size(); ++i)
      truth.slices.push_back(ReadSlice(*arena, static_cast<int>(i)).value_or(std::vector<PushLedger::Digits>()));
    truth_ = std::move(truth);  // all at once: the ps may die while it is read
    NoteMeans(*arena, truth_.round);
  } else if (!attached_ && header.gate.round != truth_.round) {
    // An earlier life died while firing, and this life has finished that.
    Inspect(*arena, std::nullopt);
    truth_.round = header.gate.round;
    NoteMeans(*arena, truth_.round);
  } else if (!attached_) {
    for (size_t i = 0; i < arena->model().slices.size(); ++i)
      if (ReadSlice(*arena, static_cast<int>(i)).value_or(truth_.slices[i]) != truth_.slices[i])
        Violated(absl::StrCat("values have changed without a firing, in round ", truth_.round));
  }
  attached_ = true;
  if (header.gate.round != truth_.round)
    Violated(absl::StrCat("round ", truth_.round, " became ", header.gate.round, " without a firing"));
  if (ps_ == 0 && header.counters.global_step != static_cast<int64_t>(header.gate.round))
    Violated(absl::StrCat("global step ", header.counters.global_step, " in round ", header.gate.round));
}

void GateWatch::OnFired() {
  Arena& arena = *service_.MakeView().arena;
  const ArenaHeader& header = arena.header();
  const uint64_t contributors = header.firing - 1;
  // A ps that is behind ps 0 takes the contributors that it has.
  const GateTruth& first = (*peers_.gates)[0];
  const bool catches_up =
      ps_ != 0 && (first.generation != header.generation || first.round > header.gate.round || contributors == 0);
  if (!catches_up) CheckEnough(arena, header.gate.round, contributors);
  Inspect(arena, contributors);
  truth_.round = header.next_round;
  NoteMeans(arena, truth_.round);
}

void GateWatch::NoteMeans(const Arena& arena, uint64_t round) {
  for (size_t i = 0; i < truth_.slices.size(); ++i)
    if (arena.model().slices[i].variable == 0 && !truth_.slices[i].empty())
      peers_.checkpoints->SetTotal(ps_, round, peers_.ledger->Total(truth_.slices[i][0]));
}

// Workers that weren't present were not waited for.
void GateWatch::NoteMark(const MarkRequest& request) {
  if (request.release) return;
  const StoreService::View view = service_.MakeView();
  const auto& clients = view.clients->clients();
  CheckpointTruth::Marked marked{.global_step = view.arena->header().counters.global_step,
                                 .round = view.arena->header().gate.round,
                                 .ended = !view.ending.empty()};
  for (size_t i = 0; i < clients.size(); ++i) {
    const ClientRecord& client = view.arena->client(static_cast<int>(i));
    const uint64_t applied = client.numbers.last_applied;
    const uint64_t bit = uint64_t{1} << i;
    if (!view.clients->Present(clients[i], view.now)) marked.absent |= bit;
    if (applied < request.through[i]) marked.missing |= bit;
    // A push begun in an earlier life, or in this one under replaced values, is never counted.
    if (view.ending.empty() && !view.arena->model().gated() && applied <= request.through[i] &&
        applied > std::max(client.numbers.last_counted, client.settled)) {
      if (peers_.ledger->Find(client.incarnation, applied) == nullptr)
        return Violated(absl::StrCat("number ", applied, " of ", client.task, " is applied, under which life ",
                                     client.incarnation, " has pushed nothing"));
      marked.uncounted.emplace_back(client.incarnation, applied);
    }
  }
  peers_.checkpoints->Mark({request.stamp.incarnation, request.hold}, ps_, marked);
}

void GateWatch::CheckEnough(const Arena& arena, uint64_t round, uint64_t contributors) {
  const GateSpec& gate = arena.model().gate;
  const StoreService::View view = service_.MakeView();
  const auto& clients = view.clients->clients();
  const auto present = static_cast<uint64_t>(std::count_if(
      clients.begin(), clients.end(), [&](const auto& client) { return view.clients->Present(client, view.now); }));
  const uint64_t needed = gate.elastic ? std::max<uint64_t>(1, std::min<uint64_t>(gate.replicas_to_aggregate, present))
                                       : gate.replicas_to_aggregate;
  if (contributors < needed)
    Violated(absl::StrCat("round ", round, " fires with ", contributors, " of ", needed, " contributors"));
}

std::optional<std::vector<PushLedger::Digits>> GateWatch::ReadSlice(Arena& arena, int slice) {
  std::vector<PushLedger::Digits> rows;
  if (arena.model().slices[slice].variable >= PushLedger::kVariables) return rows;
  std::vector<std::byte> bytes(arena.layout().slices()[slice].bytes);
  arena.Read(slice, MutableByteSpan(bytes));
  const size_t row_bytes = peers_.ledger->row() * sizeof(double);
  rows.resize(bytes.size() / row_bytes);
  for (size_t i = 0; i < rows.size(); ++i) {
    const auto wrong = peers_.ledger->ReadDigits(ByteSpan(bytes).subspan(i * row_bytes, row_bytes), rows[i]);
    if (!wrong) continue;
    Violated(*wrong);
    return std::nullopt;
  }
  return rows;
}

std::optional<GateWatch::Change> GateWatch::Compare(const PushLedger::Digits& before, const PushLedger::Digits& after) {
  Change change;
  std::set<int> workers;
  const int bits = peers_.ledger->digit_bits();
  for (int element = 0; element < peers_.ledger->row(); ++element) {
    for (int shift = 0; before[element] != after[element] && shift < 64; shift += bits) {
      const uint64_t mask = (uint64_t{1} << bits) - 1;
      const uint64_t was = before[element] >> shift & mask;
      const uint64_t is = after[element] >> shift & mask;
      if (was == is) continue;
      if (was != 0) return std::nullopt;
      change.total += is;
      ++change.pushes;
      change.same_worker_twice |= !workers.insert(peers_.ledger->WorkerOf(element)).second;
    }
  }
  return change;
}

void GateWatch::CheckChange(const Change& change, std::optional<uint64_t> contributors) {
  const std::string round = absl::StrCat("round ", truth_.round);
  const uint64_t unit = peers_.ledger->unit();
  if (change.total != 0 && change.total != unit)
    return Violated(
        absl::StrCat(round, " changes a row by ", change.total, "/", unit, " of a mean, in ", change.pushes, " parts"));
  if (truth_.interrupted) return;  // a push that was begun and given up counts in the rows it reached
  if (change.same_worker_twice) return Violated(absl::StrCat(round, " has a contributor twice"));
  if (contributors && *contributors != change.pushes)
    Violated(absl::StrCat(round, " has ", *contributors, " contributors, but the gradients of ", change.pushes));
}

void GateWatch::Inspect(Arena& arena, std::optional<uint64_t> contributors) {
  std::vector<std::vector<PushLedger::Digits>> slices;
  for (size_t i = 0; i < truth_.slices.size(); ++i) {
    const auto after = ReadSlice(arena, static_cast<int>(i));
    if (!after) return;
    for (size_t row = 0; row < after->size(); ++row) {
      const auto change = Compare(truth_.slices[i][row], (*after)[row]);
      if (!change) return Violated(absl::StrCat("round ", truth_.round, " changes what an earlier round had taken"));
      // Only the first variable is part of every push.
      if (arena.model().slices[i].variable == 0) CheckChange(*change, contributors);
    }
    slices.push_back(*after);
  }
  truth_.slices = std::move(slices);
  truth_.interrupted = false;
}

Responder GateWatch::Wrap(const IncomingRequest& request, Responder responder) {
  const auto watched = [&](std::function<void()> on_ok) {
    return Responder(std::make_unique<WatchedSink>(std::move(responder), std::move(on_ok)));
  };
  PushPullRequest push;
  if (request.method == static_cast<uint16_t>(StoreMethod::kPushPull) && Decode(request.control, push).ok() &&
      push.clock > 0)
    return watched([this, clock = push.clock] { CheckClock(clock); });
  MarkRequest mark;
  if (request.method == static_cast<uint16_t>(StoreMethod::kMark) && Decode(request.control, mark).ok())
    return watched([this, mark] { NoteMark(mark); });
  BarrierRequest barrier;
  if (request.method != static_cast<uint16_t>(StoreMethod::kBarrier) || !Decode(request.control, barrier).ok())
    return responder;
  (*peers_.barriers)[barrier.name].arrived.insert(barrier.stamp.client);
  return watched([this, barrier] { CheckBarrier(barrier); });
}

void GateWatch::CheckClock(uint64_t clock) {
  const StoreService::View view = service_.MakeView();
  if (view.arena == nullptr || view.arena->model().clock_limit == 0) return;
  const uint64_t bound = view.arena->model().clock_limit - 1;
  const auto& clients = view.clients->clients();
  for (size_t i = 0; i < clients.size(); ++i) {
    const uint64_t other = view.arena->client(static_cast<int>(i)).numbers.clock;
    if (view.clients->Present(clients[i], view.now) && other + bound < clock)
      Violated(absl::StrCat("clock ", clock, " is answered while ", clients[i].task, " is at ", other,
                            ", the bound is ", bound));
  }
}

void GateWatch::CheckBarrier(const BarrierRequest& request) {
  BarrierTruth& truth = (*peers_.barriers)[request.name];
  if (!truth.opened.emplace(request.stamp.incarnation, request.stamp.sequence).second) return;
  if (truth.arrived.size() >= request.parties) return;
  const StoreService::View view = service_.MakeView();
  const auto& clients = view.clients->clients();
  for (size_t i = 0; i < clients.size(); ++i)
    if (!request.elastic ||
        (view.clients->Present(clients[i], view.now) && !truth.arrived.contains(static_cast<uint32_t>(i))))
      return Violated(absl::StrCat("barrier '", request.name, "' opens with ", truth.arrived.size(), " of ",
                                   request.parties, " parties, without ", clients[i].task));
}

}  // namespace muster
