// For tests: a folder like /proc with made-up processes.
#pragma once

#include <gtest/gtest.h>
#include <sys/types.h>

#include <cstdint>
#include <string>

#include "absl/strings/str_cat.h"
#include "muster/base/testing/scratch_folder.h"

namespace muster {

class FakeProc : public ScratchFolder {
 public:
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
};

}  // namespace muster
