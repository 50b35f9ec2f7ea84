// The parameters with which each algorithm of `muster algorithms` learns the digits in convergence_test.cc, and the
// step budgets. Rates are chosen for smooth curves: a run that jumps from minibatch to minibatch can't be compared with
// another.
#pragma once

#include <map>
#include <ostream>
#include <string>
#include <vector>

namespace muster {

struct ConvergenceSetting {
  std::string name;
  std::map<std::string, std::string> parameters;
  int minibatches = 0;  // per worker; a multiple of kConvergencePoint, and so of each window here
};

inline constexpr int kConvergenceWorkers = 4;
inline constexpr double kConvergenceAccuracy = 0.96;  // on the held-out digits
inline constexpr int kConvergencePoint = 20;          // minibatches per worker between two points of a curve

inline void PrintTo(const ConvergenceSetting& setting, std::ostream* stream) { *stream << setting.name; }

// In the table's order. 600 minibatches of each of four workers are 27 passes over the data.
inline const std::vector<ConvergenceSetting>& ConvergenceSettings() {
  static const std::vector<ConvergenceSetting> settings = {
      {"hogwild", {{"server_rule", "sgd:learning_rate=0.1"}}, 600},
      {"downpour",
       {{"window", "5"},
        {"fetch_window", "10"},
        {"worker_rule", "adagrad:learning_rate=0.02"},
        {"server_rule", "adagrad:learning_rate=0.03"}},
       600},
      {"downpour_easy", {{"window", "4"}, {"worker_rule", "sgd:learning_rate=0.05"}}, 600},
      {"agn", {{"window", "5"}, {"worker_rule", "sgd:learning_rate=0.3"}}, 600},
      {"adag", {{"window", "5"}, {"worker_rule", "sgd:learning_rate=0.3"}}, 600},
      {"dynsgd", {{"window", "5"}, {"worker_rule", "sgd:learning_rate=0.2"}}, 600},
      {"staleness_aware", {{"server_rule", "sgd:learning_rate=0.3"}}, 600},
      {"ssp", {{"bound", "3"}, {"server_rule", "sgd:learning_rate=0.1"}}, 600},
      {"synchronous", {{"server_rule", "sgd:learning_rate=0.4"}}, 600},
      {"synchronous_different_rates", {{"rates", "0.5,0.4,0.3,0.2"}, {"server_rule", "sgd:learning_rate=1"}}, 600},
      {"sagn",
       {{"window", "5"}, {"worker_rule", "sgd:learning_rate=0.1"}, {"server_rule", "adam:learning_rate=0.01"}},
       600},
      {"easgd", {{"beta", "0.9"}, {"worker_rule", "sgd:learning_rate=0.2"}}, 600},
      {"aeasgd", {{"window", "5"}, {"alpha", "0.2"}, {"worker_rule", "sgd:learning_rate=0.2"}}, 600},
      {"aeamsgd",
       {{"window", "5"}, {"alpha", "0.2"}, {"momentum", "0.9"}, {"worker_rule", "sgd:learning_rate=0.02"}},
       600},
      {"diloco",
       {{"window", "20"},
        {"worker_rule", "adamw:learning_rate=0.002"},
        {"server_rule", "momentum:learning_rate=0.7,momentum=0.9,nesterov=1"}},
       600},
      {"pipelined", {{"server_rule", "sgd:learning_rate=0.05"}}, 800},
      {"all_reduce", {{"server_rule", "sgd:learning_rate=0.4"}}, 600},
  };
  return settings;
}

}  // namespace muster
