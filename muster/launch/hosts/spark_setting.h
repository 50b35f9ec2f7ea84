// What a job of Spark is asked for that holds an experiment (docs/spark.md). Plain values and pure functions.
#pragma once

#include <map>
#include <optional>
#include <string>

#include "absl/status/status.h"
#include "absl/time/time.h"

namespace muster {

inline constexpr char kUsualSparkPython[] = "python3";

struct SparkSetting {
  int nodes = 1;        // tasks of Spark, each with a part of the experiment
  std::string address;  // a master, as spark-submit's --master; empty: the one of spark-defaults.conf
  std::string python;   // a program that has pyspark; empty: kUsualSparkPython
  // How long the application may wait for its slots.
  absl::Duration start_timeout = absl::Minutes(10);
  std::map<std::string, std::string> conf;  // Spark's own settings, by name

  bool operator==(const SparkSetting&) const = default;
};

// Takes one setting, as the experiment file and a flag give it: nodes, address, python, start_timeout, or conf.NAME.
// nullopt: back to what it is unless stated. InvalidArgument says what is accepted.
[[nodiscard]] absl::Status TakeSparkSetting(SparkSetting& spark, const std::string& name,
                                            const std::optional<std::string>& value);

}  // namespace muster
