// Files through which the processes of a benchmark signal each other: a process that sees the name can read the whole
// content.
#pragma once

#include <chrono>
#include <filesystem>
#include <fstream>
#include <string>
#include <thread>

namespace muster::bench {

// Writes the file atomically.
inline void WriteWhole(const std::string& path, const std::string& text) {
  std::ofstream(path + ".part") << text;
  std::filesystem::rename(path + ".part", path);
}

// Blocks until the file exists, which is noticed within a millisecond; false: `limit` has passed.
[[nodiscard]] inline bool AwaitFile(const std::string& path, std::chrono::duration<double> limit) {
  const auto start = std::chrono::steady_clock::now();
  while (!std::filesystem::exists(path)) {
    if (std::chrono::steady_clock::now() - start > limit) return false;
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace muster::bench
