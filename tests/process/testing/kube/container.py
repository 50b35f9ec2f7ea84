"""One run of a container: processes of the node in namespaces of their own (files, processes, name, messages), whose first
one is the container's command. The container sees the node's files, but has its own /tmp, /run, /root, /home, /dev/shm and
/etc/hosts, and its volumes."""

import os
import pwd
import shlex
import signal
import subprocess
import threading

import container_log
import times
import volumes as volume_sets

OWN = ("tmp", "run", "root", "home")  # top folders of which a container has its own, empty ones

# Runs the command as the first process of its namespace of processes, and ends as it ended, with 128 + N for signal N. What
# this shell itself has to say isn't the container's.
AROUND = 'setpriv --pdeathsig KILL bash -ec "$@"; exit $?'

# For bash, as dash knows no descriptor above 9. $1: the container's folder; $2, $3: the descriptors of its outputs; "$4" …:
# the command. A mount point that isn't there is made in a layer above the node's own
# folder, so that the node keeps none. A simulated host has a boot id of its own.
SCRIPT = r"""
exec >&"$2" 2>&"$3"
eval "exec $2>&- $3>&-"
read -r pid rest </proc/self/stat
PATH=/usr/sbin:/usr/bin:/sbin:/bin
own=$1
root=$own/root
shift 3
mount -t tmpfs -o mode=755 tmpfs "$root"
layers=0
place() { # where, what (a folder d or a file f), whether its parent is a volume's
  [ ! -e "$1" ] || return 0
  parent=$(dirname "$1")
  while [ ! -d "$parent" ]; do parent=$(dirname "$parent"); done
  if [ "$3" = no ] && [ "$(stat -c %d "$parent")" != "$(stat -c %d "$root")" ]; then
    layers=$((layers + 1))
    mkdir -p "$own/layers/$layers/upper" "$own/layers/$layers/work"
    mount -t overlay -o "lowerdir=$parent,upperdir=$own/layers/$layers/upper,workdir=$own/layers/$layers/work" overlay "$parent"
  fi
  if [ "$2" = d ]; then mkdir -p "$1"; else mkdir -p "$(dirname "$1")"; : >>"$1"; fi
}
. "$own/mounts"
hostname "$(cat "$own/name")"
cat /proc/sys/kernel/random/boot_id >"$own/boot_id"
mount -t proc proc "$root/proc"
mount --bind "$own/boot_id" "$root/proc/sys/kernel/random/boot_id"
echo "$pid" >"$own/pid.new"
mv "$own/pid.new" "$own/pid"
exec chroot "$root" "$@"
"""


def _root_commands(visible):
    """Makes a root in which the node's folders lie."""
    lines = []
    for name in sorted(os.listdir("/")):
        path, there = "/" + name, f'"$root"/{shlex.quote(name)}'
        if os.path.islink(path):
            lines.append(f"ln -s {shlex.quote(os.readlink(path))} {there}")
        elif name in OWN:
            lines.append(f"mkdir -m {'1777' if name == 'tmp' else '755'} {there}")
        elif name == "proc":
            lines.append(f"mkdir {there}")
        elif os.path.isdir(path):
            lines.append(f"mkdir {there}; mount --rbind {shlex.quote(path)} {there}")
        else:
            lines.append(f": >{there}; mount --bind {shlex.quote(path)} {there}")
    lines.append('mkdir -p -m 700 "$root"' + shlex.quote(pwd.getpwuid(0).pw_dir))
    lines.append('mount -t tmpfs -o mode=1777 tmpfs "$root/var/tmp"')
    for folder in visible:
        if folder.strip("/").split("/")[0] in OWN and os.path.isdir(folder):
            lines.append(f'mkdir -p "$root"{shlex.quote(folder)}; mount --rbind {shlex.quote(folder)} "$root"{shlex.quote(folder)}')
    return lines


def _mount_commands(mounts):
    """`mounts`: (path, source, whether read only), the shorter paths first."""
    lines, made = [], []
    for path, source, is_read_only in mounts:
        kind = "d" if os.path.isdir(source) else "f"
        in_volume = "yes" if any(path.startswith(one.rstrip("/") + "/") for one in made) else "no"
        target = f'"$root"{shlex.quote(path)}'
        lines.append(f"place {target} {kind} {in_volume}; mount --bind {shlex.quote(source)} {target}")
        if is_read_only:
            lines.append(f"mount -o remount,bind,ro {target}")
        made.append(path)
    return lines


def mounts_of(pod, container, paths, pod_folder):
    """`paths`: those of the pod's volumes by name, that of the service account's files by ""."""
    listed = [("/dev/shm", os.path.join(pod_folder, "shm"), False)]
    for mount in container.get("volumeMounts") or []:
        source = paths[mount["name"]]
        if mount.get("subPath"):
            source = os.path.join(source, mount["subPath"])
            if not os.path.exists(source):
                os.makedirs(source)
        listed.append((mount["mountPath"].rstrip("/"), source, bool(mount.get("readOnly"))))
    if "" in paths and not any(path.rstrip("/") == volume_sets.ACCOUNT_FOLDER for path, _, _ in listed):
        listed.append((volume_sets.ACCOUNT_FOLDER, paths[""], True))
    listed = [("/run" + path[8:] if path.startswith("/var/run/") else path, source, ro) for path, source, ro in listed]
    return sorted(listed, key=lambda mount: len(mount[0]))


def _identity(pod, container):
    """Words that make the command run as the user whom the pod names."""
    context = dict(pod["spec"].get("securityContext") or {}, **(container.get("securityContext") or {}))
    user = context.get("runAsUser", 65532 if context.get("runAsNonRoot") else None)
    if user in (None, 0):
        return []
    group = context.get("runAsGroup", 0)
    groups = ",".join(map(str, [context["fsGroup"]] if context.get("fsGroup") else []))
    return ["setpriv", "--pdeathsig", "KILL", f"--reuid={user}", f"--regid={group}", f"--groups={groups}" if groups else "--clear-groups"]


class Run:
    """Starts at once. Calls on_end() from another thread when the command has ended and its output is read."""

    def __init__(self, pod, container, words, variables, where, on_end):
        """`where`: folder (of the pod), paths (of its volumes), visible (folders), network (words to enter it), number (of
        this run)."""
        self.name, self.number = container["name"], where["number"]
        self._folder = os.path.join(where["folder"], "containers", f"{self.name}.{self.number}")
        os.makedirs(self._folder + "/root", exist_ok=True)
        hosts = [("/etc/hosts", os.path.join(where["folder"], "hosts"), False)]
        self._write("mounts", "\n".join(["set -e", *_root_commands(where["visible"]),
                                         *_mount_commands(mounts_of(pod, container, where["paths"], where["folder"]) + hosts)]))
        self._write("name", pod["spec"].get("hostname") or pod["metadata"]["name"][:63])
        self.log = container_log.ContainerLog(os.path.join(where["folder"], "logs", self.name, f"{self.number}.log"))
        self.variables, self.identity = variables, _identity(pod, container)
        self.network = where["network"]
        self.started, self.ended, self.exit_code, self.killed_because = times.text(), None, None, ""
        inside = ["/usr/bin/env", "-i", *(f"{key}={value}" for key, value in variables.items()), *self.identity, "sh", "-c",
                  'cd "$0" && exec "$@"', container.get("workingDir") or "/", *words]
        (out, out_end), (err, err_end) = os.pipe(), os.pipe()
        # pylint: disable-next=consider-using-with
        self._process = subprocess.Popen(
            ["setpriv", "--pdeathsig", "KILL", *self.network, "unshare", "--mount", "--pid", "--uts", "--ipc", "sh", "-c", AROUND,
             "sh", SCRIPT, "bash", self._folder, str(out_end), str(err_end), *inside],
            stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, cwd="/",
            pass_fds=(out_end, err_end))
        os.close(out_end)
        os.close(err_end)
        pumps = [self.log.pump(out, b"stdout"), self.log.pump(err, b"stderr")]
        threading.Thread(target=self._await_end, args=(pumps, on_end), daemon=True).start()

    def _write(self, name, text):
        with open(os.path.join(self._folder, name), "w", encoding="utf-8") as file:
            file.write(text)

    def _await_end(self, pumps, on_end):
        code = self._process.wait()
        for pump in pumps:
            pump.join()
        self.exit_code = code if code >= 0 else 128 - code
        self.ended = times.text()
        self.log.close()
        on_end()

    @property
    def is_running(self):
        return self.ended is None

    @property
    def first_process(self):
        """The number of the command's process on the node; None while its place is being prepared."""
        try:
            with open(os.path.join(self._folder, "pid"), encoding="utf-8") as file:
                return int(file.read())
        except FileNotFoundError:
            return None

    def signal(self, number):
        """Reaches the command; SIGKILL ends everything in the container."""
        if not self.is_running:
            return
        pid = self.first_process
        if pid is None:
            if number == signal.SIGKILL:
                self._process.kill()
            return
        try:
            os.kill(pid, number)
        except ProcessLookupError:
            return

    def words_to_run(self, words):
        """What runs a command in the container. Nothing but the container's end ends it with certainty, as in a real one."""
        return ["nsenter", f"--target={self.first_process}", "--mount", "--pid", "--uts", "--ipc",
                "--net", "--root", "--wd", "--", "/usr/bin/env", "-i",
                *(f"{key}={value}" for key, value in self.variables.items()), *self.identity, *words]
