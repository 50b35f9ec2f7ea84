// The script of a job of Spark, for users to read: what is asked of Spark on one line, and the start of the driver
// (docs/spark_engine.md). Pure, thread-safe.
#pragma once

#include <string>

#include "muster/launch/engines/job_engine.h"

namespace muster {

// The file beside the script with what Spark and the driver write.
inline constexpr char kSparkLog[] = "spark.log";

// How a cluster of Spark is reached.
struct SparkPlace {
  std::string address;  // a master; empty: the one of spark-defaults.conf
  std::string python;   // a program that has pyspark

  // "ADDRESS PYTHON", "-" for no address; neither has a space.
  std::string text() const;
  static SparkPlace Parse(const std::string& text);
};

std::string SparkScript(const JobRequest& request, const SparkPlace& place);

}  // namespace muster
