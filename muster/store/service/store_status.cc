#include "muster/store/service/store_status.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "muster/base/text/one_line.h"
#include "muster/store/arena/shared_memory_order.h"

namespace muster {
namespace {

using OrderedJson = nlohmann::ordered_json;

OrderedJson VariablesJson(Arena& arena) {
  OrderedJson variables = OrderedJson::array();
  const StoreModel& model = arena.model();
  for (const PlacedSlice& slice : model.slices) {
    const VariableSpec& variable = model.variable(slice);
    variables.push_back({{"name", variable.name},
                         {"dtype", DTypeName(variable.dtype)},
                         {"shape", slice.shape},
                         {"shard", slice.shard},
                         {"shards", slice.num_shards},
                         {"bytes", slice.bytes}});
  }
  return variables;
}

// Shared memory if any connection has it: heartbeats have their own connection, over TCP.
const char* TransportName(const ClientTable::Client& client, const Listener::Stats& listener) {
  if (client.connections.empty()) return "";
  const auto& shared = listener.in_shared_memory;
  return std::any_of(shared.begin(), shared.end(), [&](ConnectionId id) { return client.connections.contains(id); })
             ? "shared memory"
             : "tcp";
}

OrderedJson ClientsJson(const StoreService::View& view) {
  const ClientTable& clients = *view.clients;
  const absl::Time now = view.now;
  OrderedJson rows = OrderedJson::array();
  for (size_t i = 0; i < clients.clients().size(); ++i) {
    const ClientTable::Client& client = clients.clients()[i];
    const WaitingFor& waiting = view.waiting[i];
    const bool joined = client.incarnation != 0;
    OrderedJson row = {
        {"task", client.task},
        {"state", !joined                      ? "not joined"
                  : client.done                ? "done"
                  : !client.excluded.empty()   ? "excluded"
                  : clients.Alive(client, now) ? "alive"
                                               : "lost"},
        {"connections", client.connections.size()},
        {"transport", TransportName(client, view.listener)},
        {"pushes", client.pushes + (view.arena != nullptr ? view.arena->client(static_cast<int>(i)).direct_pushes : 0)},
        {"dropped_non_finite", client.non_finite},
        {"where", client.where},
        {"waiting_for", waiting.what.empty() ? client.waiting_for : waiting.what}};
    if (!waiting.what.empty())
      row["waiting_seconds"] = absl::ToDoubleSeconds(std::max(now - waiting.since, absl::ZeroDuration()));
    if (joined) row["last_heard_seconds"] = absl::ToDoubleSeconds(now - client.last_heard);
    rows.push_back(std::move(row));
  }
  return rows;
}

OrderedJson QueuesJson(const StoreService::View& view) {
  OrderedJson queues = OrderedJson::array();
  for (const FifoQueues::View& queue : view.queues) {
    OrderedJson waiting = OrderedJson::array();
    for (const FifoQueues::Waiter& wait : queue.waiting)
      waiting.push_back({{"task", wait.task},
                         {"what", wait.what},
                         {"seconds", absl::ToDoubleSeconds(std::max(view.now - wait.since, absl::ZeroDuration()))}});
    queues.push_back({{"name", queue.spec.name},
                      {"capacity", queue.spec.capacity},
                      {"elements", queue.elements},
                      {"element_bytes", queue.element_bytes},
                      {"closed", queue.closed},
                      {"enqueued", queue.enqueued},
                      {"dequeued", queue.dequeued},
                      {"waiting", std::move(waiting)}});
  }
  return queues;
}

OrderedJson WorkJson(const WorkQueue::View& work, const ClientTable& clients) {
  OrderedJson hands = OrderedJson::array();
  for (const WorkQueue::View::Hand& hand : work.hands)
    hands.push_back({{"task", clients.clients()[static_cast<size_t>(hand.client)].task},
                     {"units", hand.units},
                     {"waits", hand.waits}});
  return {{"name", work.spec.name},     {"rows", work.spec.rows},   {"rows_per_unit", work.spec.rows_per_unit},
          {"epochs", work.spec.epochs}, {"epoch", work.epoch},      {"handed_out", work.next},
          {"returned", work.returned},  {"hands", std::move(hands)}};
}

// Adds the synchronous gate and the staleness bound, if the model has them.
void AddGates(Arena& arena, const std::string& who_waits, OrderedJson& status) {
  const StoreModel& model = arena.model();
  if (model.gated()) {
    const GateCounters& gate = arena.header().gate;
    status["gate"] = {{"replicas_to_aggregate", model.gate.replicas_to_aggregate},
                      {"total_replicas", model.gate.total_replicas},
                      {"elastic", model.gate.elastic},
                      {"round", gate.round},
                      {"contributors", gate.contributors},
                      {"dropped", gate.dropped},
                      {"waits", who_waits}};
  }
  if (model.clock_limit > 0) status["staleness_bound"] = model.clock_limit - 1;
  if (model.ordered) status["ordered"] = true;
}

// The staleness counts without the empty tail; the last possible entry means "that or more".
OrderedJson StalenessJson(const std::vector<uint64_t>& counts) {
  size_t used = counts.size();
  while (used > 0 && counts[used - 1] == 0) --used;
  return std::vector<uint64_t>(counts.begin(), counts.begin() + static_cast<std::ptrdiff_t>(used));
}

std::string Bytes(double bytes) {
  if (bytes < 1e3) return absl::StrFormat("%.0f B", bytes);
  if (bytes < 1e6) return absl::StrFormat("%.1f kB", bytes / 1e3);
  if (bytes < 1e9) return absl::StrFormat("%.1f MB", bytes / 1e6);
  return absl::StrFormat("%.2f GB", bytes / 1e9);
}

// For a terminal: names are the peers' words.
std::string Text(const OrderedJson& value) { return OneLine(value.get<std::string>()); }

void AppendQueues(const OrderedJson& status, std::string& out) {
  if (!status.contains("queues")) return;
  absl::StrAppend(&out, "\nqueues\n");
  for (const OrderedJson& queue : status.at("queues")) {
    absl::StrAppendFormat(&out, "  %-40s %d of %d elements of %s, %d enqueued, %d dequeued%s\n", Text(queue.at("name")),
                          queue.at("elements").get<uint64_t>(), queue.at("capacity").get<uint64_t>(),
                          Bytes(static_cast<double>(queue.at("element_bytes").get<uint64_t>())),
                          queue.at("enqueued").get<uint64_t>(), queue.at("dequeued").get<uint64_t>(),
                          queue.at("closed").get<bool>() ? ", closed" : "");
    for (const OrderedJson& wait : queue.at("waiting"))
      absl::StrAppendFormat(&out, "    %s waits for %s since %.1f s\n", Text(wait.at("task")), Text(wait.at("what")),
                            wait.at("seconds").get<double>());
  }
}

void AppendWork(const OrderedJson& status, std::string& out) {
  if (!status.contains("work")) return;
  const OrderedJson& work = status.at("work");
  const auto epochs = work.at("epochs").get<int64_t>();
  absl::StrAppendFormat(&out, "\nwork queue %s: epoch %d%s, %d of %d rows handed out, %d units have come back\n",
                        Text(work.at("name")), work.at("epoch").get<int64_t>(),
                        epochs == 0 ? "" : absl::StrCat(" of ", epochs), work.at("handed_out").get<int64_t>(),
                        work.at("rows").get<int64_t>(), work.at("returned").get<uint64_t>());
  for (const OrderedJson& hand : work.at("hands"))
    absl::StrAppendFormat(&out, "  %-12s has %d units%s\n", Text(hand.at("task")), hand.at("units").get<uint64_t>(),
                          hand.at("waits").get<bool>() ? ", and waits for what others have" : "");
}

std::string RenderTable(const OrderedJson& status) {
  std::string out = absl::StrFormat("%s  %s  up %.1f s\n", Text(status.at("task")), Text(status.at("state")),
                                    status.at("uptime_seconds").get<double>());
  absl::StrAppendFormat(&out, "global step %d  minibatches %d  updates here %d  rule %s\n",
                        status.at("global_step").get<int64_t>(), status.at("minibatches").get<int64_t>(),
                        status.at("version").get<uint64_t>(), Text(status.at("rule")));
  absl::StrAppendFormat(&out, "values %s  slots %s  received %s  sent %s\n",
                        Bytes(status.at("value_bytes").get<double>()), Bytes(status.at("slot_bytes").get<double>()),
                        Bytes(status.at("bytes_received").get<double>()), Bytes(status.at("bytes_sent").get<double>()));
  absl::StrAppendFormat(
      &out, "connections %d  in handshake %d  dropped at handshake %d (for newer ones %d)  dropped as malformed %d\n",
      status.at("connections").get<uint64_t>(), status.at("in_handshake").get<uint64_t>(),
      status.at("dropped_handshake").get<uint64_t>(), status.at("dropped_for_room").get<uint64_t>(),
      status.at("dropped_malformed").get<uint64_t>());
  if (!status.at("requests").empty()) absl::StrAppend(&out, "\nrequests\n");
  for (const auto& [method, count] : status.at("requests").items())
    absl::StrAppendFormat(&out, "  %-20s %d\n", method, count.get<uint64_t>());
  const OrderedJson& rows = status.at("rows");
  if (rows.at("gathered").get<uint64_t>() + rows.at("pushed").get<uint64_t>() > 0)
    absl::StrAppendFormat(&out, "\nrows of tables: %d gathered, %d pushed\n", rows.at("gathered").get<uint64_t>(),
                          rows.at("pushed").get<uint64_t>());
  if (!status.at("staleness").empty()) absl::StrAppend(&out, "\nstaleness (updates of others between pull and push)\n");
  for (size_t i = 0; i < status.at("staleness").size(); ++i)
    if (const auto count = status.at("staleness").at(i).get<uint64_t>(); count > 0)
      absl::StrAppendFormat(&out, "  %-20d %d\n", i, count);
  if (status.contains("gate")) {
    const OrderedJson& gate = status.at("gate");
    absl::StrAppendFormat(&out, "\nround %d: %d of %d contributors%s, %d pushes dropped\n",
                          gate.at("round").get<uint64_t>(), gate.at("contributors").get<uint64_t>(),
                          gate.at("replicas_to_aggregate").get<uint64_t>(),
                          gate.at("elastic").get<bool>() ? " (elastic)" : "", gate.at("dropped").get<uint64_t>());
    if (!Text(gate.at("waits")).empty()) absl::StrAppend(&out, Text(gate.at("waits")), "\n");
  }
  if (!status.at("clients").empty()) absl::StrAppend(&out, "\nclients\n");
  for (const OrderedJson& client : status.at("clients")) {
    std::string since;
    if (client.contains("waiting_seconds"))
      since = absl::StrFormat(" since %.1f s", client.at("waiting_seconds").get<double>());
    const uint64_t non_finite = client.at("dropped_non_finite").get<uint64_t>();
    absl::StrAppendFormat(&out, "  %-12s %-10s %-13s pushes %-8d %s%s%s%s%s\n", Text(client.at("task")),
                          Text(client.at("state")), Text(client.at("transport")), client.at("pushes").get<uint64_t>(),
                          non_finite == 0 ? "" : absl::StrFormat("(%d with NaN dropped) ", non_finite),
                          Text(client.at("where")), Text(client.at("waiting_for")).empty() ? "" : "  waits for ",
                          Text(client.at("waiting_for")), since);
  }
  AppendQueues(status, out);
  AppendWork(status, out);
  if (!status.at("variables").empty()) absl::StrAppend(&out, "\nvariables\n");
  for (const OrderedJson& variable : status.at("variables")) {
    std::string name = Text(variable.at("name"));
    if (variable.at("shards").get<int>() > 1) absl::StrAppend(&name, "/part_", variable.at("shard").get<int>());
    absl::StrAppendFormat(&out, "  %-40s %s%s  %s\n", name, Text(variable.at("dtype")), variable.at("shape").dump(),
                          Bytes(variable.at("bytes").get<double>()));
  }
  return out;
}

}  // namespace

std::string StatusJson(const StoreService::View& view) {
  OrderedJson status;
  status["task"] = view.options->task;
  status["state"] = !view.ending.empty() ? "ended" : view.arena != nullptr ? "ready" : "waiting for the chief";
  status["ending"] = view.ending;
  status["uptime_seconds"] = absl::ToDoubleSeconds(view.now - view.started);
  status["global_step"] = view.arena != nullptr ? Observe(view.arena->header().counters.global_step) : 0;
  status["minibatches"] = view.arena != nullptr ? Observe(view.arena->header().counters.minibatches) : 0;
  status["version"] = view.arena != nullptr ? Observe(view.arena->header().counters.updates) : 0;
  status["rule"] = view.arena != nullptr ? RuleName(view.arena->model().optimizer.rule.kind) : "";
  status["value_bytes"] = view.arena != nullptr ? view.arena->layout().value_bytes() : 0;
  status["slot_bytes"] = view.arena != nullptr ? view.arena->layout().slot_bytes() : 0;
  const int chief = view.clients->chief();
  status["chief"] = {{"task", chief >= 0 ? view.clients->clients()[chief].task : ""},
                     {"epoch", view.clients->chief_epoch()}};
  OrderedJson requests = OrderedJson::object();
  for (uint16_t method = 1; method < kStoreMethods; ++method)
    if (view.requests[method] > 0) requests[StoreMethodName(method)] = view.requests[method];
  status["requests"] = std::move(requests);
  status["rows"] = {{"gathered", view.rows.gathered}, {"pushed", view.rows.pushed}};
  status["staleness"] = StalenessJson(view.staleness);
  if (view.arena != nullptr) AddGates(*view.arena, view.who_waits, status);
  status["bytes_received"] = view.listener.bytes_received;
  status["bytes_sent"] = view.listener.bytes_sent;
  status["connections"] = view.listener.connections;
  status["in_handshake"] = view.listener.in_handshake;
  status["dropped_handshake"] = view.listener.dropped_handshake;
  status["dropped_for_room"] = view.listener.dropped_for_room;
  status["dropped_malformed"] = view.listener.dropped_malformed;
  status["clients"] = ClientsJson(view);
  if (!view.queues.empty()) status["queues"] = QueuesJson(view);
  if (view.work) status["work"] = WorkJson(*view.work, *view.clients);
  status["variables"] = view.arena != nullptr ? VariablesJson(*view.arena) : OrderedJson::array();
  // Names come from peers: replaces what isn't UTF-8 instead of throwing.
  return status.dump(-1, ' ', false, OrderedJson::error_handler_t::replace);
}

absl::StatusOr<std::string> StatusTable(const std::string& json) {
  const OrderedJson status = OrderedJson::parse(json, nullptr, /*allow_exceptions=*/false);
  if (!status.is_object()) return absl::InvalidArgumentError("the ps answered with something that is no status");
  try {
    return RenderTable(status);
  } catch (const nlohmann::json::exception&) {
    return absl::InvalidArgumentError("the ps is of another version: its status has to be looked at with --json");
  }
}

}  // namespace muster
