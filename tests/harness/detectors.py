"""Detects what a sandbox could leave behind on the host.

Every detector returns a list of findings, empty when nothing leaked. Detectors scan the whole
host and match this test's programs, token, state directory and recorded guest namespaces.
"""

import base64
import contextlib
import html
import json
import os
import quopri
import re
import urllib.parse

from .processes import parent

KINDS = ("mnt", "pid", "net", "user", "uts", "ipc", "cgroup")
GROUP = re.compile(r"wp-codebox-(run_[0-9a-f]{32})$")
RUN_FILES = {"run.json", "result.json", "events.jsonl", "lease"}


def read(path):
    """Returns the text of a file, empty when the file cannot be read."""
    try:
        with open(path, "rb") as file:
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


def pids():
    return [int(name) for name in os.listdir("/proc") if name.isdigit()]


def start_time(pid):
    """Returns the start time of a process in seconds since boot."""
    stat = read(f"/proc/{pid}/stat")
    return int(stat.rsplit(")", 1)[1].split()[19]) / os.sysconf("SC_CLK_TCK") if ")" in stat else float("inf")


def has_exited(pid):
    """Whether every thread of a process has ended. The main thread may be a zombie while other threads still hold
    file descriptors and locks."""
    stat = read(f"/proc/{pid}/stat")
    if ")" not in stat:
        return True
    if stat.rsplit(")", 1)[1].split()[0] != "Z":
        return False
    return len(list_directory(f"/proc/{pid}/task")) <= 1


def command(pid):
    return read(f"/proc/{pid}/cmdline").replace("\0", " ")


def program(pid):
    try:
        return os.readlink(f"/proc/{pid}/exe")
    except OSError:
        return ""


def sleeping_commands(token):
    """Returns the pids of `sleep` commands whose parent shell has this token in its command line. Killing one lets its shell continue."""
    return [pid for pid in pids() if command(pid).startswith("sleep ") and token in command(parent(pid))]


def process_tree(root):
    """Returns `root` and all its descendant processes."""
    children = {}
    for pid in pids():
        children.setdefault(parent(pid), []).append(pid)
    found, queue = [], [root]
    while queue:
        pid = queue.pop()
        found.append(pid)
        queue.extend(children.get(pid, []))
    return found


def namespaces(pid):
    found = set()
    for kind in KINDS:
        try:
            found.add(os.readlink(f"/proc/{pid}/ns/{kind}"))
        except OSError:
            continue
    return found


class Host:
    """Compares the host with its state before the test: processes, mounts, namespaces and files of this test's runs."""

    def __init__(self, home, state, site, token):
        self.home, self.state, self.site, self.token = home, state, site, token
        self.own = namespaces(os.getpid())
        self.mounts = set(read("/proc/self/mountinfo").splitlines())
        self.guests = set()
        self._open_namespaces = contextlib.ExitStack()
        self.seen_runs = set()

    def record_guest(self, pid):
        """Records the namespaces of a guest process for `live_namespaces`. Returns whether the process is in a guest.
        The kernel reuses the inode number of a namespace that has ended, so this keeps the guest's PID namespace
        open; an open PID namespace keeps no process or mount alive."""
        with contextlib.ExitStack() as opened:
            try:
                opened.callback(os.close, os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC))
            except (FileNotFoundError, ProcessLookupError, PermissionError):
                return False
            seen = frozenset(namespaces(pid) - self.own)
            if len(seen) != len(KINDS):
                return False
            if seen not in self.guests:
                self.guests.add(seen)
                self._open_namespaces.push(opened.pop_all())
            return True

    def forget_guests(self):
        """Forgets the guests recorded so far and closes their namespaces."""
        self.guests.clear()
        self._open_namespaces.close()

    def pids(self):
        return [pid for pid in pids() if pid != os.getpid()
                and (program(pid).startswith(self.home + "/bin/wp-codebox") or self.token in command(pid)) and not has_exited(pid)]

    def processes(self):
        return [f"process {pid}: {command(pid)[:120]}" for pid in self.pids()]

    def in_recorded_guest(self, pid):
        """Whether the process is in the namespaces of a guest that `record_guest` recorded."""
        try:
            # The PID namespace alone excludes host processes; the other six links are read only for the remaining processes.
            if os.readlink(f"/proc/{pid}/ns/pid") in self.own:
                return False
        except OSError:
            return False
        return frozenset(namespaces(pid) - self.own) in self.guests

    def live_namespaces(self):
        found = [f"namespaces of process {pid}: {command(pid)[:80]}" for pid in pids() if self.in_recorded_guest(pid)]
        return found + [f"mounted namespace: {line}" for line in set(read("/proc/self/mountinfo").splitlines()) - self.mounts if " nsfs " in line]

    def new_mounts(self):
        new = set(read("/proc/self/mountinfo").splitlines()) - self.mounts
        return [f"mount: {line}" for line in sorted(new) if self.home in line or self.token in line]

    def runs(self):
        return set(os.listdir(self.path("runs"))) if os.path.isdir(self.path("runs")) else set()

    def cgroups(self):
        ours = self.seen_runs | {name for name in self.runs() if name.startswith("run_")}
        found = []
        for directory, names, _files in os.walk("/sys/fs/cgroup"):
            for name in names:
                match = GROUP.match(name)
                if match and match[1] in ours:
                    found.append(f"cgroup {directory}/{name}")
        return found

    def path(self, *names):
        return os.path.join(self.state, "sites", self.site, *names)

    def files(self):
        """Returns files of the state directory that must not exist without a live run."""
        found = []
        for name in list_directory(self.path("active")):
            found.append(f"marker active/{name}")
        for run in list_directory(self.path("runs")):
            if not re.fullmatch(r"run_[0-9a-f]{32}", run):
                found.append(f"runs/{run}")
                continue
            found += [f"runs/{run}/{name}" for name in list_directory(self.path("runs", run)) if name not in RUN_FILES]
        found += [f"artifacts/{name}" for name in list_directory(self.path("artifacts")) if name.startswith(".")]
        templates = os.path.join(self.state, "templates")
        found += [f"templates/{name}" for name in list_directory(templates) if name.startswith(".tmp-")]
        mine = self.seen_runs | self.runs()
        found += [f"cgroups/{name}" for name in list_directory(os.path.join(self.state, "cgroups")) if name in mine]
        return found

    def records(self):
        """Returns the run records that are not `ended` or lack outcome or summary, and the number of runs per outcome and reason."""
        bad, outcomes = [], {}
        for run in list_directory(self.path("runs")):
            try:
                record = json.loads(read(self.path("runs", run, "run.json")) or "{}")
            except ValueError:
                record = {}
            if record.get("status") != "ended" or not record.get("outcome") or not record.get("summary"):
                bad.append(f"record of {run}: {record}")
            key = f"{record.get('outcome')}: {reason_class(record.get('reason') or '')}"
            outcomes[key] = outcomes.get(key, 0) + 1
        return bad, outcomes

    def leaks(self):
        bad, _outcomes = self.records()
        return {"processes": self.processes(), "namespaces": self.live_namespaces(), "mounts": self.new_mounts(),
                "cgroups": self.cgroups(), "files": self.files(), "records": bad}


def reason_class(reason):
    """Returns a reason with its numbers replaced, so that equal reasons of different runs compare equal."""
    reason = re.sub(r"\d+", "N", reason)
    return reason[:70]


def list_directory(path):
    try:
        return sorted(os.listdir(path))
    except (FileNotFoundError, ProcessLookupError):
        return []


def encodings(value):
    """Returns the value in every encoding in which a secret could be stored, by name."""
    data = value.encode()
    found = {"raw": data, "reversed": data[::-1], "hex": data.hex().encode(), "url": urllib.parse.quote(value, safe="").encode(),
             "json": json.dumps(value)[1:-1].encode(), "json-slash": json.dumps(value)[1:-1].replace("/", "\\/").encode(),
             "uri-component": urllib.parse.quote(value, safe="!~*'()").encode(), "html": html.escape(value).encode(),
             "quoted-printable": quopri.encodestring(data).strip()}
    for shift in range(3):
        # Only the middle of base64 is independent of what stands before and after the value.
        whole = base64.b64encode(b"\0" * shift + data)
        found[f"base64-{shift}"] = whole[4 if shift else 0:][:(len(data) - 3) // 3 * 4 - 4]
    return found


def find_encoded(value, places):
    """Returns `place: encoding` for each encoding of the value in the places, which are pairs of name and bytes."""
    return [f"{name}: {form}" for name, content in places for form, text in encodings(value).items() if text in content]
