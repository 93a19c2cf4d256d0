"""Every field of a request that names something on the host, set by a caller who changes the name while a service of root works.

The fields come from the table of docs/security/runs-and-callers.md, which `cargo xtask generate` writes from the request type: a new
field without an attack fails. An attack compares the answers when the name leads to an object of the caller, to one of root, and the
answer to the same request of root. Then a second process of the caller lets the name lead to either in turn, while requests are sent.
"""

import contextlib
import json
import os
import re
import secrets
import shutil
import socket
import tempfile

import pytest

from harness import contents, live, must, poll_until, tree
from harness.callers import Trap, ask, code, connect_as, flipping, give, root_only
from harness.frames import SupervisorClient
from harness.service import Activator
from harness.templates import seed_template

PAGE = os.path.join(os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__)))), "docs", "security", "runs-and-callers.md")
# How fields that name nothing on the host are described there.
UNOPENED = ("not at all: names nothing on the host", "inside the guest", "see ")
# Requests with a name that changes.
TRIES = 16
# Requests with a name that the service refuses as a text.
REFUSED = 8
SHOW = "cat lib/a.txt /run/codebox/staged/x /run/codebox/staged/agent-bundles/* /wordpress/wp-content/*plugins/*/*.php; true"
IMPORTER = """<?php
/* Plugin Name: Importer */
function wp_agent_import_runtime_bundles( $bundles, $options ) {
	return array_map( static fn() => array( 'success' => true ), $bundles );
}
"""


def fields():
    """Returns the fields of the table that name something on the host, as `Struct.field`."""
    with open(PAGE, encoding="utf-8") as file:
        table = re.search(r"<!-- request fields: .*?-->\n(.*?)<!-- end of request fields -->", file.read(), re.DOTALL).group(1)
    rows = [[cell.strip() for cell in line.split("|")[1:-1]] for line in table.splitlines()[2:]]
    return {f"{of.strip('`')}.{name}" for of, names, _, opened, _ in rows if not opened.startswith(UNOPENED) for name in re.findall(r"`(\w+)`", names)}


class World:
    """A service of root, and two directories with the same names: one of the caller's, one that only root can read."""

    def __init__(self, bench):
        self.bench, self.caller = bench, bench.owner
        self.secret, self.marker = "of-root-" + secrets.token_hex(4), "of-caller-" + secrets.token_hex(4)
        # Content of bundles and snapshots, which the caller's state directory also has.
        self.kept = "of-bundle-" + secrets.token_hex(4)
        self.place = tempfile.mkdtemp(dir=bench.directory)
        os.chmod(self.place, 0o755)
        self.own, self.closed, self.names = (os.path.join(self.place, name) for name in ("own", "closed", "names"))
        for directory, text in ((self.own, self.marker), (self.closed, self.secret)):
            self.fill(directory, text)
            os.mkdir(os.path.join(directory, "state"))
        os.chmod(self.closed, 0o700)
        self.importer = os.path.join(self.own, "importer")
        os.mkdir(self.importer)
        self.write(os.path.join(self.importer, "importer.php"), IMPORTER)
        os.mkdir(self.names)
        give(self.own, self.caller)
        give(self.names, self.caller)
        self.link, self.parent = os.path.join(self.names, "name"), os.path.join(self.names, "parent")
        self.state = os.path.join(self.own, "state")
        os.chmod(self.state, 0o700)
        seed_template(self.state)
        # A state directory of another user, in the place that only root can enter.
        theirs = os.path.join(self.closed, "state")
        give(theirs, "nobody")
        os.chmod(theirs, 0o700)
        self.service = Activator(bench, environment={"SERVICE_TOKEN": self.secret})

    def fill(self, directory, text):
        """Makes a directory that serves as plugin, agent programs and (broken) WordPress, and a file beside it. Each contains the text."""
        top = os.path.join(directory, "tree")
        program = os.path.join(top, "opencode", "node_modules", ".bin", "opencode")
        os.makedirs(os.path.dirname(program))
        shutil.copytree(self.bench.source(), top, dirs_exist_ok=True)
        self.write(os.path.join(top, "lib", "a.txt"), text)
        self.write(os.path.join(top, "plugin.php"), f"<?php\n/* Plugin Name: Sample */\n// {text}\n")
        event = json.dumps({"type": "text", "part": {"text": text}})
        self.write(program, f"#!/bin/sh\necho '{event}'\n", 0o755)
        self.write(os.path.join(top, "wp-includes", "version.php"), f"<?php\n$wp_version = '7.1.1'; // {text}\n")
        self.write(os.path.join(directory, "file"), json.dumps({"agent": text}), 0o600)

    @staticmethod
    def write(path, text, mode=0o644):
        os.makedirs(os.path.dirname(path), exist_ok=True)
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chmod(path, mode)

    def close(self):
        self.service.__exit__()

    def request(self, change, state=None):
        """Returns a change of a request that also names a state directory, by default the caller's."""
        def both(request):
            request["paths"]["state_dir"] = state or self.state
            change(request)
        return both

    def answer(self, change, user, script=SHOW):
        """Sends a request and returns all frames as text, and what distinguishes the answer: its code, whether it says that something cannot be opened, and whose text it shows."""
        # The records of root's runs contain the secret.
        state = None if user else self.bench.state
        _, frames = ask(self.bench, self.service, self.request(change, state), user, script)
        text = json.dumps(frames)
        return text, (code(frames), "ermission denied" in text, self.marker in text, self.secret in text)

    def denied(self, change, what, script=SHOW):
        """Sends a request of the caller and returns its kind. Fails if the answer has the secret."""
        text, kind = self.answer(change, self.caller, script)
        must(self.secret not in text, f"{what}: the caller got a file of root: {text[-1500:]}")
        return kind

    @contextlib.contextmanager
    def unchanged(self):
        """Fails if an object of root changed, or a file of the caller's state directory has its content."""
        before = tree(self.closed), os.lstat(self.closed)
        yield
        after = os.lstat(self.closed)
        must(tree(self.closed) == before[0], "a file of root changed")
        must((after.st_uid, after.st_mode) == (before[1].st_uid, before[1].st_mode), "the directory of root changed")
        found = [path for path, content in contents(self.own, self.names) if self.secret.encode() in content]
        must(not found, f"files of root were copied to {found}")


@pytest.fixture(name="started", scope="module")
def started_world(bench):
    root_only()
    world = World(bench)
    yield world
    world.close()


@pytest.fixture(name="world")
def world_of_a_case(started):
    yield started
    # Names that a failed case has left.
    for name in os.listdir(started.names):
        os.unlink(os.path.join(started.names, name))


ODD_FILES = ("fifo", "/dev/null", "/proc/self/environ", "/proc/self/maps", "/proc/self/cwd", "/proc/self/fd/0")
ODD_DIRECTORIES = ("fifo", "/dev/null", "/proc/self/root", "/proc/self/cwd", "/proc/self/fd", "/proc/self/task")


def opened(name, change, odd_names=ODD_FILES, root_follows=True, links=("name", "parent")):
    """Returns the attack on a field that names the file or directory `name`. `change` returns the change of a request for a name.

    `links`: which parts of the name are links, the last one (`name`) and an earlier one (`parent`).
    """

    def attack(world):
        closed = os.path.join(world.closed, name)
        # Each link of the caller, its two targets, and the name in the request.
        ways = {"name": (world.link, [os.path.join(world.own, name), closed], world.link),
                "parent": (world.parent, [world.own, world.closed], os.path.join(world.parent, name))}
        fifo = os.path.join(world.names, "fifo")
        os.mkfifo(fifo)
        give(fifo, world.caller)
        with world.unchanged():
            for link, targets, used_name in (ways[part] for part in links):
                kinds = []
                for target in targets:
                    os.symlink(target, link)
                    kinds.append(world.denied(change(used_name), f"a link to {target}"))
                    os.unlink(link)
                must(kinds[0] != kinds[1], f"control: the answers do not differ: {kinds}")
                seen = set()
                with flipping(link, *targets, user=world.caller):
                    poll_until(lambda: seen.add(os.readlink(link)) or len(seen) == 2, what="control: the link does not change")  # noqa: B023
                    for _ in range(TRIES):
                        world.denied(change(used_name), "a link that changes")
            for odd in (closed, "/proc/self/root" + closed, *odd_names):
                kind = world.denied(change(fifo if odd == "fifo" else odd), odd)
                must(kind[0] not in ("result", "wp_codebox_internal") and not kind[2], f"{odd}: the name is accepted: {kind}")
        os.unlink(fifo)
        # Control: for root the service follows the name, so what the caller is refused exists.
        _, kind = world.answer(change(closed), None)
        must((kind[3] or kind != kinds[1]) == root_follows, f"control: the answer to root is {kind}, to the caller {kinds[1]}")

    return attack


def path(name):
    return lambda value: lambda request: request["paths"].__setitem__(name, value)


def agents(name):
    model = {"provider": "any", "model": "any", "api": "openai-chat", "base_url": "http://127.0.0.1:9/v1", "private": True}

    def change(request):
        request.update(agent={"kind": "preset", "name": "opencode"}, model=model)
        request["paths"]["agents_dir"] = name
    return change


def staged(name):
    return lambda request: request["task"].__setitem__("staged_files", [{"source": name, "target": "/run/codebox/staged/x"}])


def mount(name):
    return lambda request: request["mounts"][0].__setitem__("source", name)


def component(name):
    return lambda request: request.__setitem__("components", [{"slug": "sample", "source": name, "load_as": "plugin"}])


def cluster(field):
    def change(name):
        access = {"servers": ["nats://127.0.0.1:9"], "submitter": "team", field: name}
        placement = {"cluster": access, "capability": "default", "priority": "normal", "max_tries": 1, "patience_ms": 1,
                     "nodes": [{"node": "n", "key": "0" * 64}]}
        return lambda request: request.__setitem__("placement", {"named": placement})
    return change


def bundle(world):
    def change(name):
        importer = {"slug": "importer", "source": world.importer, "load_as": "plugin", "activate": True}
        return lambda request: request.update(agent_bundles=[{"source": name}], components=[importer])
    opened("file", change)(world)


def followed(world):
    """An earlier bundle in the caller's state directory, replaced by a link to one of root."""
    source = world.bench.source("followed")

    def change(of=None):
        def both(request):
            request["mounts"][0]["source"] = source
            request.update({"follow_up": {"of": of}} if of else {})
        return world.request(both)

    run, frames = ask(world.bench, world.service, change(), world.caller, f"echo {world.kept} >new.txt")
    must(code(frames) == "result", str(frames[-1]))
    artifacts = frames[-1]["result"]["artifacts"]
    for of in ({"run_id": run.run_id}, {"artifact_id": artifacts["bundle_id"]}):
        in_state(world, artifacts["path"], lambda of=of: ask(world.bench, world.service, change(of), world.caller, "cat new.txt; date +%N >other.txt")[1])


def snapshot(world):
    """A snapshot in the caller's state directory, replaced by a link to one of root."""
    source = world.bench.source("held")

    def held(name=None):
        run = SupervisorClient(world.bench, "true")
        world.request(lambda request: request.pop("agent"))(run.request)
        run.request["mounts"][0]["source"] = source
        run.request["hold"] = {"ttl_ms": 60000, "max_ttl_ms": 60000, **({"snapshot": name} if name else {})}
        run.socket = connect_as(world.service.address, world.caller)
        return run.begin()

    def frames_of(run, request):
        """Waits until the sandbox is ready, sends the request, and ends the sandbox. Returns all frames."""
        frames = []
        while (frame := run.frame()) is not None:
            frames.append(frame)
            if frame["type"] == "event" and frame["event"]["data"].get("to") == "ready":
                frames.append(live.ask(os.path.join(world.state, "sites", world.bench.site, "runs", run.run_id), request))
                run.send({"type": "cancel"})
        run.close()
        return frames

    def shell(script):
        return {"type": "command", "call": {"command": "command-agent-run", "args": ["command=sh", "args-json=" + json.dumps(["-ec", script])]}}

    run, frames = held(), []
    while (frame := run.frame())["type"] != "event" or frame["event"]["data"].get("to") != "ready":
        must(frame["type"] in ("accepted", "event"), str(frame))
    directory = os.path.join(world.state, "sites", world.bench.site, "runs", run.run_id)
    must(live.ask(directory, shell(f"echo {world.kept} >new.txt"))["answer"]["status"] == "ok", "the file is not written")
    answer = live.ask(directory, {"type": "snapshot", "name": "one"})
    must(answer["type"] == "answer", str(answer))
    name = next(name for name in os.listdir(os.path.join(world.state, "sites", world.bench.site, "snapshots")) if name.startswith("snap_"))
    run.send({"type": "cancel"}).last()
    run.close()
    shutil.rmtree(directory, ignore_errors=True)
    in_state(world, os.path.join(world.state, "sites", world.bench.site, "snapshots", name), lambda: frames_of(held(name), shell("cat new.txt")))


def in_state(world, directory, frames):
    """Attacks a directory of the caller's state directory that a request names. Only `frames` shows its content, the secret."""
    shows = lambda: world.kept in json.dumps(frames())  # noqa: E731
    must(shows(), "control: the caller's own object is not used")
    parent, name = os.path.split(directory)
    closed = os.path.join(world.closed, os.path.basename(parent))
    kept = os.path.join(closed, name)
    shutil.copytree(directory, kept, symlinks=True)
    shutil.move(directory, world.place)
    before = tree(closed)
    for part, target in ((directory, kept), (parent, closed)):
        aside = part + ".aside"
        if os.path.exists(part):
            os.rename(part, aside)
        os.symlink(target, part)
        must(not shows(), f"the link {part} to an object of root is followed")
        os.unlink(part)
        with flipping(part, world.names, target, user=world.caller):
            for _ in range(REFUSED):
                must(not shows(), f"the changing link {part} to an object of root is followed")
        if os.path.exists(aside):
            os.rename(aside, part)
    must(tree(closed) == before, "an object of root changed")
    shutil.rmtree(closed)
    shutil.move(os.path.join(world.place, name), directory)
    must(shows(), "control: the caller's own object is not used any more")


def preview(world):
    """The caller gets no port that only root may use, and no address of another host."""
    with open("/proc/sys/net/ipv4/ip_unprivileged_port_start", encoding="ascii") as file:
        must(int(file.read()) > 99, "every user may use every port")
    with socket.socket() as free:
        # Control: root may use the port.
        free.bind(("127.0.0.1", 99))

    def change(**values):
        def hold(request):
            request.pop("agent")
            request["hold"] = {"ttl_ms": 1, "max_ttl_ms": 1, "preview": values}
        return hold
    used = world.denied(change(bind="127.0.0.1"), "a free port")
    must(used[0] == "result", f"control: {used}")
    for values in ({"bind": "127.0.0.1", "port": 99}, {"port": 99}, {"bind": world.closed}, {"bind": "192.0.2.1", "port": 8099}):
        must(world.denied(change(**values), str(values))[0] not in ("result", "wp_codebox_internal"), f"{values} is accepted")


def configured(field, change, real):
    """Returns the attack on a field that may only repeat a value of the service: a link that changes between it and a program of the caller."""

    def attack(world):
        trap = Trap(world.bench)
        with world.unchanged():
            must(world.denied(change(real(world)), "the value of the service")[0] == "result", "control: the value of the service is refused") if real else None
            target = real(world) if real else world.closed
            with flipping(trap.link, target, trap.program, user=world.caller):
                for name in [trap.link] * REFUSED + [trap.program, "/proc/self/root" + trap.program]:
                    _, frames = ask(world.bench, world.service, world.request(change(name)), world.caller)
                    must(not trap.users(), f"{field}: the caller's program ran as {trap.users()}")
                    must(code(frames) == "wp_codebox_forbidden" and frames[-1]["error"]["data"]["field"] == field, f"{field}: {frames[-1]}")
                    must(frames[-1]["error"]["hints"], f"{field}: the error does not say what to do")

    return attack


def launcher(world):
    """Control: the service executes what root names, and the trap notices it."""
    trap = Trap(world.bench)
    os.symlink(trap.program, trap.link)
    world.answer(path("launcher")(trap.link), None)
    must(0 in trap.users(), f"control: the launcher of root's request ran as {trap.users()}")
    configured("paths.launcher", path("launcher"), lambda world: world.bench.environment["CODEBOX_LAUNCH"])(world)


def wrapper(name):
    return lambda request: request.__setitem__("outer_sandbox", {"kind": "bubblewrap", "program": name, "need": "required"})


def process_wrapper(world):
    trap = Trap(world.bench)
    world.answer(wrapper(trap.program), None)
    must([uid for uid in trap.users() if uid != 0], f"control: the wrapper of root's request ran as {trap.users()}")
    configured("outer_sandbox.program", wrapper, None)(world)


def guest_ids(world):
    """Values, not names: the caller cannot choose the ids of its guests, for instance those of another user."""
    change = lambda request: request["paths"].__setitem__("guest_ids", {"first": 700000, "count": 16})  # noqa: E731
    must(world.answer(change, None)[1][0] == "result", "control: root chooses the ids")
    _, frames = ask(world.bench, world.service, world.request(change), world.caller)
    must(code(frames) == "wp_codebox_forbidden" and frames[-1]["error"]["data"]["field"] == "paths.guest_ids", str(frames[-1]))


def own_value(name):
    return lambda world: world.bench.environment[name]


def mixed(*attacks):
    def attack(world):
        for one in attacks:
            one(world)
    return attack


def in_workflow(name):
    return lambda request: request.__setitem__("workflow", {"steps": [], "staged": [{"source": name, "target": "/run/codebox/staged/x"}]})


ATTACKS = {
    "RunPaths.state_dir": opened("state", path("state_dir"), ODD_DIRECTORIES, root_follows=False, links=["parent"]),
    "RunPaths.agents_dir": opened("tree", agents, ODD_DIRECTORIES),
    "RunPaths.wordpress": opened("tree", path("wordpress"), ODD_DIRECTORIES, root_follows=False),
    "RunPaths.launcher": launcher,
    "RunPaths.share_dir": configured("paths.share_dir", path("share_dir"), own_value("CODEBOX_SHARE")),
    "RunPaths.php_binary": configured("paths.php_binary", path("php_binary"), own_value("CODEBOX_PHP")),
    "RunPaths.browser": configured("paths.browser", path("browser"), None),
    "RunPaths.cgroup": configured("paths.cgroup", path("cgroup"), None),
    "RunPaths.guest_ids": guest_ids,
    "StagedFile.source": mixed(opened("file", staged), opened("file", in_workflow)),
    "MountRequest.source": opened("tree", mount, ODD_DIRECTORIES),
    "Component.source": opened("tree", component, ODD_DIRECTORIES),
    "AgentBundle.source": bundle,
    "FollowUpOf.artifact_id": followed,
    "FollowUpOf.run_id": followed,
    "Hold.snapshot": snapshot,
    "PreviewRequest.bind": preview,
    "PreviewRequest.port": preview,
    "OuterSandbox.program": process_wrapper,
    "ClusterAccess.credentials_file": opened("file", cluster("credentials_file"), root_follows=False, links=["parent"]),
    "ClusterAccess.ca_file": opened("file", cluster("ca_file"), root_follows=False),
}


def test_every_field_that_names_something_on_the_host_has_an_attack():
    must(fields() == set(ATTACKS), f"without an attack: {fields() - set(ATTACKS)}; not in the table: {set(ATTACKS) - fields()}")


@pytest.mark.parametrize("names", [[name for name in ATTACKS if ATTACKS[name] is attack] for attack in dict.fromkeys(ATTACKS.values())], ids="+".join)
def test_name_of_a_caller_reaches_nothing_of_root(world, names):
    ATTACKS[names[0]](world)
