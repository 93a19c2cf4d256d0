"""Measures the kernel memory of objects that a guest makes, and how much of it the guest's memory group counts.

The rows are those of the table beside the seccomp lists, ext/isolation/launcher/src/kernel_memory.json. For each object with a
`probe`, the program `allocate` makes that object in a loop in a held sandbox. The suite compares the growth of the host's
kernel memory with the growth of the group's, and with the table: uncounted bytes of one object, and the bound of their number.

UPDATE_GOLDEN=1 records the numbers in kernel_memory.json, from which `cargo xtask generate` makes docs/security/kernel-memory.md.
"""

import contextlib
import glob
import json
import os
import platform
import re
import select
import time

from harness import must
from world import ended

HERE = os.path.dirname(os.path.abspath(__file__))
TABLE = os.path.join(HERE, "../../ext/isolation/launcher/src/kernel_memory.json")
RECORD = os.path.join(HERE, "kernel_memory.json")
SITE = "allocate"
PROGRAM = "/workspace/attack/allocate"
# Seconds of CPU time after which the program makes no more objects, and seconds for all that one measurement waits for.
CPU_SECONDS, TIMEOUT_SECONDS = 8, 90
# Bytes by which other programs of the host may disturb a comparison, and repetitions of one that fails.
NOISE, TRIES = 4 << 20, 3
# Objects in caches of which the host made fewer than units / SHARE more are not the guest's.
SHARE = 8
# The guest may make more than its bound between two polls of the supervisor, or before the call fails.
OVERSHOOT = 1.5
# Text in the error of a guest that the supervisor has ended for its number of objects, and what is recorded for it.
OBJECT_LIMIT, OBJECT_LIMIT_ENDED = "processes together had more than", "ended by the supervisor"
# Seconds that a guest keeps its objects: the supervisor polls every 100 ms. A measurement during which it does not is repeated.
KEPT_SECONDS = 0.5
# What a guest may take from the host in bytes beyond the peak that its run reports; the table has this sum.
UNREPORTED = 32 << 20
# Largest growth of the host's kernel memory in bytes, at which a measurement is ended.
GROWTH = 600 << 20


def number(path):
    with contextlib.suppress(OSError, ValueError):
        with open(path, encoding="ascii") as file:
            return int(file.read())
    return 0


def fields(path, scale):
    with open(path, encoding="ascii") as file:
        rows = (line.replace(":", "").split() for line in file)
        return {row[0]: int(row[1]) * scale for row in rows if len(row) > 1 and row[1].isdigit()}


def caches():
    """Returns (objects, bytes of one) of each slab cache."""
    with open("/proc/slabinfo", encoding="ascii") as file:
        return {row[0]: (int(row[1]), int(row[3])) for row in (line.split() for line in list(file)[2:])}


def waiting_pages():
    """Returns the bytes of free pages that wait in the lists of processors; MemFree does not contain them."""
    with open("/proc/zoneinfo", encoding="ascii") as file:
        return 4096 * sum(map(int, re.findall(r"^\s+count:\s+(\d+)", file.read(), re.M)))


def host_tables():
    """Returns (entries, limit) of tables that all programs of the host share."""
    with open("/proc/net/sockstat", encoding="ascii") as file:
        orphans = int(re.search(r"orphan (\d+)", file.read()).group(1))
    with open("/proc/sys/fs/file-nr", encoding="ascii") as file:
        files, _, most = map(int, file.read().split())
    return {"open files": (files, most), "orphans": (orphans, number("/proc/sys/net/ipv4/tcp_max_orphans")),
            "processes": (sum(name.isdigit() for name in os.listdir("/proc")), number("/proc/sys/kernel/pid_max"))}


class Group:
    """The memory cgroup of a run, in version 1 or 2 of the hierarchy."""

    def __init__(self, run):
        found = [path for path in glob.glob("/sys/fs/cgroup/**/", recursive=True) if os.path.basename(path[:-1]).endswith(run)]
        self.old = next((path for path in found if os.path.exists(f"{path}memory.kmem.usage_in_bytes")), None)
        self.new = next((path for path in found if os.path.exists(f"{path}memory.current")), None)
        must(self.old or self.new, f"the run {run} has no memory group")

    @property
    def version(self):
        return 1 if self.old else 2

    def kernel(self):
        if self.old:
            return number(f"{self.old}memory.kmem.usage_in_bytes") + number(f"{self.old}memory.kmem.tcp.usage_in_bytes")
        stat = fields(f"{self.new}memory.stat", 1)
        return stat["kernel"] + stat["sock"]

    def files(self):
        """Returns the bytes of shared memory and of files in tmpfs."""
        if self.old:
            return fields(f"{self.old}memory.stat", 1).get("shmem", 0)
        return fields(f"{self.new}memory.stat", 1)["shmem"]


class Sample:
    """Kernel memory of host and group at one moment."""

    def __init__(self, group):
        self.caches, self.memory, self.waiting = caches(), fields("/proc/meminfo", 1024), waiting_pages()
        self.kernel, self.files, self.tables = group.kernel(), group.files(), host_tables()

    def pages(self):
        """Returns the bytes of pages in no class of /proc/meminfo: data of sockets and pipes."""
        m = self.memory
        known = ("MemFree", "Buffers", "Cached", "AnonPages", "Slab", "PageTables", "KernelStack", "Percpu")
        return m["MemTotal"] - self.waiting - sum(m.get(name, 0) for name in known)

    def total(self):
        """Returns the bytes of kernel memory of the host."""
        return self.pages() + sum(self.memory[name] for name in ("Slab", "PageTables", "KernelStack"))

    def largest(self, before):
        """Returns names and growth in KiB of the slab caches that grew most."""
        grown = {name: (objects - before.caches.get(name, (0, 0))[0]) * size >> 10 for name, (objects, size) in self.caches.items()}
        return ", ".join(f"{name} {grown[name]}" for name in sorted(grown, key=grown.get, reverse=True)[:5])

    def shares(self, before, units):
        """Returns the entries of the host's tables that the objects took, and their part of each table."""
        grown = {name: (entries - before.tables[name][0], most) for name, (entries, most) in self.tables.items()}
        percent = {name: f" ({100 * count / most:.1f} %)" if most < 1000 * count else "" for name, (count, most) in grown.items()}
        return {name: f"{count}{percent[name]}" for name, (count, _) in grown.items() if count >= units / 2}

    def growth(self, before, units, besides):
        """Returns the growth since `before` in bytes: of the host and of the group. `besides`: what the objects consist of
        besides objects in slab caches."""
        if "large" in besides:
            # The kernel gives pages to large requests; they are in no cache.
            return self.memory["SUnreclaim"] - before.memory["SUnreclaim"], self.kernel - before.kernel
        least = max(units // SHARE, 50)
        more = {name: (objects - before.caches.get(name, (0, 0))[0], size) for name, (objects, size) in self.caches.items()}
        host, group = sum(count * size for count, size in more.values() if count >= least), self.kernel - before.kernel
        if "tables" in besides:
            host += sum(self.memory[name] - before.memory[name] for name in ("PageTables", "KernelStack"))
        if "pages" in besides:
            host += self.pages() - before.pages()
        if "files" in besides:
            host, group = host + self.memory["Shmem"] - before.memory["Shmem"], group + self.files - before.files
        return host, group


class Measurements:
    """Measures objects in a held sandbox of one mode."""

    def __init__(self, mode):
        with open(TABLE, encoding="utf-8") as file:
            self.table = json.load(file)
        self.mode, self.run, self.group, self.record, self.peak = mode, None, None, {}, 0
        # Counted bytes of a process that `allocate` starts because the one before has no descriptor left.
        self.process = 0
        self.objects = {one["id"]: one for one in self.table["objects"] if "probe" in one}

    def sandbox(self):
        if not self.run or not glob.glob(f"{self.mode.state}/sites/{SITE}/active/{self.run}"):
            self.run = self.mode.hold(SITE)
            self.group = Group(self.run)
        return self.run

    def make(self, one):
        """Lets a sandbox make the objects. Returns the samples before and at the most, the numbers of objects and of processes,
        and what ended it."""
        run, units, most, ending = self.sandbox(), one["probe"]["units"], None, None
        above = self.bound(one).get("above") if "bound" in one else None
        words = [PROGRAM, one["id"], str(units), str(CPU_SECONDS), *one["probe"].get("in", "/tmp/allocate").split()]
        shell = f"mkdir -p {words[4]} && exec {' '.join(words)}"
        before, made, children, text = Sample(self.group), 0, 0, ""
        process = self.mode.start("exec", "--state", self.mode.state, "--site", SITE, run, "--", "/bin/sh", "-c", shell)
        deadline = time.monotonic() + TIMEOUT_SECONDS
        try:
            while not ending and time.monotonic() < deadline:
                if not select.select([process.stdout], [], [], 0.1)[0]:
                    continue
                piece = os.read(process.stdout.fileno(), 4096).decode(errors="replace")
                text += piece
                if numbers := re.findall(r"^(?:made|held) (\d+) (\d+)", text, re.M):
                    made, children = map(int, numbers[-1])
                found = re.search(r"^held \d+ \d+ (\S+)", text, re.M)
                # The supervisor may count the objects only after the program has made all of them.
                if found and not (above == "ended" and made > self.most(one)):
                    ending = found.group(1)
                if not piece:
                    found = re.search(r"wp_codebox_\w+", text)
                    if OBJECT_LIMIT in text:
                        ending = OBJECT_LIMIT_ENDED
                    else:
                        ending = found.group(0) if found else f"exit: {text.strip()[-120:]}"
                elif made:
                    most = Sample(self.group)
                    if most.total() - before.total() > GROWTH:
                        ending = ending or "the growth that the suite allows"
            time.sleep(KEPT_SECONDS)
        finally:
            ended(process)
            self.cleanup()
        return before, most, made, children, ending or "time"

    def cleanup(self):
        """Ends the program by ending its sandbox, which reports its peak; the next measurement starts in a new one."""
        self.mode.cancel(SITE, self.run)
        must(self.mode.settle(30, SITE), "the sandbox did not end")
        ended_run = json.loads(self.mode.call("runs", "get", self.run, "--state", self.mode.state, "--site", SITE, "--json"))
        self.peak = ended_run["result"]["cost"]["peak_memory_bytes"]
        self.run = None

    def bound(self, one):
        return next(row for row in self.table["bounds"] if row["id"] == one["bound"])

    def most(self, one):
        """Returns the number of objects above which the guest is ended, or none is left that it made earlier."""
        return self.bound(one).get("units", (1 << 30) // max(one["counted"], 1)) * OVERSHOOT

    def case(self, name):
        """Measures one object, again while other programs may have disturbed it, and compares it with its row."""
        one, last = self.objects[name], None
        if not self.process:
            before, most, made, _, ending = self.make({"id": "process", "probe": {"units": 100}})
            must(most and made == 100, f"the guest could not start processes: {ending}")
            self.process = (most.kernel - before.kernel) // made
        for _ in range(TRIES):
            before, most, made, children, ending = self.make(one)
            wrong = None
            if made == 0 or most is None:
                last = {"units": 0, "ended": ending, "host": 0, "group": 0, "uncounted": 0, "tables": {}}
                wrong = None if ending.startswith(("E", "wp_codebox")) and "exit" not in ending else f"the guest made none: {ending}"
            else:
                host, group = most.growth(before, made, one["probe"].get("besides", ()))
                group -= children * self.process
                last = {"units": made, "ended": ending, "host": host, "group": group, "uncounted": round((host - group) / made),
                        "tables": most.shares(before, made)}
                wrong = self.wrong(one, made, host, group, ending)
                if wrong:
                    wrong += f"; the caches that grew most: {most.largest(before)}"
            if not wrong:
                break
        if not wrong:
            self.record[name] = last
        text = ", ".join(f"{key} {value}" for key, value in last.items())
        must(not wrong, f"{wrong} [{text}]")
        return text

    def wrong(self, one, made, host, group, ending):
        uncounted, above = host - group, self.bound(one).get("above")
        # The group counts more than there is for sockets: what a socket may use soon.
        if uncounted < -2 * NOISE - group // 4:
            return f"other programs of the host freed kernel memory, so the difference is {uncounted} bytes"
        # Inodes count against the disk limit.
        if one["bound"] != "inodes" and host > self.peak + UNREPORTED + NOISE:
            return f"the host lost {host} bytes, the peak that the run reports is {self.peak}"
        kept = min(made, int(self.most(one))) if above == "forgotten" else made
        allowed = one["uncounted"] * kept * 5 // 4 + NOISE
        if uncounted > allowed:
            return f"{uncounted} bytes are not counted, the table allows {allowed}"
        if above != "forgotten" and made > self.most(one) and not (above == "ended" and ending == OBJECT_LIMIT_ENDED):
            return f"the guest made {made} objects, the bound is {self.most(one) / OVERSHOOT:.0f}"
        return None

    def save(self):
        """Replaces the recorded numbers of the measured objects."""
        recorded = {"objects": {}}
        with contextlib.suppress(OSError), open(RECORD, encoding="utf-8") as file:
            recorded = json.load(file)
        recorded["machine"] = f"Linux {platform.release().split('-')[0]}, memory cgroup of version {self.version}"
        recorded["objects"] = {name: {**recorded["objects"], **self.record}[name] for name in self.objects
                               if name in recorded["objects"] or name in self.record}
        rows = ",\n".join(f"    {json.dumps(name)}: {json.dumps(row)}" for name, row in recorded["objects"].items())
        with open(RECORD, "w", encoding="utf-8") as file:
            file.write(f'{{\n  "machine": {json.dumps(recorded["machine"])},\n  "objects": {{\n{rows}\n  }}\n}}\n')

    @property
    def version(self):
        return self.group.version if self.group else 0
