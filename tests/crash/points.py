"""Points of a run at which a process is killed, and how the test detects each from outside."""

import contextlib
import json
import os

from harness.detectors import command, list_directory, parent, program, read


def happened(events, kind, phase=None, text=None):
    """Whether the journal has an event of this kind, phase and text."""
    for event in events:
        if event["type"] != "runtime." + kind:
            continue
        data = event.get("data", {})
        if (phase is None or data.get("phase") == phase) and (text is None or text in data.get("text", "")):
            return True
    return False


class View:
    """State of one run, observed from outside. Polled about a thousand times a second, so updates must be cheap."""

    def __init__(self, slot, request, token):
        self.slot, self.request, self.token = slot, request, token
        self.before = set(list_directory(slot.site("runs"))) | set(list_directory(slot.site("active")))
        self.known = set(os.listdir("/proc"))
        self.candidates = {}
        self.mine = set()
        self.worker = self.run = self.supervisor = None
        self.accepted = False
        self.launchers = []
        self.guests = set()
        # The kernel reuses the inode number of an ended namespace, possibly in another slot, unless
        # a descriptor keeps the namespace open.
        self._spaces = contextlib.ExitStack()
        self.events, self._journal = [], 0
        self.result = self.error = None
        self._lines = 0

    def look(self):
        """Reads what the worker printed, the processes and the journal since the last call."""
        self.request.poll()
        for line in self.request.lines[self._lines:]:
            self._take(line)
        self._lines = len(self.request.lines)
        self._processes()
        if self.run is None:
            new = (set(list_directory(self.slot.site("active"))) | set(list_directory(self.slot.site("runs")))) - self.before
            self.run = next((name for name in new if name.startswith("run_")), None)
        if self.run is not None:
            self._read_journal()

    def _take(self, line):
        try:
            message = json.loads(line)
        except ValueError:
            self.error = {"message": line}
            return
        if "worker" in message:
            self.worker = message["worker"]
        elif "run" in message:
            self.run, self.accepted = message["run"], True
        elif "result" in message:
            self.result = message["result"]
        elif "error" in message:
            self.error = message["error"]

    def _processes(self):
        names = set(os.listdir("/proc"))
        for name in names - self.known:
            if name.isdigit():
                self.candidates[int(name)] = 400
        self.known = names
        for pid, looks in list(self.candidates.items()):
            ours = program(pid)
            if ours.startswith(self.slot.bin):
                self.mine.add(pid)
                words = command(pid)
                # A child that the supervisor has forked has the same command line until it calls exec.
                if " supervise" in words and " supervise" not in command(parent(pid)):
                    self.supervisor = pid
                elif ours.endswith("wp-codebox-launch") and pid not in self.launchers and not program(parent(pid)).endswith("wp-codebox-launch"):
                    self.launchers.append(pid)
                self._namespace(pid)
                # Check this process only a few more times: it may just have been forked and not have called exec yet.
                looks -= 5
            self.candidates[pid] = looks - 1
            if looks <= 1 or not ours:
                del self.candidates[pid]

    def _namespace(self, pid):
        try:
            handle = os.open(f"/proc/{pid}/ns/pid", os.O_RDONLY | os.O_CLOEXEC)
        except OSError:
            return
        space = os.readlink(f"/proc/self/fd/{handle}")
        if space in self.guests or space == self.slot.own_namespace:
            os.close(handle)
        else:
            self._spaces.callback(os.close, handle)
            self.guests.add(space)

    def close(self):
        self.request.close()
        self._spaces.close()

    def _read_journal(self):
        try:
            with open(self.slot.site("runs", self.run, "events.jsonl"), "rb") as file:
                file.seek(self._journal)
                piece = file.read()
        except OSError:
            return
        whole = piece[:piece.rfind(b"\n") + 1]
        self._journal += len(whole)
        self.events += [json.loads(line) for line in whole.splitlines()]

    # Predicates of the points.

    def has(self, *names):
        return self.run is not None and os.path.exists(self.slot.site(*(self.run if name is RUN else name for name in names)))

    def event(self, kind, phase=None, text=None):
        return happened(self.events, kind, phase, text)

    def executed(self, word):
        return any(self.token + word in command(pid) for pid in self.candidates)

    def ended(self):
        if self.run is None:
            return False
        return '"ended"' in read(self.slot.site("runs", self.run, "run.json"))

    def staging(self):
        return self.run is not None and any(name.startswith(f".writing-{self.run}") for name in list_directory(self.slot.site("artifacts")))


RUN = object()

# Predicate of each point, in the order in which a run passes the points.
POINTS = {
    "spawned": lambda v: bool(v.mine),
    "supervised": lambda v: v.supervisor is not None,
    "marked": lambda v: v.has("active", RUN),
    "recorded": lambda v: v.has("runs", RUN, "run.json"),
    "journal": lambda v: v.has("runs", RUN, "events.jsonl"),
    "accepted": lambda v: v.accepted,
    "created": lambda v: v.event("created"),
    "launched": lambda v: bool(v.launchers),
    "guest ready": lambda v: v.event("observed"),
    "agent started": lambda v: v.event("command.started", "agent"),
    "first output": lambda v: v.event("command.output", text="one"),
    "second output": lambda v: v.event("command.output", text="two"),
    "third output": lambda v: v.event("command.output", text="three"),
    "last output": lambda v: v.event("command.output", text="four"),
    "agent ended": lambda v: v.event("command.finished"),
    "salvage begun": lambda v: v.has("runs", RUN, "salvage"),
    "check launched": lambda v: len(v.launchers) > 1,
    "check started": lambda v: v.event("command.started", "check"),
    "check output": lambda v: v.event("command.output", text="checking"),
    "second check output": lambda v: v.event("command.output", text="still"),
    "check ended": lambda v: sum(event["type"] == "runtime.command.finished" for event in v.events) > 1,
    "destroyed": lambda v: v.event("destroyed"),
    "bundle begun": lambda v: v.staging(),
    "bundle there": lambda v: v.has("artifacts", RUN),
    "collected": lambda v: v.event("artifacts.collected"),
    "result": lambda v: v.has("runs", RUN, "result.json"),
    "ended": lambda v: v.ended(),
}
ORDER = list(POINTS)

# Points with a live launcher, and delays after them in milliseconds.
LAUNCHER_POINTS = [("launched", 0), ("launched", 1), ("launched", 2), ("launched", 4), ("launched", 7), ("launched", 11), ("guest ready", 0),
                   ("agent started", 0), ("first output", 0), ("first output", 5), ("first output", 15), ("first output", 30), ("last output", 0),
                   ("check launched", 0), ("check launched", 2), ("check launched", 4), ("check launched", 8), ("check started", 0),
                   ("check output", 0), ("check output", 10)]


def passed(view, point):
    """Whether a run has reached or passed a point; a short point may have been missed."""
    return any(POINTS[name](view) for name in ORDER[ORDER.index(point):])


def reached(view):
    """Returns the last point that a run reached."""
    return next((name for name in reversed(ORDER) if POINTS[name](view)), "nothing")
