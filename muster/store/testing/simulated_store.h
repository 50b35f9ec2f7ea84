// Parameter servers for tests: store services on the loop of a simulated world, over a simulated network of their own
// and a disk in memory, with clients to them that may meet scripted faults. Nothing sleeps; the same test gives the
// same run.
#pragma once

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/str_cat.h"
#include "muster/base/check.h"
#include "muster/base/files/memory_file_system.h"
#include "muster/store/checkpoints/checkpoint_part.h"
#include "muster/store/client/store_client.h"
#include "muster/store/service/store_service.h"
#include "muster/transport/simulated/simulated_transport.h"

namespace muster {

// What ps `ps` of `num_ps` holds of `variables`, placed round robin. The variables must be placeable.
inline StoreModel ModelOn(const std::vector<VariableSpec>& variables, const RuleSpec& rule, int num_ps = 1, int ps = 0,
                          const Partitioning& partitioning = {}) {
  return ModelOfPs(variables, *PlaceVariables(variables, num_ps, Placement::kRoundRobin, partitioning), rule, ps);
}

// Returns what the arena holds now. No checkpoint may be under way.
inline PartSnapshot TakeSnapshot(Arena& arena) {
  MUSTER_CHECK(arena.FinishMark(arena.Mark()));
  PartSnapshot snapshot{CopyAside(arena, 0, ValueBytes(arena.model()) + SlotBytes(arena.model())), arena.AsideSteps()};
  arena.DiscardAside();
  return snapshot;
}

// The memory of a model in a worker, and a client's binding to it. Not copied, because the binding points into it.
struct WorkerModel {
  WorkerModel(const std::vector<VariableSpec>& variables, const RuleSpec& rule, int num_ps,
              const Partitioning& partitioning = {}, Placement placement = Placement::kRoundRobin)
      : memory(variables.size()) {
    binding = {variables, *PlaceVariables(variables, num_ps, placement, partitioning), rule, {}};
    for (size_t i = 0; i < variables.size(); ++i) {
      memory[i].resize(variables[i].bytes());
      binding.values.push_back(memory[i]);
    }
  }
  WorkerModel(const WorkerModel&) = delete;
  WorkerModel& operator=(const WorkerModel&) = delete;

  // Fills floats and doubles with a wave of that phase, other types with its bytes.
  void Fill(double phase) {
    for (size_t i = 0; i < memory.size(); ++i) FillOne(i, phase + static_cast<double>(i));
  }
  template <typename T>
  std::vector<T> Values(size_t variable) const {
    std::vector<T> values(memory[variable].size() / sizeof(T));
    if (!values.empty()) std::memcpy(values.data(), memory[variable].data(), values.size() * sizeof(T));
    return values;
  }

  std::vector<std::vector<std::byte>> memory;  // one per variable
  ModelBinding binding;

 private:
  void FillOne(size_t variable, double phase) {
    const auto fill = [&](auto zero) {
      using T = decltype(zero);
      for (size_t i = 0; i < memory[variable].size() / sizeof(T); ++i) {
        const T value = static_cast<T>(100 * std::sin(phase + 0.37 * static_cast<double>(i)));
        std::memcpy(memory[variable].data() + i * sizeof(T), &value, sizeof(T));
      }
    };
    switch (binding.variables[variable].dtype) {
      case DType::kFloat32:
        return fill(float{});
      case DType::kFloat64:
        return fill(double{});
      default:
        return fill(int8_t{});
    }
  }
};

// Sums a client's channels.
inline Channel::Stats TrafficOf(const StoreClient& client) {
  Channel::Stats total;
  for (int ps = 0; ps < client.num_ps(); ++ps) {
    const Channel::Stats stats = client.ps_calls().TrafficStats(ps);
    total.bytes_sent += stats.bytes_sent;
    total.bytes_received += stats.bytes_received;
    total.calls += stats.calls;
  }
  return total;
}

// Long, because no keeper renews the leases of a test's clients while their calls are delayed.
inline constexpr LeaseOptions kUnrenewedLease = {.lease = absl::Seconds(10)};

class SimulatedStore {
 public:
  // `direct`: the ps give their memory to workers that want to apply their own updates.
  SimulatedStore(int num_ps, std::vector<std::string> workers, LeaseOptions lease = kUnrenewedLease,
                 ArenaProbe* probe = nullptr, bool direct = false)
      : workers_(std::move(workers)), lease_(lease), probe_(probe), direct_(direct) {
    for (int i = 0; i < num_ps; ++i) {
      memories_.push_back(*ArenaMemory::Create());
      addresses_.push_back(absl::StrCat("ps", i, ":2222"));
      servers_.emplace_back();
      StartPs(i);
    }
  }
  ~SimulatedStore() {
    world.End();
    for (size_t i = 0; i < servers_.size(); ++i) KillPs(static_cast<int>(i));
  }
  SimulatedStore(const SimulatedStore&) = delete;
  SimulatedStore& operator=(const SimulatedStore&) = delete;

  // Acts as a killed process: its connections break, its memory is gone except for what the supervisor keeps.
  void KillPs(int ps) {
    servers_[ps].listener.reset();
    servers_[ps].wrapper.reset();
    servers_[ps].service.reset();
    servers_[ps].port.reset();
  }
  // Acts as a kill by hand: the supervisor, and what it kept, are gone too.
  void LosePs(int ps) {
    KillPs(ps);
    memories_[ps] = *ArenaMemory::Create();
  }
  // These are about ps that are started from now on. Makes the handler between a ps and its clients.
  std::function<std::unique_ptr<RequestHandler>(StoreService&)> wrap;
  std::function<std::optional<uint64_t>()> supervisor_count;  // as StoreOptions
  absl::Duration linger = kUsualLinger;                       // likewise
  void KeepMemories() { direct_ = false; }                    // they don't give their memory away
  // Starts a new life under the old address. `files`: the disk that this ps sees, if not everybody's.
  void StartPs(int ps, FileSystem* files = nullptr, const std::string& model_dir = "") {
    Server& server = servers_[ps];
    server.transport = std::make_unique<SimulatedTransport>(network, loop);
    if (direct_) server.port = *ArenaListener::Open();
    server.service = std::make_unique<StoreService>(
        loop, StoreOptions{.task = absl::StrCat("ps:", ps),
                           .lead = ps == 0,
                           .workers = workers_,
                           .lease = lease_,
                           .incarnation = ++incarnations_,
                           .linger = linger,
                           .files = files != nullptr ? files : &this->files,
                           .model_dir = model_dir,
                           .background = [this](absl::AnyInvocable<void()> task) { loop.Post(std::move(task)); },
                           .memory = *ArenaMemory::Adopt(memories_[ps]->fd()),
                           .port = server.port.get(),
                           .probe = probe_,
                           .supervisor_count = supervisor_count});
    MUSTER_CHECK(server.service->Recover().ok());
    if (wrap) server.wrapper = wrap(*server.service);
    RequestHandler& handler = server.wrapper ? *server.wrapper : *server.service;
    server.listener = server.transport->Listen(addresses_[ps], handler).value();
  }

  StoreService& service(int ps) { return *servers_[ps].service; }
  PartSnapshot Snapshot(int ps) { return TakeSnapshot(*service(ps).MakeView().arena); }
  const std::vector<std::string>& addresses() const { return addresses_; }

  // Returns a client of a new process that is `task`, with its own connections and incarnation.
  std::unique_ptr<StoreClient> Client(const std::string& task, StoreClientOptions options = {}) {
    return std::make_unique<StoreClient>(clients_, addresses_, Complete(task, std::move(options)));
  }
  // Likewise, but its requests meet the faults of `script`, which must outlive the client.
  std::unique_ptr<StoreClient> Client(const std::string& task, FaultScript& script, StoreClientOptions options = {}) {
    return std::make_unique<StoreClient>(client_transport(script), addresses_, Complete(task, std::move(options)));
  }
  // For other kinds of clients: the network, without faults or with those of `script`, which must outlive the store.
  Transport& client_transport() { return clients_; }
  Transport& client_transport(FaultScript& script) {
    faulty_.push_back(std::make_unique<SimulatedTransport>(network, loop, &script));
    return *faulty_.back();
  }

  // Lets `duration` pass, with all that happens in it.
  void Pass(absl::Duration duration) {
    loop.RunUntil([] { return false; }, loop.Now() + duration);
  }

  SimulatedWorld world;
  EventLoop& loop = world.loop();
  const Clock& clock = world.clock();
  SimulatedNetwork network{loop};
  MemoryFileSystem files;

 private:
  struct Server {
    std::unique_ptr<SimulatedTransport> transport;
    std::unique_ptr<ArenaListener> port;
    std::unique_ptr<StoreService> service;
    std::unique_ptr<RequestHandler> wrapper;  // may be null
    std::unique_ptr<Listener> listener;
  };

  StoreClientOptions Complete(const std::string& task, StoreClientOptions options) {
    options.task = task;
    options.incarnation = ++incarnations_;
    options.round_sleep = absl::ZeroDuration();
    options.where = absl::StrCat("life ", options.incarnation);
    return options;
  }

  const std::vector<std::string> workers_;
  const LeaseOptions lease_;
  ArenaProbe* const probe_;
  bool direct_;
  std::vector<std::shared_ptr<ArenaMemory>> memories_;  // what the supervisor keeps of each ps
  std::vector<std::string> addresses_;
  std::vector<Server> servers_;
  SimulatedTransport clients_{network, loop};
  std::vector<std::unique_ptr<SimulatedTransport>> faulty_;
  uint64_t incarnations_ = 100;
};

}  // namespace muster
