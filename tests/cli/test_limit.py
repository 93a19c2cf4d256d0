"""Cgroup limits of runs, and garbage collection."""

import copy
import json
import os
import pwd
import subprocess
import tempfile

from harness import await_count, kill_and_wait, must, poll_until, skip_unless_root, sleeper, wake
from harness.processes import descends_from
from harness.templates import seed_template
from harness.users import unprivileged_bench


def axis(answer, name):
    return next(row for row in answer.result["isolation"]["axes"] if row["axis"] == name)


def groups():
    """Returns the cgroups of all runs. While one cgroup is removed, the kernel may omit another from the directory listing."""
    found = set()
    for directory, names, _files in os.walk("/sys/fs/cgroup"):
        found |= {os.path.join(directory, name) for name in names if name.startswith("wp-codebox-run_")}
    return found


def own_runs(bench):
    """Returns the ids of this site's runs, to ignore the cgroups that other suites create at the same time."""
    return set(os.listdir(os.path.join(bench.state, "sites", bench.site, "runs")))


def own_groups(bench):
    return {path for path in groups() if os.path.basename(path).removeprefix("wp-codebox-") in own_runs(bench)}


def announced(bench):
    return sorted(own_runs(bench) & set(os.listdir(os.path.join(bench.state, "cgroups"))))


def inhabited(paths):
    """Returns those of the cgroup directories that contain a process."""
    found = []
    for path in paths:
        try:
            with open(os.path.join(path, "cgroup.procs"), encoding="ascii") as file:
                found += [path] if file.read() else []
        except OSError:
            continue
    return found


def own_group(controller):
    """Returns this process's directory in a cgroup v1 hierarchy."""
    with open("/proc/self/cgroup", encoding="ascii") as file:
        for line in file:
            _number, controllers, path = line.strip().split(":", 2)
            if controller in controllers.split(","):
                return f"/sys/fs/cgroup/{controller}{path}".rstrip("/")
    return None


def require_memory_cgroup(bench):
    """Skips unless root; fails when no cgroup v1 memory hierarchy is mounted."""
    if os.geteuid() != 0:
        skip_unless_root("groups of its own need root or a delegated group")
    must(own_group("memory"), "this machine has no version 1 memory hierarchy")


def test_run_has_a_memory_and_a_pids_cgroup_whose_path_the_guest_does_not_see_and_which_ends_with_the_run(bench):
    require_memory_cgroup(bench)
    answer = bench.agent("echo x > x.txt; cat /proc/self/cgroup", "--memory", "300M", "--disk", "100M").expect(0)
    memory, pids = axis(answer, "memory"), axis(answer, "pids")
    must(memory["enforced"] == "enforced" and str(400 << 20) in memory["evidence"], json.dumps(memory))
    must("pids cgroup" in pids["by"], json.dumps(pids))
    said = answer.result["transcript"]["executions"][0]["stdout"]
    must("memory:/\n" in said and "wp-codebox" not in said, f"the guest sees the path of its cgroup: {said}")
    must(answer.result["run_id"] not in " ".join(groups()), "the cgroup still exists")
    must(answer.result["cost"]["cpu_ms"] > 0 and answer.result["cost"]["peak_memory_bytes"] > 0, json.dumps(answer.result["cost"]))


# Two processes that need a second of CPU time together.
BUSY = "php -n -r 'do { $u = getrusage(); } while ($u[\"ru_utime.tv_sec\"] === 0 && $u[\"ru_utime.tv_usec\"] + $u[\"ru_stime.tv_usec\"] < 500000);' & "


def test_cpu_limit_holds_for_all_processes_together_and_a_run_without_a_cgroup_refuses_it(bench):
    require_memory_cgroup(bench)
    script = f"{BUSY * 2} wait; echo x > x.txt"
    answer = bench.agent(script, "--cpus", "0.25").expect(0)
    cpu, cost = axis(answer, "cpu"), answer.result["cost"]
    must(cpu["enforced"] == "enforced" and "25000 microseconds" in cpu["evidence"], json.dumps(cpu))
    # Without the limit they take a second at most, so the limit holds them back, or a load of the machine that slows them further.
    held = cost["group"]["throttled_ms"] > 0 or cost["cpu_ms"] < 0.2 * cost["wall_ms"]
    must(cost["wall_ms"] > 3000 and held, json.dumps(cost))
    must(cost["group"]["memory_peak_bytes"] > 1 << 20, json.dumps(cost))
    # Control: without the limit nothing is held back.
    answer = bench.agent(script).expect(0)
    must(axis(answer, "cpu")["enforced"] == "best-effort" and answer.result["cost"]["group"]["throttled_ms"] == 0, str(answer))
    # A limit that nothing would keep is refused, with both ways out.
    refused = bench.agent("echo x > x.txt", "--cpus", "0.25", "--cgroup", "/nonexistent").expect(125, "wp_codebox_isolation_unavailable")
    must("axis cpu must be enforced but is best-effort" in str(refused) and "omit limits.cpu_milli (--cpus)" in str(refused), str(refused))
    bench.agent("echo x > x.txt", "--cgroup", "/nonexistent").expect(0)
    bench.agent("echo x > x.txt", "--cpus", "many").expect(1, "wp_codebox_input_invalid")


def test_cgroup_limit_stops_memory_growth_between_two_polls(bench):
    require_memory_cgroup(bench)
    # Each process stays within its own limit; together they exceed the cgroup limit between two polls.
    hog = "php -n -d memory_limit=-1 -r '$x = str_repeat(chr(65), 150 << 20); sleep(9);' & "
    answer = bench.agent(f"echo early > early.txt; {hog * 6} wait", "--memory", "160M", "--disk", "16M")
    answer.expect(1, "wp_codebox_memory_limit")
    must([e["path"] for e in answer.result["changed_files"]] == ["/workspace/plugin/early.txt"], str(answer))
    bench.agent(f"echo early > early.txt; {hog.replace('150', '15').replace('9)', '0)') * 6} wait", "--memory", "900M").expect(0)


def test_doctor_reports_whether_cgroups_can_be_used_and_leaves_no_cgroup(bench):
    require_memory_cgroup(bench)
    before = groups()
    for more, word in (([], "ok"), (["--cgroup", "/nonexistent"], "warning")):
        answer = bench.call("doctor", *bench.paths(), *more, "--json").expect(0)
        rows = {row["id"]: row["status"] for row in answer.json["checks"]}
        must((rows["cgroups"], rows["axis-memory"]) == (word, word), f"{more}: {rows}")
    # Cgroups of other suites disappear when their runs end; a leaked one stays.
    new = groups() - before
    poll_until(lambda: sorted(groups() & new), lambda left: not left, 120)


def test_unix_socket_buffers_count_against_the_memory_cgroup(bench):
    require_memory_cgroup(bench)
    # Only the memory cgroup counts socket buffers: they belong to no process mapping and no file.
    source = bench.source()
    with open(os.path.join(source, "flood.php"), "w", encoding="ascii") as file:
        file.write("""<?php
$bytes = 0;
$held  = [];
for ( $i = 0; $i < 450; $i++ ) {
	$held[] = $pair = stream_socket_pair( STREAM_PF_UNIX, STREAM_SOCK_STREAM, 0 );
	stream_set_blocking( $pair[0], false );
	while ( ( $count = @fwrite( $pair[0], str_repeat( 'x', 65536 ) ) ) > 0 ) {
		$bytes += $count;
	}
}
exit( $bytes > 60 << 20 ? 0 : 3 );
""")
    os.chmod(os.path.join(source, "flood.php"), 0o644)
    bench.agent("php flood.php", "--memory", "64M", "--disk", "16M", source=source).expect(1, "wp_codebox_memory_limit")
    bench.agent("php flood.php", "--memory", "600M", "--disk", "16M", source=source).expect(0)


def script(bench, name, text):
    """Creates a source directory with one Python program."""
    source = bench.source()
    with open(os.path.join(source, name), "w", encoding="ascii") as file:
        file.write(text)
    os.chmod(os.path.join(source, name), 0o644)
    return source


def test_tcp_buffers_of_a_guest_are_limited_to_a_part_of_its_memory_cgroup_limit(bench):
    require_memory_cgroup(bench)
    # No peer reads, so the sent bytes stay in the buffers of loopback connections.
    source = script(bench, "flood.py", """
import socket, sys
server = socket.create_server(("127.0.0.1", 0), backlog=512)
total, held = 0, []
for _ in range(150):
    client = socket.create_connection(server.getsockname())
    held += [client, server.accept()[0]]
    client.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 20)
    client.setblocking(False)
    try:
        while True:
            total += client.send(bytes(65536))
    except BlockingIOError:
        pass
print("held", total >> 20, "MiB")
sys.exit(0 if total > 40 << 20 else 3)
""")
    limits = ("--memory", "192M", "--disk", "64M")
    flood = bench.agent("python3 flood.py & python3 flood.py; first=$?; wait $!; exit $(( $? | first ))", *limits, source=source)
    said = flood.result["transcript"]["executions"][0]["stdout"]
    must(flood.exit == 1 and "held" in said, f"{flood.exit} {said}")
    peak = flood.result["cost"]["peak_memory_bytes"]
    must(20 << 20 < peak < 192 << 20, f"{peak} bytes at the peak; {said}")
    memory = axis(flood, "memory")
    must(f"{24 << 20} of them for TCP buffers" in memory["evidence"] and str(256 << 20) in memory["evidence"], json.dumps(memory))
    # Control: if the peer reads, a connection may carry any amount of data.
    relay = script(bench, "relay.py", """
import socket, threading
server = socket.create_server(("127.0.0.1", 0))
def feed():
    with socket.create_connection(server.getsockname()) as client:
        for _ in range(3200):
            client.sendall(bytes(65536))
threading.Thread(target=feed).start()
peer, total = server.accept()[0], 0
while part := peer.recv(65536):
    total += len(part)
assert total == 200 << 20, total
""")
    bench.agent("python3 relay.py && echo x > x.txt", *limits, source=relay).expect(0)


def test_epoll_watches_count_against_the_memory_cgroup(bench):
    require_memory_cgroup(bench)
    # Each process watches 450 descriptors with up to 450 epoll instances; the kernel counts the watches per user.
    source = script(bench, "watch.py", """
import os, select, sys
files = [os.eventfd(0) for _ in range(450)]
held = []
for _ in range(int(sys.argv[1])):
    held.append(select.epoll())
    for file in files:
        held[-1].register(file, select.EPOLLIN)
print("up", flush=True)
sys.stdin.readline()
""")
    many = "mkfifo /tmp/end; for i in 1 2 3 4 5 6 7 8; do python3 watch.py {} < /tmp/end > up.$i & done; exec 9> /tmp/end; " \
           "while [ $(cat up.* | wc -l) -lt 8 ]; do sleep 0.1; done; exec 9>&-; wait; rm up.*; echo x > x.txt"
    limits = ("--memory", "256M", "--disk", "900M", "--timeout", "60s")
    # The processes keep their watches until the memory limit ends the run.
    bench.agent(many.format(450).replace("exec 9>&-; ", ""), *limits, source=source).expect(1, "wp_codebox_memory_limit")
    bench.agent(many.format(40), *limits, source=source).expect(0)


def test_reclaimable_dentry_and_inode_caches_do_not_count_as_run_memory(bench):
    require_memory_cgroup(bench)
    # Creating, reading and removing 60,000 files fills dentry and inode caches, which the kernel can reclaim.
    many = "mkdir d && cd d && for i in $(seq 60); do mkdir $i && (cd $i && touch $(seq 1000)) || exit 9; done; " \
           "find /usr / -xdev > /dev/null; cat */* > /dev/null; cd .. && rm -r d && echo x > x.txt"
    bench.agent(many, "--memory", "96M", "--disk", "400M").expect(0)


def test_files_up_to_the_disk_limit_do_not_hit_the_memory_limit(bench):
    require_memory_cgroup(bench)
    # The file is larger than the memory limit and smaller than the disk limit, against which files count.
    answer = bench.agent("head -c 180000000 /dev/zero > big.bin; rm big.bin; echo x > x.txt", "--memory", "100M", "--disk", "200M")
    answer.expect(0)


def test_shared_memory_that_no_process_has_in_its_page_tables_counts_against_the_memory_limit(bench):
    require_memory_cgroup(bench)
    source = script(bench, "share.py", """
import mmap, sys, time
memory = mmap.mmap(-1, 200 << 20)
for page in range(0, len(memory), 4096):
    memory[page] = 1
memory.madvise(mmap.MADV_DONTNEED)
time.sleep(float(sys.argv[1]))
""")
    # Without the limit on memory alone, the limit of the cgroup, memory and disk together, would be far away.
    bench.agent("python3 share.py 60", "--memory", "128M", "--disk", "512M", source=source).expect(1, "wp_codebox_memory_limit")
    # Many times the interval at which the supervisor samples the memory.
    answer = bench.agent("python3 share.py 3", "--memory", "600M", "--disk", "512M", source=source).expect(0)
    must(answer.result["cost"]["peak_memory_bytes"] > 200 << 20, json.dumps(answer.result["cost"]))


def test_isolation_report_says_why_no_memory_cgroup_is_used(bench):
    require_memory_cgroup(bench)
    # Remounts the cgroup file system read-only in the test's own mount namespace.
    inside = "mount --make-rprivate / && mount -o remount,bind,ro /sys/fs/cgroup/memory && exec \"$@\""
    source = bench.source()
    arguments = bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--agent-command", "sh -c 'echo x > x.txt'")
    command = ["unshare", "-m", "sh", "-c", inside, "sh", bench.environment["CODEBOX"], *arguments]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"PATH": "/usr/sbin:/usr/bin:/sbin:/bin"})
    answer = bench.finish(command, process).expect(0)
    memory = axis(answer, "memory")
    must(memory["enforced"] == "best-effort" and "no writable memory cgroup" in memory["evidence"], json.dumps(memory))
    must("Read-only file system" in memory["evidence"], json.dumps(memory))
    must(announced(bench) == [], "the cgroup announcement was not removed")


def test_cgroup_directory_configured_by_the_operator_is_used(bench):
    require_memory_cgroup(bench)
    parent = os.path.join(own_group("memory"), f"operator-{os.getpid()}")
    os.mkdir(parent)
    try:
        answer = bench.agent("echo x > x.txt; sleep 0.2", "--cgroup", parent).expect(0)
        must(axis(answer, "memory")["enforced"] == "enforced", str(answer))
        must("pids cgroup" not in axis(answer, "pids")["by"], "only the named hierarchy is used")
    finally:
        os.rmdir(parent)
    answer = bench.agent("echo x > x.txt", "--cgroup", "/tmp").expect(0)
    must("not a cgroup directory" in axis(answer, "memory")["evidence"], str(answer))


def test_unprivileged_runner_uses_its_delegated_cgroup(bench):
    require_memory_cgroup(bench)
    owner = pwd.getpwnam(bench.owner)
    parent = os.path.join(own_group("memory"), f"delegated-{os.getpid()}")
    os.mkdir(parent)
    arguments = bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command",
                                    "sh -c 'echo x > x.txt'", "--cgroup", parent)
    command = ["setpriv", f"--reuid={owner.pw_uid}", f"--regid={owner.pw_gid}", "--clear-groups", bench.environment["CODEBOX"], *arguments]
    def run():
        process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                   env={"PATH": "/usr/bin:/bin"}, cwd="/")
        return axis(bench.finish(command, process).expect(0), "memory")
    try:
        memory = run()
        must(memory["enforced"] == "best-effort" and "Permission denied" in memory["evidence"], f"not delegated yet: {memory}")
        os.chown(parent, owner.pw_uid, owner.pw_gid)
        memory = run()
        must(memory["enforced"] == "enforced", json.dumps(memory))
        must([name for name in os.listdir(parent) if name.startswith("wp-codebox-")] == [], "the cgroup still exists")
    finally:
        os.rmdir(parent)


def test_guest_with_subordinate_id_joins_the_delegated_cgroup(bench):
    """With cgroup v1 a user can move only processes of its own uid, and the guest has another uid."""
    require_memory_cgroup(bench)
    parent = os.path.join(own_group("memory"), f"delegated-{os.getpid()}")
    with unprivileged_bench(bench, (1_912_348_000, 64)) as user:
        os.mkdir(parent)
        try:
            os.chown(parent, user.owner, user.owner)
            answer = user.agent("echo x > x.txt", "--identity", "own", "--cgroup", parent, "--check", "test -e x.txt").expect(0)
            must(axis(answer, "identity")["enforced"] == "enforced", json.dumps(axis(answer, "identity")))
            must(axis(answer, "memory")["enforced"] == "enforced", json.dumps(axis(answer, "memory")))
            must([name for name in os.listdir(parent) if name.startswith("wp-codebox-")] == [], "the cgroup still exists")
        finally:
            os.rmdir(parent)


def test_cgroup_left_by_killed_processes_is_removed_by_gc(bench):
    require_memory_cgroup(bench)
    # In a state directory of its own, because each run that starts removes the cgroups of dead runs of its state directory.
    state = bench.own(tempfile.mkdtemp(dir=bench.directory))
    seed_template(state)
    bench = copy.copy(bench)
    bench.state = state
    arguments = bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", f"sh -c '{sleeper(63)}'")
    process = bench.start(arguments)
    await_count(1, sleeper(63))
    made = poll_until(lambda: own_groups(bench), what="control: the run created no cgroup")
    must(announced(bench), "control: the run announced no cgroup")
    left = lambda: [path for path in made if os.path.isdir(path)]
    keepers, supervisors = processes("keep-cgroups"), processes("supervise")
    kill_and_wait(*keepers, *supervisors)
    process.communicate()
    await_count(0, sleeper(63))
    poll_until(lambda: inhabited(made), lambda left: not left)
    must(left(), "control: with its reaper killed the cgroup stays")
    bench.call("gc", "--state", bench.state, "--site", bench.site, "--json").expect(0)
    must(not left(), f"still there: {left()}")
    must(announced(bench) == [], "the cgroup announcement was not removed")


def processes(word):
    """Returns processes with this subcommand that descend from this test process."""
    found = []
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                words = file.read().decode().split("\0")
        except OSError:
            continue
        if len(words) > 1 and words[1] == word and descends_from(int(pid), os.getpid()):
            found.append(int(pid))
    return found


def test_gc_removes_runs_and_bundles_only_past_their_maximum_age(bench):
    run = bench.agent("echo x > x.txt").expect(0).result["run_id"]
    directory = os.path.join(bench.state, "sites", bench.site, "runs", run)
    bundle = os.path.join(bench.state, "sites", bench.site, "artifacts", run)
    base = ["gc", "--state", bench.state, "--site", bench.site, "--json"]
    answer = bench.call(*base, "--max-age", "1h").expect(0)
    must(answer.json["schema"] == "wp-codebox/gc/v1" and answer.json["success"] is True, str(answer))
    must(run not in [item["id"] for item in answer.json["removed"]] and os.path.isdir(directory), "a young run was removed")
    os.utime(os.path.join(directory, "run.json"), (1, 1))
    answer = bench.call(*base, "--max-age", "1h", "--dry-run").expect(0)
    must(run in [item["id"] for item in answer.json["removed"]] and os.path.isdir(directory), "a dry run removed, or did not list")
    bench.call(*base, "--max-age", "1h").expect(0)
    must(not os.path.exists(directory), "an old run is still there")
    bench.call("artifacts", "verify", "--bundle", bundle, "--state", bench.state, "--json").expect(0)
    must(bench.call(*base, "--max-age", "1h", "--artifacts-max-age", "1h").exit == 0 and os.path.isdir(bundle), "a young bundle was removed")
    bench.call(*base, "--artifacts-max-age", "0s").expect(0)
    must(not os.path.exists(bundle), "a bundle past --artifacts-max-age was not removed")


def test_gc_reports_each_kept_template_and_bundle_with_its_reason(bench):
    base = ["gc", "--state", bench.state, "--site", bench.site, "--dry-run"]
    bench.agent("echo x > x.txt").expect(0)
    answer = bench.call(*base, "--max-age", "0s", "--json").expect(0)
    stayed = {row["kind"]: row for row in answer.json["stayed"]}
    must(stayed["template"]["reason"] == "recently-used" and stayed["artifact"]["reason"] == "only-on-request", str(answer))
    words = bench.call(*base, "--max-age", "0s").expect(0).stderr
    must("removed only with --artifacts-max-age" in words and "whatever --max-age says" in words, words)
    answer = bench.call(*base, "--max-age", "0s", "--artifacts-max-age", "0s", "--json").expect(0)
    must("artifact" not in [row["kind"] for row in answer.json["stayed"]], str(answer))


def test_gc_refuses_invalid_options(bench):
    for code, *flags in (["wp_codebox_input_invalid", "--max-age", "soon"], ["wp_codebox_limit_invalid", "--max-bytes", "1T"],
                         ["wp_codebox_input_invalid", "--site", "../x"], ["wp_codebox_input_invalid", "--artifacts-max-age=x"]):
        answer = bench.call("gc", "--state", bench.state, "--json", *flags)
        must(answer.exit == 1 and answer.code == code, f"{flags}: {answer}")


def test_gc_skips_a_running_run(bench):
    arguments = bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command",
                                    f"sh -c 'echo x > x.txt; {sleeper(64)}; echo y > y.txt'")
    process = bench.start(arguments)
    await_count(1, sleeper(64))
    answer = bench.call("gc", "--state", bench.state, "--site", bench.site, "--max-age", "0s", "--max-bytes", "0", "--json").expect(0)
    must(answer.json["alive"] == 1, str(answer))
    wake(sleeper(64))
    answer = bench.finish(arguments, process).expect(0)
    must(len(answer.result["changed_files"]) == 2, str(answer))
