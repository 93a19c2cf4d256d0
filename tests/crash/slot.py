"""One of several parallel test lanes: starts and kills runs one after the other, with its own PHP worker, programs and site."""

import contextlib
import json
import os
import shutil
import signal
import subprocess
import time

from harness.detectors import RUN_FILES, command, has_exited, list_directory, pids, program, read, start_time
from points import LAUNCHER_POINTS, ORDER, View, passed, reached
from stream import Request

HERE = os.path.dirname(os.path.abspath(__file__))
# Maximum, in seconds, of the median time from a kill to the complete cleanup, per kind of killed process (victim). A single
# kill may take longer when the processor or the disk stalls.
LIMIT = 2.0
# Seconds until cleanup must be complete, and until a surviving run must have ended.
TIMEOUT_SECONDS = 60.0
# Pauses make the output separate events. The background process ends only with the guest.
AGENT = ("echo x >f.txt; echo one; sleep 0.02; echo two; setsid sh -c \"sleep 300; : {token}-daemon\" & sleep 0.02; echo three; sleep 0.02; "
         "echo four; sleep 0.01; : {token}-agent")
CHECK = "echo checking; test -f f.txt || exit 1; sleep 0.02; echo still; sleep {rest}; : {token}-check"

# Points after which a killed worker need not cancel its attached run: the supervisor may notice its death too late.
LATE = ORDER[ORDER.index("check ended"):]
# Seconds that the check sleeps. LONG if the worker is killed before LATE, so that the supervisor can notice the death and
# cancel before the check ends, even on a busy machine. LONG also if the launcher of the check is killed.
LONG, SHORT = 30, 0.01


class Wrong(Exception):
    """Raised when a condition that must hold after a kill does not hold."""


def waits_for(pid):
    """Describes a process and where it waits in the kernel: in sync(), for example, a killed process lives until the disk is done."""
    state = read(f"/proc/{pid}/stat").rsplit(")", 1)[-1].split()[:1]
    return f"{command(pid)[:60]} {''.join(state)} in {read(f'/proc/{pid}/wchan')}"


class Slot:
    """Runs jobs (one run and one kill each) and returns the observations of each as a row."""

    def __init__(self, number, directory, environment, owner, port):
        self.number, self.environment, self.owner, self.port = number, environment, owner, port
        # Time of the current kill; processes that started later do not belong to the run.
        self.now = float("inf")
        self.directory = os.path.join(directory, f"slot-{number}")
        self.bin = os.path.join(self.directory, "bin") + "/"
        self.state = os.path.join(directory, "state")
        self.name = f"crash-{number}"
        self.own_namespace = os.readlink("/proc/self/ns/pid")
        os.makedirs(self.bin)
        for source, name in (("CODEBOX", "wp-codebox"), ("CODEBOX_LAUNCH", "wp-codebox-launch")):
            shutil.copy2(environment[source], self.bin + name)
        self.plugin = os.path.join(self.directory, "plugin")
        os.mkdir(self.plugin)
        with open(os.path.join(self.plugin, "plugin.php"), "w", encoding="utf-8") as file:
            file.write("<?php\n/* Plugin Name: Sample */\n")
        for path in (self.plugin, os.path.join(self.plugin, "plugin.php")):
            shutil.chown(path, owner, owner)

    def pool(self):
        return {"port": self.port, "max_children": 1, "settings": {
            "wp_codebox.runner": self.bin + "wp-codebox", "wp_codebox.launcher": self.bin + "wp-codebox-launch", "output_buffering": "0"}}

    def site(self, *names):
        return os.path.join(self.state, "sites", self.name, *names)

    def call(self, *arguments):
        done = subprocess.run([self.bin + "wp-codebox", *arguments, "--state", self.state, "--json"], capture_output=True, text=True,
                              check=False, env={"PATH": "/usr/bin:/bin"}, timeout=60)
        try:
            return done.returncode, json.loads(done.stdout or "null")
        except ValueError:
            raise Wrong(f"wp-codebox {' '.join(arguments[:2])} answered no JSON: {done.stdout[-300:]} {done.stderr[-300:]}") from None

    # --- one job ----------------------------------------------------------------------------

    def run(self, job):
        """Runs a job {number, victim, mode, point, delay} and returns it with the observations added."""
        token = f"crash{os.getppid()}s{self.number}n{job['number']}"
        row = {**job, "token": token}
        view, self.now = None, float("inf")
        try:
            view = View(self, Request(self.port, os.path.join(HERE, "caller.php"), self.request(job, token)), token)
            self.kill(job, view, row)
            self.judge(job, view, row)
        except Wrong as wrong:
            row["wrong"] = str(wrong)
        except Exception as error:  # a defect of the test is a failure too
            row["wrong"] = f"{type(error).__name__}: {error}"
        finally:
            if view is not None:
                view.close()
            if row.get("wrong"):
                self.clear(token)
        return row

    def request(self, job, token):
        e = self.environment
        task = {"goal": "Crash", "checks": ["sh -c '" + CHECK.format(token=token, rest=self.rest(job)) + "'"],
                "limits": {"wall_clock_ms": 60000}}
        host = {"site": self.name, "wordpress": e["CODEBOX_WORDPRESS"], "denied": [e["CODEBOX_WORDPRESS"]],
                "mounts": [{"source": self.plugin, "target": "/workspace/plugin"}],
                "resolved_agent": {"kind": "command", "argv": ["sh", "-c", AGENT.format(token=token)]}}
        if job["mode"] == "detached":
            host["mode"] = "detached"
        return json.dumps([task, host]).encode()

    @staticmethod
    def rest(job):
        """Returns the seconds that a check sleeps after its output."""
        if job["victim"] == "worker" and job["mode"] == "attached":
            return SHORT if job["point"] in LATE else LONG
        return LONG if job["victim"] == "launcher" and job["point"].startswith("check") else SHORT

    def kill(self, job, view, row):
        """Observes the run until the job's point and kills the victim there. Without a victim, observes the run to its end."""
        began = time.monotonic()
        due = None
        # Raised priority, so that the poller also keeps up on a busy machine.
        os.setpriority(os.PRIO_PROCESS, 0, -10)
        while True:
            with self.held(job, view) as near:
                view.look()
                now = time.monotonic()
                if now - began > TIMEOUT_SECONDS:
                    raise Wrong(f"the run did not come to an end: {reached(view)}, {view.error}")
                if due is None and self.is_due(job, view, now - began):
                    due = now + (0 if job["point"] == "random" else job["delay"])
                victim = self.victim(job["victim"], view)
                if due is not None and now >= due and victim:
                    row["guest"], row["at"] = sorted(view.guests), reached(view)
                    with contextlib.suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
                        row["killed_at"] = time.monotonic()
                        self.now = time.clock_gettime(time.CLOCK_BOOTTIME)
                        if job["victim"] in ("runner", "worker"):
                            self.as_it_died(view, row, victim)
                        return
            if view.request.ended:
                # The run ended before the kill was due. `over` makes the caller repeat the job. With the victim `nobody`,
                # this is the normal end.
                row["at"] = "over" if job["victim"] != "nobody" else reached(view)
                return
            if not near:
                time.sleep(0.0002)

    @staticmethod
    def as_it_died(view, row, victim):
        """Updates the view after the victim has really died, because a signal acts asynchronously. If the victim is the
        runner, the run's progress is final now. If it is the worker, the run can still be cancelled."""
        while not has_exited(victim):
            if time.monotonic() - row["killed_at"] > LIMIT / 2:
                row["slow"] = waits_for(victim)
            time.sleep(0.0005)
        view.look()
        row["at"] = reached(view)

    @staticmethod
    def is_due(job, view, elapsed):
        if job["victim"] == "nobody":
            return False
        return elapsed >= job["delay"] if job["point"] == "random" else passed(view, job["point"])

    @staticmethod
    @contextlib.contextmanager
    def held(job, view):
        """Stops the runner during the observation near the point, because many points last less than a millisecond."""
        near = job["point"] in ORDER and view.supervisor is not None and passed(view, ORDER[max(0, ORDER.index(job["point"]) - 1)])
        if near:
            with contextlib.suppress(ProcessLookupError):
                os.kill(view.supervisor, signal.SIGSTOP)
        try:
            yield near
        finally:
            if near:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(view.supervisor, signal.SIGCONT)

    @staticmethod
    def victim(kind, view):
        """Returns the pid of the process that the job kills, None while it does not exist."""
        if kind == "worker":
            return view.worker
        if kind == "runner":
            return view.supervisor if view.supervisor and not has_exited(view.supervisor) else None
        alive = [pid for pid in view.launchers if not has_exited(pid)]
        return alive[-1] if alive else None

    # --- after the kill ---------------------------------------------------------------------

    def processes(self, token, guests):
        """Returns processes of the run: its programs, command lines with its token, and processes in its guests."""
        found = []
        for pid in pids():
            if has_exited(pid):
                continue
            if self.inside(pid, guests) or program(pid).startswith(self.bin) or token in command(pid):
                found.append(pid)
        return found

    def clear(self, token):
        for pid in self.processes(token, ()):
            with contextlib.suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)

    @staticmethod
    def await_gone(row, since, find):
        """Waits until two scans in a row find nothing and returns the elapsed seconds. One scan can miss a process that
        is forked while its parent ends."""
        while True:
            began = time.monotonic()
            left = find()
            if not left and not find():
                return round(began - since, 4)
            took = time.monotonic() - since
            if took > TIMEOUT_SECONDS:
                raise Wrong(f"left {took:.1f} s after the kill at {row.get('at')}: " + "; ".join(f"{pid} {command(pid)[:70]}" for pid in left))
            if took > LIMIT / 2:
                row["slow"] = "; ".join(waits_for(pid) for pid in left)
            # A pause leaves processor time to the ending processes.
            time.sleep(max(0.004, time.monotonic() - began))

    def judge(self, job, view, row):
        victim, mode = job["victim"], job["mode"]
        os.setpriority(os.PRIO_PROCESS, 0, 0)
        if row.get("at") == "over":
            # Remaining processes must not be counted for the next job.
            self.await_gone(row, time.monotonic(), lambda: self.processes(row["token"], view.guests))
            return
        killed_at = row.pop("killed_at", None)
        guests = frozenset(row.pop("guest", ()))
        if victim == "launcher":
            # A detached run continues to its own end.
            row["gone"] = self.await_gone(row, killed_at, lambda: [pid for pid in self.in_guests(guests) if guests])
        if victim == "launcher" or victim == "nobody" or (victim == "worker" and mode == "detached"):
            self.await_end(view, row)
        since = time.monotonic() if killed_at is None or "gone" in row or (victim == "worker" and mode == "detached") else killed_at
        took = self.await_gone(row, since, lambda: self.processes(row["token"], view.guests))
        row["gone"] = max(took, row.get("gone", 0.0))
        self.judge_record(job, view, row)

    def in_guests(self, guests):
        return [pid for pid in pids() if self.inside(pid, guests) and not has_exited(pid)]

    def inside(self, pid, guests):
        """Whether a process is in one of the guests. The kernel reuses namespace inode numbers, so processes started
        after the kill are ignored."""
        try:
            return os.readlink(f"/proc/{pid}/ns/pid") in guests and start_time(pid) <= self.now
        except OSError:
            return False

    def await_end(self, view, row):
        """Waits for the run's terminal record."""
        began = time.monotonic()
        while not view.ended():
            view.look()
            # Two scans, see await_gone. Without processes the run cannot progress; a live worker may still start one.
            if (view.request.ended or view.worker and has_exited(view.worker)) and not self.processes(row["token"], ()) and not self.processes(row["token"], ()):
                return
            if time.monotonic() - began > TIMEOUT_SECONDS:
                raise Wrong(f"the run went on: {reached(view)}")
            time.sleep(0.004)

    def judge_record(self, job, view, row):
        run = view.run
        if run is None:
            new = set(list_directory(self.site("runs"))) - view.before
            run = view.run = new.pop() if new else None
        if run is None:
            # The kill came before the run had a record, so it may have left no lease or other file either.
            row["outcome"] = "no run"
            leftovers = [f"active/{name}" for name in list_directory(self.site("active"))]
            if leftovers:
                self.call("gc", "--site", self.name)
                leftovers = [f"active/{name}" for name in list_directory(self.site("active"))]
            if leftovers:
                raise Wrong(f"left: {leftovers}")
            return
        # The next call detects the killed process and records the end of the run.
        status, record = self.call("runs", "get", run, "--site", self.name)
        if status != 0 or not isinstance(record, dict) or record.get("run_id") != run:
            raise Wrong(f"runs get answered {status}: {record}")
        words = (record.get("error") or {}).get("message") or record.get("summary") or ""
        row.update(run=run, outcome=record.get("outcome"), words=words, salvaged=record.get("salvaged", False))
        if record.get("status") != "ended" or not record.get("outcome"):
            raise Wrong(f"it is not settled: {record}")
        if len(words) < 20 or " " not in words:
            raise Wrong(f"the record does not say what happened: {record}")
        self.judge_outcome(job, row)
        self.judge_files(run)
        self.judge_bundle(job, view, row, record)

    @staticmethod
    def judge_outcome(job, row):
        outcome, victim = row["outcome"], job["victim"]
        early = row.get("at") in ("nothing", "spawned", "supervised", "marked", "recorded", "journal")
        if victim == "nobody" or (victim == "worker" and job["mode"] == "detached" and not early):
            fine = {"succeeded"}
        elif victim == "worker" and job["mode"] == "detached":
            # The test cannot see whether the request had reached the supervisor.
            fine = {"succeeded", "cancelled", "failed"}
        elif victim == "worker":
            fine = {"cancelled", "succeeded"} if row["at"] in LATE else {"cancelled", "failed"}
        elif victim == "runner":
            fine = {"succeeded"} if row["at"] in ("bundle there", "collected", "result", "ended") else {"failed"}
        else:
            fine = {"failed", "partial", "blocked", "succeeded"}
        if outcome not in fine:
            raise Wrong(f"{outcome} after the {victim} was killed at {row.get('at')}: {row['words']}")

    def judge_files(self, run):
        left = [f"active/{name}" for name in list_directory(self.site("active"))]
        left += [f"runs/{run}/{name}" for name in list_directory(self.site("runs", run)) if name not in RUN_FILES]
        left += [f"artifacts/{name}" for name in list_directory(self.site("artifacts")) if name.startswith(".")]
        left += [f"cgroups/{name}" for name in list_directory(os.path.join(self.state, "cgroups")) if name == run]
        for directory, names, _files in os.walk("/sys/fs/cgroup"):
            left += [f"{directory}/{name}" for name in names if name == f"wp-codebox-{run}"]
        left += [line for line in read("/proc/self/mountinfo").splitlines() if run in line]
        if left:
            raise Wrong(f"left: {left}")

    def judge_bundle(self, job, view, row, record):
        path = self.site("artifacts", row["run"])
        row["bundle"] = os.path.isdir(path)
        if bool(record.get("bundle_id")) != row["bundle"]:
            raise Wrong(f"the record names the bundle {record.get('bundle_id')}, the store has one: {row['bundle']}")
        # After the guest has ended and its change is captured, the change must be in a bundle. The
        # start of a check is the first event that shows the capture to this test.
        captured = any(event["type"] == "runtime.command.started" and event["data"].get("phase") == "check" for event in view.events)
        written = view.event("command.output", text="one")
        if job["victim"] == "nobody" or captured or (job["victim"] == "worker" and written):
            if not row["bundle"]:
                raise Wrong(f"the change was captured, but there is no bundle: {record}")
        if row["bundle"]:
            status, verification = self.call("artifacts", "verify", "--bundle", path)
            if status != 0:
                raise Wrong(f"the bundle does not verify: {verification}")
            changed = [entry.get("relativePath") for entry in json.loads(read(os.path.join(path, "files", "changed-files.json"))).get("files", [])]
            row["changed"] = changed
            if (written or captured and job["victim"] != "launcher") and changed != ["f.txt"]:
                raise Wrong(f"the bundle holds {changed}, not the change")


def jobs(chance, rounds):
    """Returns every job; the jobs that kill no process come first."""
    listed = [{"victim": "nobody", "mode": mode, "point": "none", "delay": 0} for mode in ("attached", "detached")]
    for turn in range(rounds):
        for mode in ("attached", "detached"):
            for victim in ("worker", "runner"):
                for point in ORDER:
                    listed.append({"victim": victim, "mode": mode, "point": point, "delay": 0 if turn == 0 else chance.uniform(0, 0.01)})
            for point, delay in LAUNCHER_POINTS:
                listed.append({"victim": "launcher", "mode": mode, "point": point, "delay": delay / 1000 if turn == 0 else chance.uniform(0, 0.02)})
            for victim in ("worker", "runner", "launcher"):
                for _ in range(3):
                    listed.append({"victim": victim, "mode": mode, "point": "random", "delay": chance.uniform(0.005, 0.25)})
    return [{"number": number, **job} for number, job in enumerate(listed)]
