// Reads back what was written into an event file, for tests. Checksums are the business of summary/.
#pragma once

#include <cstdint>
#include <cstring>
#include <optional>
#include <protozero/pbf_reader.hpp>
#include <string>
#include <utility>
#include <vector>

#include "absl/strings/match.h"
#include "absl/strings/str_cat.h"
#include "muster/base/file_system.h"

namespace muster {

struct SummaryEvent {
  int64_t step = 0;
  std::vector<std::pair<std::string, float>> scalars;
  std::vector<std::pair<std::string, double>> histograms;  // how many values each holds
  int session_status = 0;                                  // 0: none
  std::string checkpoint_path;

  // "7: loss=0.5 accuracy=0.25", "7: START"
  std::string ToString() const {
    std::string text = absl::StrCat(step, ":");
    for (const auto& [tag, value] : scalars) absl::StrAppend(&text, " ", tag, "=", value);
    for (const auto& [tag, values] : histograms) absl::StrAppend(&text, " ", tag, " of ", values);
    const char* const statuses[] = {"", " START", " STOP", " CHECKPOINT "};
    return absl::StrCat(text, statuses[session_status], checkpoint_path);
  }
};

inline double HistogramValues(protozero::pbf_reader histogram) {
  double num = 0;
  while (histogram.next()) {
    if (histogram.tag() == 3) {
      num = histogram.get_double();
    } else {
      histogram.skip();
    }
  }
  return num;
}

inline void ReadSummary(protozero::pbf_reader summary, SummaryEvent& event) {
  while (summary.next(1)) {
    protozero::pbf_reader value = summary.get_message();
    std::pair<std::string, float> scalar;
    std::optional<double> histogram;
    while (value.next()) {
      if (value.tag() == 1) {
        scalar.first = value.get_string();
      } else if (value.tag() == 2) {
        scalar.second = value.get_float();
      } else if (value.tag() == 5) {
        histogram = HistogramValues(value.get_message());
      } else {
        value.skip();
      }
    }
    if (histogram) {
      event.histograms.emplace_back(std::move(scalar.first), *histogram);
    } else {
      event.scalars.push_back(std::move(scalar));
    }
  }
}

inline void ReadSessionLog(protozero::pbf_reader log, SummaryEvent& event) {
  while (log.next()) {
    if (log.tag() == 1) {
      event.session_status = log.get_enum();
    } else if (log.tag() == 2) {
      event.checkpoint_path = log.get_string();
    } else {
      log.skip();
    }
  }
}

// All events but the first, which says the format's version.
inline std::vector<SummaryEvent> ReadEventFile(const std::string& file) {
  constexpr size_t kLengthAndChecksum = 12;
  constexpr size_t kChecksum = 4;
  std::vector<SummaryEvent> events;
  for (size_t at = 0; at + kLengthAndChecksum < file.size();) {
    uint64_t length = 0;
    std::memcpy(&length, file.data() + at, sizeof length);
    protozero::pbf_reader record(file.data() + at + kLengthAndChecksum, length);
    SummaryEvent event;
    while (record.next()) {
      if (record.tag() == 2) {
        event.step = record.get_int64();
      } else if (record.tag() == 5) {
        ReadSummary(record.get_message(), event);
      } else if (record.tag() == 7) {
        ReadSessionLog(record.get_message(), event);
      } else {
        record.skip();
      }
    }
    if (at > 0) events.push_back(std::move(event));
    at += kLengthAndChecksum + length + kChecksum;
  }
  return events;
}

// Those of every event file of a directory, in TensorBoard's order; none where there is no such directory.
inline std::vector<SummaryEvent> ReadEventFiles(FileSystem& files, const std::string& directory) {
  std::vector<SummaryEvent> events;
  for (const std::string& name : files.ListDirectory(directory).value_or(std::vector<std::string>()))
    if (absl::StartsWith(name, "events."))
      for (SummaryEvent& event : ReadEventFile(*files.ReadFile(JoinPath(directory, name))))
        events.push_back(std::move(event));
  return events;
}

}  // namespace muster
