"""Full queues, streams and disks, and a message server that goes away: what a submitter and a node say, and that no run is lost.

Each case frees the room, or starts the server again, and shows that the same request then succeeds.
"""

import contextlib
import gzip
import os
import signal
import subprocess

import pytest

from harness import must, poll_until, skip_unless_root
from harness.cluster import World
from harness.faults import Fault
from harness.frames import SupervisorClient
from harness.nats import Nats

FULL = "wp_codebox_cluster_full"
#: Node keys of a run that stays queued, because no node has this key.
NO_NODE = {"one": "0" * 64}


@pytest.fixture
def world(bench, environment, warm):
    """A server, and a node that has not started."""
    one = World(bench, environment)
    one.nodes.make("one").like(warm)
    yield one
    one.close()


@contextlib.contextmanager
def small_disk(path, megabytes, mode="0755"):
    """Mounts a file system of its own at a new directory."""
    if os.geteuid() != 0:
        skip_unless_root("only root can mount")
    os.makedirs(path)
    subprocess.run(["mount", "-t", "tmpfs", "-o", f"size={megabytes}m,mode={mode}", "tmpfs", path], check=True)
    try:
        yield path
    finally:
        subprocess.run(["umount", "--lazy", path], check=True)


def fill(directory):
    """Writes a file until the disk is full; returns its path."""
    path = os.path.join(directory, "filler")
    with open(path, "ab", buffering=0) as file:
        for size in (1 << 20, 512):
            with contextlib.suppress(OSError):
                while file.write(b"\0" * size):
                    pass
    return path


def fill_stream(world, subject, size):
    """Stores messages until the server has no room for another byte; returns their subjects."""
    subjects = []
    while size > 0:
        subjects.append(subject.format(len(subjects)))
        answer = world.records.store(subjects[-1], "x" * size)
        if "error" in answer:
            must(answer["error"]["err_code"] in (10077, 10047), str(answer))
            size //= 4
    return subjects


def empty_stream(world, stream, subjects):
    for subject in subjects:
        must(world.records.call(f"STREAM.PURGE.{stream}", {"filter": subject})["success"], "the stream cannot be emptied")


def troubles(node):
    return [event["error"]["code"] for event in node.events("trouble")]


def given_up(node):
    return [event["worked"]["error"] for event in node.events("worked") if event["worked"]["kind"] == "released"]


def test_run_submitted_to_a_full_queue_is_refused_and_leaves_no_record(world):
    world.set_up("--queue-messages", "1", "--shrink")
    node = world.nodes.nodes["one"].learn_key()
    first = world.detached("queue", "echo a > a.txt")
    poll_until(lambda: world.records.messages() == 1, what="the first run has no message")
    key = "--idempotency-key", "second"
    world.submit("queue", "echo b > b.txt", *key).expect(125, FULL)
    runs = world.records.runs()
    must(runs == {first}, f"the refused run has a record: {runs}")
    node.start()
    world.records.ended(first)
    # Control: the queue has room now.
    world.submit("queue", "echo b > b.txt", *key).expect(0)
    must(len(world.records.runs()) == 2, str(world.records.runs()))


def test_run_submitted_to_a_queue_that_does_not_exist_is_refused_and_leaves_no_record(world):
    world.submit("missing", "true", "--capability", "gpu", keys=NO_NODE).expect(125, "wp_codebox_cluster_not_set_up")
    must(not world.records.runs(), f"the refused run has a record: {world.records.runs()}")


def test_input_removed_from_the_server_after_a_node_claimed_its_run_is_stored_again_and_the_run_ends(world):
    removed, mark = [], os.urandom(8).hex()
    with open(os.path.join(world.source("removed"), "mark.txt"), "w", encoding="utf-8") as file:
        file.write(mark)

    def remove():
        # Removes only the input with the mark: the node has the others in its cache. Large objects are not read, because the node sends its claim again if this takes too long.
        small = [name for name in world.records.objects("layer.") if world.records.size(name)[0] < 4096]
        names = [name for name in small if mark.encode() in gzip.decompress(world.records.parts(name))]
        empty_stream(world, "CODEBOX_O_team", [f"objects.team.{name}.>" for name in names])
        removed.extend(set(names) - world.records.objects())

    node = world.nodes.nodes["one"]
    node.url = world.proxy(Fault(r"records\..*", '"state":"claimed"', then=remove)).url
    node.start()
    run = world.detached("removed", "echo a > a.txt")
    world.all_hit()
    must(len(removed) == 1, f"control: the input is not removed: {removed}")
    record = world.records.ended(run)
    must(record["epoch"] == 1 and removed[0] in world.records.objects(), str(record))
    world.delivered(run)


def test_full_record_stream_refuses_new_runs_and_a_claimed_run_ends_once_the_stream_has_room(world):
    world.set_up("--record-space", "1", "--shrink")
    node = world.nodes.nodes["one"]
    # Fills the stream after the claim is stored, so that it has no room for the end of the run.
    dummies = []
    node.url = world.proxy(Fault(r"objects\.team\.result\..*\.end", then=lambda: dummies.extend(fill_stream(world, "records.team.dummy{}", 60_000)))).url
    node.start()
    run = world.detached("records", "echo a > a.txt")
    world.all_hit()
    world.submit("records", "true").expect(125, FULL)
    must(world.records.state(run) == "claimed", "the end was stored in a full stream")
    # The stream was full before the node tried to store the end; the node keeps running and tries again.
    must(node.process.poll() is None, node.text())
    empty_stream(world, "CODEBOX_R_team", dummies)
    must(world.records.ended(run)["epoch"] == 1, "the task ran again")
    world.delivered(run)
    world.submit("records", "true").expect(0)


def test_full_object_stream_refuses_uploads_and_ends_a_run_whose_result_has_no_room(world):
    node = world.nodes.nodes["one"]
    fault = Fault(r"objects\.team\.result\..*\.part\.0", then=lambda: fill_stream(world, "objects.team.junk.part.{}", 131_072))
    node.url = world.proxy(fault).url
    node.start()
    world.set_up("--object-space", "64", "--object-size", "64", "--shrink")
    refused = world.submit("objects", "echo a > a.txt", "--max-tries", "2").expect(125, FULL)
    must("CODEBOX_O_team" in refused.json["error"]["message"], str(refused))
    must([error["code"] for error in given_up(node)] == [FULL], node.text())
    # The upload of the task itself is refused, so no node sees this run.
    world.submit("objects-more", "true").expect(125, FULL)
    empty_stream(world, "CODEBOX_O_team", ["objects.team.junk.>"])
    world.submit("objects", "echo a > a.txt").expect(0)


def test_too_large_input_or_result_is_refused_with_its_own_error_code(world, bench):
    node = world.nodes.nodes["one"].start()
    world.submit("size", "true").expect(0)
    # Inputs larger than this limit were uploaded by the run above, so only new ones are refused.
    world.set_up("--object-size", "1", "--shrink")
    large = "wp_codebox_cluster_object_too_large"
    world.submit("size", "head -c 3000000 /dev/urandom > random").expect(1, large)
    must(not given_up(node), "another node could not store it either")
    source = world.source("size-input")
    with open(f"{source}/random", "wb") as file:
        file.write(os.urandom(3_000_000))
    bench.own(source)
    world.submit("size-input", "true").expect(1, large)
    world.set_up("--object-size", "8")
    world.submit("size-input", "true").expect(0)


def test_node_with_a_full_disk_gives_the_run_to_another_node(bench, environment, warm):
    world = World(bench, environment)
    try:
        for what in ("layers", "state"):
            with small_disk(f"{world.nodes.directory}/{what}", 400) as disk:
                node = world.nodes.make(what).like(warm).start()
                other = world.nodes.make(f"other-{what}").like(warm).start()
                other.drain()
                world.submit(f"disk-{what}", "true").expect(0)
                # The disk with the directories of the node is full from here on.
                filler = fill(disk)
                run = world.detached(f"more-{what}", "echo a > a.txt")
                error = poll_until(lambda one=node: given_up(one), what=f"the node with the full disk does not give the run up: {node.text()}")[0]
                must(len(error["message"]) > 30, str(error))
                other.start()
                world.delivered(run)
                must(world.records.get(run)["state"]["by"]["node"] == other.name, node.text())
                # Control: the node works again when it has room.
                other.drain()
                os.unlink(filler)
                world.submit(f"disk-{what}", "true").expect(0)
                node.drain()
    finally:
        world.close()


def test_run_ends_after_a_server_with_a_full_disk_has_room_and_is_started_again(bench, environment, warm):
    disk = f"{bench.directory}/server-disk"
    with small_disk(disk, 256):
        server = Nats(environment["CODEBOX_NATS_SERVER"], "disk", {"jetstream": {"store_dir": f"{disk}/data"}})
        world = World(bench, environment, server=server)
        try:
            fillers = []
            node = world.nodes.make("one", url=world.proxy(Fault(r"objects\.team\.result\..*\.part\.0", then=lambda: fillers.append(fill(disk)))).url).like(warm).start()
            run = world.detached("server-disk", "echo a > a.txt")
            world.all_hit()
            seen = poll_until(lambda: troubles(node), what=f"the node does not say that the server fails: {node.text()}")
            must(set(seen) <= {"wp_codebox_cluster_unreachable", FULL, "wp_codebox_cluster_not_set_up"}, str(seen))
            # The server turns its streams off when its disk is full, until it is started again.
            os.unlink(fillers[0])
            server.kill()
            server.start()
            world.reconnect()
            world.delivered(run)
            world.submit("server-disk", "true").expect(0)
        finally:
            world.close()


@pytest.mark.parametrize("way", ["killed", "stopped"])
def test_submitter_whose_server_is_killed_or_stopped_reports_that_the_run_may_go_on_and_gets_its_result_later(world, bench, way):
    node = world.nodes.nodes["one"].start()
    access = {"servers": [world.server.url], "submitter": "team"}
    placement = {"cluster": access, "capability": "default", "priority": "normal", "max_tries": 3,
                 "nodes": [{"node": "one", "key": node.key}], "patience_ms": 1000}
    first = SupervisorClient(bench, "echo ready; sleep 3; echo a > a.txt", placement={"named": placement}).spawn().accepted()
    run = first.run_id
    # Waits for the output: if the server stopped earlier, the node could not fetch the inputs and would give the run back.
    frame = {}
    while "ready" not in str(frame):
        frame = first.frame()
        must(frame and frame["type"] == "event", str(frame))
    if way == "killed":
        world.server.kill()
    else:
        world.server.process.send_signal(signal.SIGSTOP)
    try:
        last = first.last()
        must(last["type"] == "error" and last["error"]["code"] == "wp_codebox_cluster_unreachable", str(last))
        must("may go on" in str(last["error"]["hints"]) and "idempotency-key" in str(last["error"]["hints"]), str(last))
    finally:
        if way == "killed":
            world.server.start()
            world.reconnect()
        else:
            world.server.process.send_signal(signal.SIGCONT)
    must(world.records.ended(run)["epoch"] == 1, "the run was repeated")
    again = SupervisorClient(bench, "true")
    again.run_id, again.request = run, first.request
    last = again.spawn().accepted().last()
    must(last["type"] == "result" and last["result"]["outcome"] == "succeeded", str(last))
    world.verified(run)
