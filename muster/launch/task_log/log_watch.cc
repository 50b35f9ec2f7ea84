#include "muster/launch/task_log/log_watch.h"

#include <sys/inotify.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstring>

namespace muster {
namespace {

// Returns "/" for "/a", "." for "a".
std::string LogFolderAbove(const std::string& folder) {
  const size_t slash = folder.find_last_of('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : folder.substr(0, slash);
}

}  // namespace

LogWatch::LogWatch(IsLocal is_local) : is_local_(is_local), fd_(inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {}

LogWatch::~LogWatch() {
  if (fd_ >= 0) close(fd_);
}

// Returns a watch descriptor, or -1 and errno.
int LogWatch::Watch(const std::string& folder, bool files) {
  const uint32_t events = IN_CREATE | IN_MOVED_TO | (files ? IN_MODIFY | IN_DELETE : 0U);
  return inotify_add_watch(fd_, folder.c_str(), events | IN_ONLYDIR | IN_MASK_ADD);
}

LogWatch::Seen LogWatch::Add(const std::string& folder, size_t key, bool files) {
  if (fd_ < 0) return Seen::kCannotWatch;
  for (;;) {
    const int watch = Watch(folder, files);
    // What other hosts write isn't reported.
    if (watch >= 0 && !is_local_(folder)) return Seen::kCannotWatch;
    if (watch >= 0) {
      watched_[watch].push_back(key);
      return Seen::kWatched;
    }
    if (errno != ENOENT) return Seen::kCannotWatch;
    std::string missing = folder;
    int above = -1;
    while (above < 0) {
      const std::string parent = LogFolderAbove(missing);
      if (parent == missing) return Seen::kCannotWatch;
      above = Watch(parent, false);
      if (above < 0 && errno != ENOENT) return Seen::kCannotWatch;
      if (above >= 0 && !is_local_(parent)) return Seen::kCannotWatch;
      if (above < 0) missing = parent;
    }
    // It may have appeared before it was watched.
    if (access(missing.c_str(), F_OK) == 0) continue;
    awaited_[above].push_back(key);
    return Seen::kNotThere;
  }
}

bool LogWatch::Changed(std::vector<size_t>& keys) {
  bool all = true;
  if (fd_ < 0) return all;
  alignas(inotify_event) char events[16 << 10];
  for (;;) {
    const ssize_t got = read(fd_, events, sizeof events);
    if (got < 0 && errno == EINTR) continue;
    if (got <= 0) return all;
    for (ssize_t at = 0; at < got;) {
      inotify_event event = {};
      std::memcpy(&event, events + at, sizeof event);
      at += static_cast<ssize_t>(sizeof event) + event.len;
      if ((event.mask & IN_Q_OVERFLOW) != 0) all = false;
      if (const auto found = watched_.find(event.wd); found != watched_.end())
        keys.insert(keys.end(), found->second.begin(), found->second.end());
      if (const auto found = awaited_.find(event.wd); found != awaited_.end()) {
        keys.insert(keys.end(), found->second.begin(), found->second.end());
        awaited_.erase(found);
      }
      if ((event.mask & IN_IGNORED) != 0) watched_.erase(event.wd);
    }
  }
}

}  // namespace muster
