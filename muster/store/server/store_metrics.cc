#include "muster/store/server/store_metrics.h"

#include <map>
#include <nlohmann/json.hpp>

#include "absl/status/status.h"
#include "muster/observe/prometheus_text.h"
#include "muster/observe/step_table_json.h"

namespace muster {
namespace {

using Json = nlohmann::json;

double Number(const Json& value) { return value.get<double>(); }

// Returns the counts by staleness as a histogram whose bounds are powers of two. What the page counts as "64 or more"
// is above the last bound, and counts as 64 in the sum.
HistogramSnapshot StalenessOf(const Json& counts) {
  HistogramSnapshot histogram{.bounds = {0, 1, 2, 4, 8, 16, 32, 63}, .counts = std::vector<uint64_t>(9), .sum = 0};
  for (size_t staleness = 0; staleness < counts.size(); ++staleness) {
    const auto count = counts.at(staleness).get<uint64_t>();
    size_t bucket = 0;
    while (bucket < histogram.bounds.size() && static_cast<double>(staleness) > histogram.bounds[bucket]) ++bucket;
    histogram.counts[bucket] += count;
    histogram.count += count;
    histogram.sum += static_cast<double>(staleness * count);
  }
  return histogram;
}

void AddClients(const Json& clients, PrometheusText& text) {
  std::map<std::string, int> states = {{"alive", 0}, {"done", 0}, {"lost", 0}, {"not joined", 0}};
  for (const Json& client : clients) ++states[client.at("state").get<std::string>()];
  for (const auto& [state, count] : states)
    text.Gauge("muster_clients", "Workers of the job by state.", count, {{"state", state}});
  for (const Json& client : clients)
    text.Counter("muster_pushes_total", "Pushes of each worker that were applied here, its own direct ones included.",
                 Number(client.at("pushes")), {{"client", client.at("task").get<std::string>()}});
  for (const Json& client : clients)
    if (client.contains("last_heard_seconds"))
      text.Gauge("muster_client_last_heard_seconds", "Since each worker was heard of.",
                 Number(client.at("last_heard_seconds")), {{"client", client.at("task").get<std::string>()}});
  for (const Json& client : clients)
    if (client.contains("waiting_seconds"))
      text.Gauge("muster_client_waiting_seconds", "For how long each worker that waits has been waiting for others.",
                 Number(client.at("waiting_seconds")), {{"client", client.at("task").get<std::string>()}});
}

void AddAll(const Json& status, const Track& track, PrometheusText& text) {
  text.Gauge("muster_uptime_seconds", "Since this process began to serve.", Number(status.at("uptime_seconds")));
  text.Gauge("muster_ready", "1: this ps has the model.", status.at("state") == "ready" ? 1 : 0);
  text.Gauge("muster_global_step", "Updates that count, of all tasks; ps 0 counts them.",
             Number(status.at("global_step")));
  text.Counter("muster_minibatches_total", "Minibatches that were counted with the updates (ps 0).",
               Number(status.at("minibatches")));
  text.Counter("muster_updates_total", "Updates applied here.", Number(status.at("version")));
  text.Gauge("muster_value_bytes", "Of the variables here.", Number(status.at("value_bytes")));
  text.Gauge("muster_slot_bytes", "Of the optimizer's slots here.", Number(status.at("slot_bytes")));
  text.Counter("muster_received_bytes_total", "From all peers.", Number(status.at("bytes_received")));
  text.Counter("muster_sent_bytes_total", "To all peers.", Number(status.at("bytes_sent")));
  text.Gauge("muster_connections", "Open ones.", Number(status.at("connections")));
  text.Gauge("muster_connections_in_handshake", "Open ones that haven't proved that they belong to the job.",
             Number(status.at("in_handshake")));
  for (const auto& [why, key] : {std::pair{"handshake", "dropped_handshake"}, std::pair{"room", "dropped_for_room"},
                                 std::pair{"malformed", "dropped_malformed"}})
    text.Counter("muster_dropped_connections_total", "By reason; `room` (for newer ones) is part of `handshake`.",
                 Number(status.at(key)), {{"why", why}});
  for (const auto& [method, count] : status.at("requests").items())
    text.Counter("muster_requests_total", "By method.", Number(count), {{"method", method}});
  text.Histogram("muster_staleness", "Updates of others between the pull and the push of a step.",
                 StalenessOf(status.at("staleness")));
  AddClients(status.at("clients"), text);
  if (status.contains("gate")) {
    text.Gauge("muster_round", "Of the synchronous gate, being collected.", Number(status.at("gate").at("round")));
    text.Gauge("muster_round_contributors", "Gradients that it has.", Number(status.at("gate").at("contributors")));
    text.Counter("muster_dropped_total", "Pushes that came too late for their round.",
                 Number(status.at("gate").at("dropped")));
  }
  AddStepTimes(track, text);
}

}  // namespace

absl::StatusOr<std::string> StoreMetricsText(const std::string& status, const Track& track) {
  const Json page = Json::parse(status, nullptr, /*allow_exceptions=*/false);
  try {
    PrometheusText text(PrometheusText::Labels{{"task", page.at("task").get<std::string>()}});
    AddAll(page, track, text);
    return text.text();
  } catch (const Json::exception&) {
    return absl::InvalidArgumentError("that is no status of a ps");
  }
}

}  // namespace muster
