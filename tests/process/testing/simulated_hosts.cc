#include "tests/process/testing/simulated_hosts.h"

#include <gtest/gtest.h>
#include <poll.h>
#include <signal.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "absl/functional/function_ref.h"
#include "absl/strings/match.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "absl/strings/str_format.h"
#include "absl/strings/str_replace.h"
#include "muster/base/files/file_system.h"
#include "muster/base/testing/built_at.h"
#include "muster/launch/system/pid_fd.h"
#include "tests/process/testing/by_hand.h"

namespace muster {
namespace {

namespace fs = std::filesystem;

constexpr char kHere[] = "h0";
constexpr char kReady[] = "is up\n";
const ProcessOptions kTogether = {.output_together = true};

constexpr char kSwitchScript[] = R"(
ip link add br0 type bridge forward_delay 0
ip link set br0 up
echo 'the switch is up'
exec sleep infinity
)";

// More hosts than this get fixed tables of their neighbours: one kernel keeps no more than 1,024 learned ones in all
// its networks together, and each host may talk to each.
constexpr int kMostLearning = 24;

// $1: the process that holds the switch, $2: the host's number, $3: the scratch folder of the hosts. In a new namespace
// of processes, $$ is 1. A host that is restarted has the same hardware address, as its neighbours remember it.
constexpr char kPlugScript[] = R"(
at_switch="nsenter --net=/proc/$1/ns/net ip link"
ip link set lo up
$at_switch add "p$2" type veth peer name eth0 address $(printf 02:00:0a:4d:00:%02x $2) netns $$
$at_switch set "p$2" master br0 up
ip addr add "10.77.0.$((10 + $2))/24" dev eth0
ip link set eth0 up
ip -batch "$3/neighbours"
)";

constexpr char kHereScript[] = R"(
echo 'h0 is up'
exec sleep infinity
)";

// $4: the home directory; the other words are folders that stay visible below what is hidden. Says first which number
// the host's first process has outside. The login shell is sh, and whether root is locked on this machine doesn't
// matter.
constexpr char kHostScript[] = R"(
read -r pid rest </proc/self/stat
echo "first process: $pid"
name=h$2 scratch=$3 home=$4
shift 4
hostname "$name"
mount -t proc proc /proc
mount -t tmpfs tmpfs /run
mkdir -p /run/sshd /run/user /run/kept "$home"
chmod 700 "$home"
i=0
for folder in "$@"; do
  i=$((i + 1))
  mkdir "/run/kept/$i"
  mount --rbind "$folder" "/run/kept/$i"
done
mount -t tmpfs -o mode=1777 tmpfs /tmp
mount -t tmpfs -o mode=1777 tmpfs /dev/shm
i=0
for folder in "$@"; do
  i=$((i + 1))
  mkdir -p "$folder"
  mount --move "/run/kept/$i" "$folder"
done
{ echo "root:x:0:0:root:$home:/bin/sh"; echo "guest:x:1234:1234:guest:$home-guest:/bin/sh"; grep -v '^root:' /etc/passwd
} >/run/passwd
{ echo 'root:*:19000::::::'; echo 'guest:*:19000::::::'; grep -v '^root:' /etc/shadow; } >/run/shadow
install -d -m 700 -o 1234 -g 1234 "$home-guest"
install -m 644 "$scratch/user_key.pub" /run/authorized_keys
cat /proc/sys/kernel/random/uuid >/run/boot_id
mount --bind /run/passwd /etc/passwd
mount --bind /run/shadow /etc/shadow
mount --bind /run/boot_id /proc/sys/kernel/random/boot_id
mount --bind "$scratch/hosts" /etc/hosts
cd "$home"
exec /usr/sbin/sshd -D -e -f "$scratch/sshd_config"
)";

// The session's processes say only what is wrong, so that they never fill the pipe, which nothing reads any more.
constexpr char kSshdConfig[] = R"(AddressFamily any
HostKey SCRATCH/host_key
AuthorizedKeysFile /run/authorized_keys
PidFile none
UsePAM no
StrictModes no
PermitRootLogin prohibit-password
PermitUserEnvironment yes
PasswordAuthentication no
UseDNS no
PrintMotd no
MaxStartups 3:50:6
Match Address *
LogLevel ERROR
)";

constexpr char kSshConfigOfAll[] = R"(Host *
User root
IdentityFile SCRATCH/user_key
IdentitiesOnly yes
IdentityAgent none
UserKnownHostsFile SCRATCH/known_hosts
GlobalKnownHostsFile /dev/null
StrictHostKeyChecking yes
)";

int NumberOf(const std::string& host) {
  int number = -1;
  EXPECT_TRUE(absl::StartsWith(host, "h") && absl::SimpleAtoi(host.substr(1), &number)) << host;
  return number;
}

std::vector<std::string> Shell(const std::string& script, const std::vector<std::string>& arguments) {
  return Joined({"sh", "-ec", script, "sh"}, arguments);
}

// Returns the words that run `words` until this process ends. The second look is for its death before the first.
std::vector<std::string> DyingWithTest(const std::vector<std::string>& words) {
  return Joined({"/usr/bin/env", "setpriv", "--pdeathsig", "KILL", "sh", "-c", "[ $PPID = \"$0\" ] && exec \"$@\"",
                 std::to_string(getpid())},
                words);
}

void Run(const std::vector<std::string>& words) {
  Process process(Joined({"/usr/bin/env"}, words));
  EXPECT_EQ(process.Wait(), 0) << process.err;
}

std::string NamespaceOf(pid_t pid, const std::string& kind) {
  std::error_code gone;
  return fs::read_symlink(absl::StrCat("/proc/", pid, "/ns/", kind), gone);
}

// Returns "" for a process that has ended.
std::string Read(const fs::path& path) { return PosixFileSystem().ReadFile(path.string()).value_or(""); }

// Returns a process's words, or its name while it has none because it starts another program; "" once it has ended.
std::string WordsOf(pid_t pid) {
  const std::string words = Read(absl::StrCat("/proc/", pid, "/cmdline"));
  if (!words.empty()) return absl::StrReplaceAll(words, {{absl::string_view("\0", 1), " "}});
  const std::string stat = Read(absl::StrCat("/proc/", pid, "/stat"));  // 17 (sleep) Z …
  const size_t begin = stat.find('('), end = stat.rfind(')');
  if (end == std::string::npos || absl::StartsWith(stat.substr(end), ") Z")) return "";
  return stat.substr(begin + 1, end - begin - 1);
}

bool IsSshd(const SimulatedHosts::Running& running) { return absl::StartsWith(running.program(), "sshd"); }

// Returns false if it takes as long as a hanging test.
bool AwaitEnd(pid_t pid) {
  constexpr int kHangMs = 120'000;
  pollfd end = {OpenPidFd(pid), POLLIN, 0};
  if (end.fd < 0) return true;
  const bool ended = poll(&end, 1, kHangMs) == 1;
  close(end.fd);
  return ended;
}

// After a failure it kills what is left, so that no later test fails because of it.
void AwaitEnds(absl::FunctionRef<std::vector<SimulatedHosts::Running>()> which) {
  for (auto left = which(); !left.empty(); left = which()) {
    if (AwaitEnd(left[0].pid)) continue;
    for (const SimulatedHosts::Running& running : left) {
      ADD_FAILURE() << "still running: " << running.words;
      kill(running.pid, SIGKILL);
    }
    return;
  }
}

}  // namespace

std::string SimulatedHosts::Running::program() const {
  // slurmctld's own child calls itself ": slurmscriptd".
  const size_t begin = std::min(words.find_first_not_of(" :"), words.size());
  return fs::path(words.substr(begin, words.find_first_of(" :", begin) - begin)).filename().string();
}

std::string NoTestBecause(const std::string& why) {
  if (std::getenv("CI") != nullptr) ADD_FAILURE() << why;
  return why;
}

std::string SimulatedHosts::WhyNot() {
  if (geteuid() != 0) return NoTestBecause("simulated hosts need root");
  Process process(
      {"/usr/bin/env", "unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--mount-proc", "true"});
  return process.Wait() == 0 ? "" : NoTestBecause("simulated hosts need namespaces: " + process.err);
}

SimulatedHosts::SimulatedHosts(int count) : shared_(scratch_ / "shared") {
  for (int i = 1; i <= count; ++i) names_.push_back(absl::StrCat("h", i));
  fs::create_directory(shared_);
  WriteKeys();
  WriteSettings();
  StartSwitch();
  Start(kHere);
  for (const std::string& name : names_) Start(name);
  AwaitStart(kHere);
  for (const std::string& name : names_) AwaitStart(name);
}

SimulatedHosts::~SimulatedHosts() {
  for (const auto& [name, host] : hosts_) End(name);
}

std::string SimulatedHosts::AddressOf(const std::string& host) { return absl::StrCat("10.77.0.", 10 + NumberOf(host)); }

void SimulatedHosts::WriteKeys() const {
  for (const std::string name : {"user_key", "host_key"})
    Run({"ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", scratch_ / name});
}

void SimulatedHosts::WriteSettings() const {
  const std::string key = scratch_.Read("host_key.pub");
  scratch_.Write("neighbours", Neighbours());
  std::string hosts = absl::StrCat("127.0.0.1 localhost\n", AddressOf(kHere), " ", kHere, "\n"), known, config;
  for (const std::string& name : names_) {
    absl::StrAppend(&hosts, AddressOf(name), " ", name, "\n");
    absl::StrAppend(&known, name, ",", AddressOf(name), " ", key);
    absl::StrAppend(&config, "Host ", name, "\nHostName ", AddressOf(name), "\n");
  }
  const auto here = [this](const char* text) { return absl::StrReplaceAll(text, {{"SCRATCH", scratch_.path()}}); };
  scratch_.Write("hosts", hosts);
  scratch_.Write("known_hosts", known);
  scratch_.Write("ssh_config", config + here(kSshConfigOfAll));
  scratch_.Write("sshd_config", here(kSshdConfig));
}

std::string SimulatedHosts::Neighbours() const {
  std::string commands;
  if (static_cast<int>(names_.size()) <= kMostLearning) return commands;
  for (int number = 0; number <= static_cast<int>(names_.size()); ++number)
    absl::StrAppendFormat(&commands, "neigh add %s lladdr 02:00:0a:4d:00:%02x dev eth0 nud permanent\n",
                          AddressOf(absl::StrCat("h", number)), number);
  return commands;
}

void SimulatedHosts::StartSwitch() {
  switch_ = std::make_unique<Process>(DyingWithTest(Joined({"unshare", "--net"}, Shell(kSwitchScript, {}))), kTogether);
  switch_->WaitForOut(kReady);
}

void SimulatedHosts::Start(const std::string& name) {
  const std::vector<std::string> plug = {std::to_string(switch_->pid()), std::to_string(NumberOf(name)),
                                         scratch_.path()};
  if (name == kHere) {
    hosts_[name].process = std::make_unique<Process>(
        DyingWithTest(Joined({"unshare", "--net"}, Shell(absl::StrCat(kPlugScript, kHereScript), plug))), kTogether);
    return;
  }
  const std::vector<std::string> arguments = Joined(plug, {home(), SourceFolder(), BinFolder(), scratch_.path()});
  hosts_[name].process = std::make_unique<Process>(
      DyingWithTest(Joined({"unshare", "--net", "--uts", "--ipc", "--mount", "--pid", "--fork", "--kill-child"},
                           Shell(absl::StrCat(kPlugScript, kHostScript), arguments))),
      kTogether);
}

void SimulatedHosts::AwaitStart(const std::string& name) {
  Host& host = hosts_[name];
  host.first = host.process->pid();
  if (name == kHere) {
    host.process->WaitForOut(kReady);
  } else {
    host.process->WaitForOut("Server listening on ");
    const std::vector<std::string> first = After(host.process->out, "first process: ");
    EXPECT_TRUE(first.size() == 1 && absl::SimpleAtoi(first[0], &host.first)) << host.process->out;
    host.first_fd = OpenPidFd(host.first);
    EXPECT_GE(host.first_fd, 0) << name;
  }
  host.processes = NamespaceOf(host.first, "pid");
}

void SimulatedHosts::End(const std::string& name) {
  Host& host = hosts_[name];
  if (host.first_fd >= 0) {
    // The first process takes all others with it, but ends only once those that On() brought there are reaped, which
    // may be for this machine's first process to do.
    SignalPidFd(host.first_fd, SIGKILL);
    AwaitEnds([this, &name] { return AllProcessesOf(name); });
    close(std::exchange(host.first_fd, -1));
  }
  host.process.reset();
}

pid_t SimulatedHosts::FirstOf(const std::string& host) const {
  const auto found = hosts_.find(host);
  EXPECT_TRUE(found != hosts_.end() && found->second.process) << "there is no running host " << host;
  return found == hosts_.end() ? 0 : found->second.first;
}

// Without --root, a test in a chroot would get what is above it.
std::vector<std::string> SimulatedHosts::On(const std::string& host, const std::vector<std::string>& words) const {
  const std::string first = std::to_string(FirstOf(host));
  if (host == kHere) return Joined({"/usr/bin/env", "nsenter", "--net=/proc/" + first + "/ns/net", "--"}, words);
  return Joined({"/usr/bin/env", "HOME=" + home(), "nsenter", "--target=" + first, "--net", "--uts", "--ipc", "--mount",
                 "--pid", "--root", "--", "setpriv", "--pdeathsig", "KILL"},
                words);
}

void SimulatedHosts::AtSwitch(const std::vector<std::string>& words) const {
  Run(Joined({"nsenter", absl::StrCat("--net=/proc/", switch_->pid(), "/ns/net"), "--"}, words));
}

// 0 is BR_STATE_DISABLED of <linux/if_bridge.h>, 3 is BR_STATE_FORWARDING.
void SimulatedHosts::Cut(const std::string& host) {
  AtSwitch({"bridge", "link", "set", "dev", absl::StrCat("p", NumberOf(host)), "state", "0"});
}

void SimulatedHosts::Heal(const std::string& host) {
  AtSwitch({"bridge", "link", "set", "dev", absl::StrCat("p", NumberOf(host)), "state", "3"});
}

void SimulatedHosts::CutFrom(const std::string& host, const std::vector<std::string>& others) const {
  SetNeighbours(host, others, /*reachable=*/false);
}

void SimulatedHosts::HealFrom(const std::string& host, const std::vector<std::string>& others) const {
  SetNeighbours(host, others, /*reachable=*/true);
}

// Nobody has a hardware address with ff, so every host drops what the switch brings it for that.
void SimulatedHosts::SetNeighbours(const std::string& host, const std::vector<std::string>& others,
                                   bool reachable) const {
  std::string commands;
  for (const std::string& other : others)
    absl::StrAppendFormat(&commands, "neigh replace %s lladdr 02:00:0a:4d:%s:%02x dev eth0 nud permanent\n",
                          AddressOf(other), reachable ? "00" : "ff", NumberOf(other));
  const std::string file = absl::StrCat("neighbours.", host);
  scratch_.Write(file, commands);
  Run({"nsenter", absl::StrCat("--net=/proc/", FirstOf(host), "/ns/net"), "ip", "-batch", scratch_ / file});
}

void SimulatedHosts::Crash(const std::string& host) {
  AtSwitch({"ip", "link", "del", absl::StrCat("p", NumberOf(host))});  // first, so that no connection is closed
  End(host);
}

void SimulatedHosts::Restart(const std::string& host) {
  ASSERT_FALSE(is_up(host)) << host;
  Start(host);
  AwaitStart(host);
}

void SimulatedHosts::CutSsh(const std::string& host) {
  for (const Running& running : AllProcessesOf(host))
    if (IsSshd(running)) kill(running.pid, SIGKILL);
}

std::vector<SimulatedHosts::Running> SimulatedHosts::AllProcessesOf(const std::string& host) const {
  std::vector<Running> found;
  if (!is_up(host)) return found;
  const pid_t first = FirstOf(host);
  const std::string& processes = hosts_.at(host).processes;
  std::error_code gone;  // processes may end meanwhile
  for (const auto& entry : fs::directory_iterator("/proc", gone)) {
    pid_t pid = 0;
    if (!absl::SimpleAtoi(entry.path().filename().string(), &pid) || pid == first) continue;
    if (NamespaceOf(pid, "pid") != processes) continue;
    if (std::string words = WordsOf(pid); !words.empty()) found.push_back({pid, std::move(words)});
  }
  return found;
}

std::vector<SimulatedHosts::Running> SimulatedHosts::ProcessesOf(const std::string& host) const {
  std::vector<Running> found = AllProcessesOf(host);
  std::erase_if(found, IsSshd);
  return found;
}

void SimulatedHosts::AwaitNothingOn(const std::string& host, const std::set<std::string>& but) const {
  AwaitEnds([this, &host, &but] {
    std::vector<Running> found = ProcessesOf(host);
    std::erase_if(found, [&but](const Running& running) { return but.contains(running.program()); });
    return found;
  });
}

}  // namespace muster
