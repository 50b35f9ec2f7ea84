// Several hosts on this machine, each with a real sshd: h1, h2, … and the test's own place h0, at one switch
// (10.77.0.10 for h0, 10.77.0.11 for h1). A host has its own network, name, processes, shared memory, /tmp, /run, home
// directory and boot id; the rest of the file system is this machine's, so programs lie at the same paths everywhere.
// The test itself stays where it is, and starts what belongs to h0 by the words that On("h0", …) returns.
//
// Everything is in namespaces without names that the test's children hold, and these die with the test, also when it is
// killed: nothing is left behind, and several tests have hosts at once. Needs root. Whatever fails makes the test fail.
// Used by one thread, which must outlive the object.
#pragma once

#include <sys/types.h>

#include <map>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "muster/base/testing/scratch_folder.h"
#include "tests/process/testing/process.h"

namespace muster {

// Returns `why`, which is the test's failure in CI.
std::string NoTestBecause(const std::string& why);

class SimulatedHosts {
 public:
  // A process of a host: its number here, and its words with spaces between them.
  struct Running {
    pid_t pid = 0;
    std::string words;
    // Returns the name of its program: "sshd" of "sshd: root@notty" and of "/usr/sbin/sshd -D -R".
    std::string program() const;
  };

  // Returns why there can be no simulated hosts here; "" where they must work. In CI (the variable CI) a reason is the
  // test's failure, too: there nobody would notice that these tests are skipped.
  static std::string WhyNot();

  // Starts h0 to h<count>, and waits until each sshd accepts connections.
  explicit SimulatedHosts(int count);
  ~SimulatedHosts();
  SimulatedHosts(const SimulatedHosts&) = delete;
  SimulatedHosts& operator=(const SimulatedHosts&) = delete;

  const std::vector<std::string>& names() const { return names_; }  // without h0
  static std::string AddressOf(const std::string& host);
  // A file for `ssh -F`, with which h0 logs in to every host by a key. It says nothing of BatchMode and timeouts.
  std::string ssh_config() const { return scratch_ / "ssh_config"; }
  // A folder that all hosts see at the same path, as they would see one of a file server.
  const std::string& shared() const { return shared_; }
  // The home directory of the user on every host.
  static std::string home() { return "/run/home"; }

  // Returns the words that run `words` on a host, for Process. On h0 the process is the program itself; on another host
  // it waits for the program, which dies with it.
  std::vector<std::string> On(const std::string& host, const std::vector<std::string>& words) const;

  // All frames from and to the host vanish; every link stays up.
  void Cut(const std::string& host);
  void Heal(const std::string& host);
  // All frames from the host to these others vanish, so no connection between it and one of them comes about, whoever
  // begins it. With all others the host goes on to talk. Not after a restart of the host.
  void CutFrom(const std::string& host, const std::vector<std::string>& others) const;
  void HealFrom(const std::string& host, const std::vector<std::string>& others) const;
  // The host loses its power: no frame leaves it any more, and all its processes are gone when this returns.
  void Crash(const std::string& host);
  // Starts a host that has crashed: with nothing on its disks and another boot id. Waits for its sshd.
  void Restart(const std::string& host);
  bool is_up(const std::string& host) const { return hosts_.at(host).process != nullptr; }
  // Kills the processes of sshd that serve connections to the host.
  void CutSsh(const std::string& host);

  // Returns the host's first process, its sshd. It waits for all that has no other parent there, so its processor time
  // with that of its children is the time of all that has ended on the host.
  pid_t FirstOf(const std::string& host) const;
  // Returns what runs on a host, except sshd; nothing if it has crashed.
  std::vector<Running> ProcessesOf(const std::string& host) const;
  // Waits until nothing but sshd and these programs runs on a host. If it takes as long as a hanging test, it fails
  // with the words of what is left, and kills that.
  void AwaitNothingOn(const std::string& host, const std::set<std::string>& but = {}) const;

 private:
  struct Host {
    std::unique_ptr<Process> process;
    pid_t first = 0;  // its first process, whose death is the host's
    int first_fd = -1;
    std::string processes;  // its namespace of processes
  };

  void WriteKeys() const;
  void WriteSettings() const;
  // Returns what `ip -batch` makes a host's table of neighbours from.
  std::string Neighbours() const;
  void StartSwitch();
  void Start(const std::string& host);
  void AwaitStart(const std::string& host);
  void End(const std::string& name);
  // Writes into a host's table of neighbours where these others are.
  void SetNeighbours(const std::string& host, const std::vector<std::string>& others, bool reachable) const;
  // Runs a command of iproute2 at the switch.
  void AtSwitch(const std::vector<std::string>& words) const;
  std::vector<Running> AllProcessesOf(const std::string& host) const;

  const ScratchFolder scratch_;
  const std::string shared_;
  std::vector<std::string> names_;
  std::unique_ptr<Process> switch_;
  std::map<std::string, Host> hosts_;  // with h0
};

}  // namespace muster
