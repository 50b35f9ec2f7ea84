// For tests: a folder like /proc with made-up processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>
#include <unistd.h>

#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "absl/strings/str_cat.h"

namespace muster {

class FakeProc {
 public:
  FakeProc() {
    std::string path = testing::TempDir() + "fake_proc_XXXXXX";
    if (mkdtemp(path.data()) != nullptr) path_ = path;
  }
  ~FakeProc() { std::filesystem::remove_all(path_); }
  FakeProc(const FakeProc&) = delete;
  FakeProc& operator=(const FakeProc&) = delete;

  struct Process {
    pid_t pid = 0, parent = 1, group = 0, session = 0;
    int64_t user_ticks = 0, system_ticks = 0, childrens_user_ticks = 0, childrens_system_ticks = 0, pages = 0;
    std::string name = "python";
  };
  void Set(const Process& process) const {
    Write(absl::StrCat(process.pid, "/stat"),
          absl::StrCat(process.pid, " (", process.name, ") S ", process.parent, " ", process.group, " ",
                       process.session, " 0 -1 4194560 900 0 0 0 ", process.user_ticks, " ", process.system_ticks, " ",
                       process.childrens_user_ticks, " ", process.childrens_system_ticks, " 20 0 1 0 1000 99999999 ",
                       process.pages, " 18446744073709551615 1 1 0 0 0 0 0\n"));
  }
  // Writes any file, with its folders.
  void Write(const std::string& name, const std::string& text) const {
    const std::filesystem::path file = std::filesystem::path(path_) / name;
    std::filesystem::create_directories(file.parent_path());
    std::ofstream(file) << text;
  }

  const std::string& path() const { return path_; }

 private:
  std::string path_ = "/nonexistent";
};

}  // namespace muster
