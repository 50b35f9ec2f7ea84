// While it lives, all files and folders that this process makes are its owner's alone (umask 077), however open the
// folder is in which they are made. The process's children inherit that: programs of the user get users_umask() back.
// One at a time, in a process with one thread.
#pragma once

#include <sys/stat.h>
#include <sys/types.h>

namespace muster {

class PrivateFiles {
 public:
  PrivateFiles() : users_umask_(umask(077)) {}
  ~PrivateFiles() { umask(users_umask_); }
  PrivateFiles(const PrivateFiles&) = delete;
  PrivateFiles& operator=(const PrivateFiles&) = delete;

  mode_t users_umask() const { return users_umask_; }

 private:
  const mode_t users_umask_;
};

}  // namespace muster
