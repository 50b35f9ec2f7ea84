#include "muster/launch/hosts/placement.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "absl/status/status.h"
#include "absl/strings/str_cat.h"
#include "muster/base/status_macros.h"
#include "muster/base/text/nearest_name.h"
#include "muster/launch/task/dispensable.h"

namespace muster {
namespace {

// What a host has left while tasks are dealt out.
struct Room {
  const Host* host;
  std::optional<int> slots;
  std::optional<int> gpus;
  int tasks = 0;

  bool Fits(int wanted_gpus) const {
    return (!slots.has_value() || *slots > 0) && (!gpus.has_value() || *gpus >= wanted_gpus);
  }
  void TakeGpus(int wanted) {
    if (gpus.has_value()) *gpus -= wanted;
  }
};

bool TakesSlot(const TaskId& task) { return task.job != kPsJob && task.job != kEvaluatorJob; }

// Deals out the tasks of one request.
class Placing {
 public:
  explicit Placing(const PlacementRequest& request) : request_(request) {
    for (const Host& host : request.hosts) rooms_.push_back({.host = &host, .slots = host.slots, .gpus = host.gpus});
  }

  absl::StatusOr<std::map<TaskId, std::string>> Run() {
    if (rooms_.empty()) return absl::InvalidArgumentError("no host to run on; accepted: --hosts a,b or a host file");
    RETURN_IF_ERROR(CheckExplicit());
    // Those whose host is given first, so that the others are dealt what is left; the evaluator goes where the fewest
    // are.
    for (const TaskToPlace& task : request_.tasks)
      if (request_.explicit_hosts.contains(task.task.job)) PlaceAsAsked(task);
    for (const TaskToPlace& task : request_.tasks)
      if (IsFree(task) && task.task.job != kEvaluatorJob) RETURN_IF_ERROR(Deal(task));
    for (const TaskToPlace& task : request_.tasks)
      if (IsFree(task) && task.task.job == kEvaluatorJob) RETURN_IF_ERROR(PlaceEvaluator(task));
    return std::move(placed_);
  }

 private:
  bool IsFree(const TaskToPlace& task) const { return !request_.explicit_hosts.contains(task.task.job); }

  absl::Status CheckExplicit() const {
    std::vector<std::string> names, jobs;
    for (const Room& room : rooms_) names.push_back(room.host->name);
    for (const TaskToPlace& task : request_.tasks) jobs.push_back(task.task.job);
    for (const auto& [job, hosts] : request_.explicit_hosts) {
      if (std::find(jobs.begin(), jobs.end(), job) == jobs.end())
        return absl::InvalidArgumentError(
            absl::StrCat("placement: the job '", job, "' has no tasks", NearestHint(job, jobs)));
      if (hosts.empty()) return absl::InvalidArgumentError(absl::StrCat("placement: ", job, " has no hosts"));
      for (const std::string& host : hosts)
        if (std::find(names.begin(), names.end(), host) == names.end())
          return absl::InvalidArgumentError(
              absl::StrCat("placement: ", job, ": '", host, "' is none of the hosts", NearestHint(host, names)));
    }
    return absl::OkStatus();
  }

  void Place(const TaskToPlace& task, Room& room) {
    if (TakesSlot(task.task) && room.slots.has_value()) --*room.slots;
    room.TakeGpus(task.gpus);
    ++room.tasks;
    placed_[task.task] = room.host->name;
  }

  void PlaceAsAsked(const TaskToPlace& task) {
    const std::vector<std::string>& hosts = request_.explicit_hosts.at(task.task.job);
    const std::string& name = hosts[static_cast<size_t>(task.task.index) % hosts.size()];
    Place(task, *std::find_if(rooms_.begin(), rooms_.end(), [&](const Room& room) { return room.host->name == name; }));
  }

  absl::Status Deal(const TaskToPlace& task) {
    size_t& turn = TakesSlot(task.task) ? next_trainer_ : next_server_;
    for (size_t tried = 0; tried < rooms_.size(); ++tried) {
      Room& room = rooms_[(turn + tried) % rooms_.size()];
      if (TakesSlot(task.task) ? !room.Fits(task.gpus) : room.gpus.value_or(task.gpus) < task.gpus) continue;
      turn = (turn + tried + 1) % rooms_.size();
      Place(task, room);
      return absl::OkStatus();
    }
    return NoRoomFor(task);
  }

  absl::Status PlaceEvaluator(const TaskToPlace& task) {
    Room* best = nullptr;
    for (Room& room : rooms_)
      if (room.gpus.value_or(task.gpus) >= task.gpus && (best == nullptr || room.tasks < best->tasks)) best = &room;
    if (best == nullptr) return NoRoomFor(task);
    Place(task, *best);
    return absl::OkStatus();
  }

  absl::Status NoRoomFor(const TaskToPlace& task) const {
    int trainers = 0, slots = 0, wanted_gpus = 0, gpus = 0;
    bool slots_are_limited = true;
    for (const TaskToPlace& one : request_.tasks) {
      trainers += TakesSlot(one.task) ? 1 : 0;
      wanted_gpus += one.gpus;
    }
    for (const Room& room : rooms_) {
      slots_are_limited = slots_are_limited && room.host->slots.has_value();
      slots += room.host->slots.value_or(0);
      gpus += room.host->gpus.value_or(0);
    }
    if (slots_are_limited && slots < trainers)
      return absl::InvalidArgumentError(absl::StrCat("no slot is left for ", task.task.ToString(), ": ", trainers,
                                                     " tasks train and ", HostsHave(slots, "slot"),
                                                     "; take fewer workers, more hosts or more slots"));
    return absl::InvalidArgumentError(absl::StrCat(
        "no host has room for ", task.task.ToString(), ", which needs ", task.gpus, task.gpus == 1 ? " GPU" : " GPUs",
        ": all tasks need ", wanted_gpus, " and ", HostsHave(gpus, "GPU"), "; take fewer workers or more hosts"));
  }

  std::string HostsHave(int number, const char* what) const {
    return absl::StrCat("the ", rooms_.size() == 1 ? "host has " : absl::StrCat(rooms_.size(), " hosts have "), number,
                        " ", what, number == 1 ? "" : "s");
  }

  const PlacementRequest& request_;
  std::vector<Room> rooms_;
  size_t next_trainer_ = 0;  // whose turn it is
  size_t next_server_ = 0;
  std::map<TaskId, std::string> placed_;
};

}  // namespace

std::optional<std::string> PlaceElsewhere(const MoveRequest& request) {
  const Host* best = nullptr;
  int fewest = 0;
  for (const Host& host : request.hosts) {
    int tasks = 0, slots = 0, gpus = 0;
    for (const auto& [task, name] : request.present) {
      if (name != host.name || task == request.task.task) continue;
      ++tasks;
      slots += TakesSlot(task) ? 1 : 0;
      const auto wanted = request.gpus.find(task);
      gpus += wanted == request.gpus.end() ? 0 : wanted->second;
    }
    if (TakesSlot(request.task.task) && host.slots.has_value() && slots >= *host.slots) continue;
    if (request.task.gpus > 0 && (gpus > 0 || host.gpus.value_or(0) < request.task.gpus)) continue;
    if (best != nullptr && tasks >= fewest) continue;
    best = &host;
    fewest = tasks;
  }
  return best == nullptr ? std::nullopt : std::optional(best->name);
}

absl::StatusOr<std::map<TaskId, std::string>> PlaceOnHosts(const PlacementRequest& request) {
  return Placing(request).Run();
}

std::set<std::string> DispensableHosts(const std::map<TaskId, std::string>& placement) {
  std::set<std::string> hosts;
  for (const auto& [task, host] : placement) hosts.insert(host);
  for (const auto& [task, host] : placement)
    if (!IsDispensable(task)) hosts.erase(host);
  return hosts;
}

}  // namespace muster
