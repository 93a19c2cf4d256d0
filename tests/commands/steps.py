"""Commands as steps of one run, and the expected result of each.

The steps of a group run one after the other in one guest; a failing step does not stop the others.
Each step is a case of its own. `expect` is called with the document that the command printed, or,
for a step that must fail, with the whole result row of the step.
"""

import json
import os
import re
import shutil

import pytest

from harness import Failed, must
from harness.frames import SupervisorClient

FIXTURES = os.path.join(os.path.dirname(os.path.dirname(os.path.abspath(__file__))), "fixtures")
PLUGINS = "/wordpress/wp-content/plugins"
PLUGIN = f"{PLUGINS}/commands-plugin"


class Step:
    """One command of a run: its arguments, and the expected document or error."""

    def __init__(self, command, args=None, expect=None, fails=None, says="", name=None):
        self.command = command
        self.args = [f"{name}={value if isinstance(value, str) else json.dumps(value)}" for name, value in (args or {}).items()]
        self.expect = expect
        self.fails = fails
        self.says = says
        self.name = name or command

    def row(self, index):
        return {"phase": "steps", "index": index, "call": {"command": self.command, "args": self.args}, "on_failure": "allow"}

    def judge(self, row):
        shown = json.dumps(row, ensure_ascii=False)[:3000]
        must(row["command"] == self.command, f"another step: {shown}")
        complaint = re.search(r".* in /opt/codebox/\S+ on line \d+", row.get("stderr", ""))
        must(not complaint, f"PHP complains about a program of the sandbox: {complaint and complaint[0]}")
        if self.fails is not None:
            error = row.get("error") or {}
            reason = (error.get("data") or {}).get("reason")
            must(row["status"] == "error" and self.fails in (error.get("code"), reason), f"expected {self.fails}: {shown}")
            must(self.says in error["message"], f"it does not say {self.says!r}: {shown}")
            if self.expect:
                self.expect(row)
            return
        must(row["status"] == "ok", f"it failed: {shown}")
        if self.expect:
            self.expect(document(row))


def document(row):
    """Returns the document that a step printed."""
    try:
        return json.loads(row["stdout"])
    except ValueError:
        raise Failed(f"no document: {json.dumps(row)[:3000]}") from None


def equal(found, wanted, what="value"):
    must(found == wanted, f"{what} is {json.dumps(found)[:1000]}, not {json.dumps(wanted)[:1000]}")


class Group:
    """Steps that run one after the other in one guest."""

    def __init__(self, name, steps, after=None, fixture="commands-plugin", **request):
        self.name = name
        self.fixture = fixture
        self.steps = steps
        self.after = after
        self.request = request

    def cases(self):
        """Returns one case that runs the steps, then one case per step."""
        rows = {}

        def the_run(bench):
            source = os.path.join(bench.directory, self.fixture)
            shutil.rmtree(source, ignore_errors=True)
            shutil.copytree(os.path.join(FIXTURES, self.fixture), source)
            bench.own(source)
            request = {
                "agent": None, "task": None, "limits": {"wall_clock_ms": 300000},
                "mounts": [{"source": source, "target": f"{PLUGINS}/{self.fixture}", "mode": "readwrite"}],
                "workflow": {"steps": [step.row(index) for index, step in enumerate(self.steps)]}, **self.request}
            talk = SupervisorClient(bench, "true")
            talk.request.update(request)
            talk.spawn().accepted()
            talk.socket.settimeout(240)
            last = talk.last()
            talk.close()
            talk.ended()
            must(last and last.get("result") and last["result"].get("workflow"), f"no result: {json.dumps(last)[:3000]}")
            done = last["result"]["workflow"]["executions"]
            failures = last["result"]["workflow"]["stepFailures"]
            must(len(done) == len(self.steps), f"{len(done)} of {len(self.steps)} steps ran: {json.dumps(failures)[:3000]}")
            rows.update(enumerate(done))
            rows["bundle"] = last["result"].get("bundle")
            if self.after:
                self.after(bench, last["result"])

        def of(index, step):
            def case(bench):
                must(index in rows, "the run did not come that far")
                step.judge(rows[index])
            return case

        yield f"{self.name}: the run executes every step", the_run
        for index, step in enumerate(self.steps):
            yield f"{self.name}: {step.name}", of(index, step)


def cases(groups, single=()):
    """Returns pytest parameters. An xdist group keeps the steps of a run in one process, after the case that runs them."""
    for group in groups:
        yield from (pytest.param(case, id=name, marks=pytest.mark.xdist_group(group.name)) for name, case in group.cases())
    yield from (pytest.param(case, id=name) for name, case in single)


def refused(call, code, says, **request):
    """Returns a case whose request must be refused with this code before a guest starts."""
    def case(bench):
        talk = SupervisorClient(bench, "true")
        talk.request.update({"agent": None, "task": None, "commands": [call], **request})
        talk.spawn()
        last = talk.last()
        talk.close()
        talk.ended()
        error = last.get("error") or (last.get("result") or {}).get("error") or {}
        must(error.get("code") == code and says in error.get("message", ""), f"expected {code} with {says!r}: {json.dumps(last)[:2000]}")
    return case
