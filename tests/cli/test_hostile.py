"""Captures hostile workspaces from real guests, and bounds the runner's time and memory.

The agent of each case is a Python program in the mounted directory. The bounds apply to the
runner process: processor time in seconds and peak resident memory (VmHWM).
"""

import ctypes
import errno
import gzip
import json
import os
import re
import resource
import subprocess
import threading
import time

from harness import must, tree
from harness.bundles import omitted_entries

SECRET = "marker-outside-of-every-mount"
# Limit of the supervisor's processor time. The wall clock would also count other processes of the machine.
SECONDS = 60
# Limit of the supervisor's peak memory in MiB. A change may have 256 MiB, but the supervisor refuses these cases before it reads file contents.
MEBIBYTES = 128


def cpu_seconds():
    """Returns the processor time of all ended and awaited descendants of this process."""
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def hostile(bench, program, *arguments, source=None, mebibytes=MEBIBYTES, meanwhile=None):
    """Runs a Python program as the agent, checks the runner's time and memory, and returns the answer."""
    source = source or bench.source()
    with open(os.path.join(source, "agent.py"), "w", encoding="utf-8") as file:
        file.write("import ctypes, json, os, socket, subprocess, sys, time\n" + program)
    bench.own(source)
    # One mount only, so that SECONDS and not the run's own limits bound the time.
    arguments = bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--agent-command",
                                    "python3 agent.py", *arguments)
    began = cpu_seconds()
    process = bench.start(arguments)
    peak = [0]

    def watch():
        while process.poll() is None:
            try:
                with open(f"/proc/{process.pid}/status", encoding="ascii") as status:
                    peak[0] = max(peak[0], int(re.search(r"VmHWM:\s+(\d+)", status.read()).group(1)))
            except (OSError, AttributeError):
                return
            time.sleep(0.005)

    watcher = threading.Thread(target=watch)
    watcher.start()
    if meanwhile:
        meanwhile(process)
    answer = bench.finish(arguments, process)
    watcher.join()
    took = cpu_seconds() - began
    print(f"     {took:.1f} s of processor time, peak of the runner {peak[0] // 1024} MiB", flush=True)
    must(took < SECONDS, f"it used {took:.0f} s of processor time\n{answer}")
    # The peak is 0 when the supervisor ended before the first sample.
    must((peak[0] or took < 1) and peak[0] < mebibytes * 1024, f"{peak[0]} KiB\n{answer}")
    left = [os.path.join(d, "scratch") for d, names, _ in os.walk(os.path.join(bench.state, "sites", bench.site, "runs"))
            if "scratch" in names]
    must(left == [], f"scratch stays: {left}")
    return answer


def bundle_of(answer):
    return answer.json["artifacts"]["directory"]


def changed(answer):
    return sorted(entry["path"].removeprefix("/workspace/plugin/") for entry in answer.result["changed_files"])


def applied(answer, source):
    """Applies the bundle's patch to the source with git and returns the resulting tree."""
    with open(os.path.join(bundle_of(answer), "files", "patch.diff"), "rb") as patch:
        done = subprocess.run(["git", "apply", "-p1"], cwd=source, stdin=patch, capture_output=True, check=False)
    must(done.returncode == 0, done.stderr.decode("utf-8", "replace"))
    return tree(source)


def nothing_leaked(bench, answer):
    """Checks that no file of the bundle contains the marker from outside the mount."""
    needle = SECRET.encode()
    for directory, _, files in os.walk(bundle_of(answer)):
        for name in files:
            with open(os.path.join(directory, name), "rb") as file:
                must(needle not in file.read(), f"{name} contains content from outside the mount")


def test_200000_new_files_exceed_the_capture_limit(bench):
    answer = hostile(bench, """
for i in range(200000):
    os.close(os.open(f"f{i}", os.O_CREAT | os.O_WRONLY))
""")
    answer.expect(1, "wp_codebox_capture_limit")
    must("50000 entries" in answer.json["error"]["message"], str(answer))


def test_10000_directory_levels_exceed_the_capture_limit(bench):
    answer = hostile(bench, """
# From the inside out: for mkdir in a deep directory, Landlock walks up all its parents.
os.mkdir("d")
for i in range(9999):
    os.mkdir("outer"); os.rename("d", "outer/d"); os.rename("outer", "d")
""")
    answer.expect(1, "wp_codebox_capture_limit")
    must("64 directory levels" in answer.json["error"]["message"], str(answer))


def test_sparse_files_exceed_the_capture_limit(bench):
    answer = hostile(bench, """
with open("sparse", "wb") as file:
    file.truncate(1 << 40)
""")
    # The guest's RLIMIT_FSIZE may stop the write first; the capture limit must hold as well.
    must(answer.exit == 1 and answer.code in ("wp_codebox_capture_limit", "wp_codebox_run_failed"), str(answer))
    if answer.code == "wp_codebox_run_failed":
        must("File too large" in json.dumps(answer.result) or "signal" in answer.json["error"]["message"], str(answer))
    answer = hostile(bench, """
for i in range(20):
    with open(f"sparse{i}", "wb") as file:
        file.truncate(60 << 20)
""", mebibytes=512)
    answer.expect(1, "wp_codebox_capture_limit")


def test_special_files_and_symlinks_out_of_the_mount_are_omitted_from_the_bundle(bench):
    answer = hostile(bench, """
open("ok.txt", "w").write("ok\\n")
os.mkfifo("fifo")
os.unlink("lib/a.txt"); os.mkfifo("lib/a.txt")
try:
    s = socket.socket(socket.AF_UNIX); s.bind("socket")
except OSError as error:
    print("socket", error)
    os.mknod("socket", 0o140600)
for device in (os.makedev(1, 3), os.makedev(8, 0)):
    try:
        os.mknod("device", 0o20666, device)
        sys.exit("a device could be made")
    except PermissionError:
        pass
os.symlink("/etc/passwd", "abs"); os.symlink("../../etc/passwd", "up")
""")
    answer.expect(0)
    must(changed(answer) == ["ok.txt"], str(changed(answer)))
    expected = [("abs", "symlink-absolute"), ("fifo", "special-file"), ("lib/a.txt", "special-file"),
                ("socket", "special-file"), ("up", "symlink-leaves-mount")]
    must(omitted_entries(answer) == expected, str(omitted_entries(answer)))


# Last part of an agent's Python program: prints name and content of all regular files in the mount.
VIEW = """
view = {}
for directory, names, files in os.walk("."):
    for name in files:
        full = os.path.join(directory, name)
        if os.path.isfile(full) and not os.path.islink(full):
            view[os.path.relpath(full, ".")] = open(full, "rb").read().decode("latin-1")
print("VIEW=" + json.dumps(view))
"""


def view_of(answer):
    text = answer.result["transcript"]["executions"][0]["stdout"]
    return json.loads(re.search(r"VIEW=(.*)", text).group(1))


def test_guest_cannot_forge_overlayfs_xattrs_and_the_real_ones_are_captured(bench):
    source = bench.source()
    for name in ("opaque", "redirect", "plain"):
        os.makedirs(os.path.join(source, name))
        with open(os.path.join(source, name, "below.txt"), "w", encoding="utf-8") as file:
            file.write(f"{name}\n")
    answer = hostile(bench, """
set = []
for path, name, value in [
    ("opaque", "opaque", b"y"), ("opaque", "opaque", b"x"), ("redirect", "redirect", b"/plain"),
    ("plugin.php", "metacopy", b""), ("plugin.php", "redirect", b"/lib/a.txt"), (".", "opaque", b"y"),
    ("lib/a.txt", "whiteout", b""), ("plain", "origin", b"x"), ("plain", "impure", b"y"),
]:
    for space in ("user", "trusted"):
        try:
            os.setxattr(path, f"{space}.overlay.{name}", value)
            set.append(f"{space}.overlay.{name}")
        except OSError as error:
            set.append(f"{space}.overlay.{name}: {error.errno}")
print("SET=" + json.dumps(set))
# Real whiteouts and a real opaque directory, created by overlayfs.
os.unlink("plain/below.txt"); os.rmdir("plain")
os.mkdir("plain"); open("plain/fresh.txt", "w").write("fresh\\n")
os.rename("lib/a.txt", "lib/moved.txt")
open("plugin.php", "a").write("// more\\n")
""" + VIEW, source=source)
    answer.expect(0)
    tried = json.loads(re.search(r"SET=(.*)", answer.result["transcript"]["executions"][0]["stdout"]).group(1))
    must(len(tried) == 18 and all(one.endswith(f": {errno.EOPNOTSUPP}") for one in tried), str(tried))
    # The patch must produce the tree that the guest saw.
    after = applied(answer, source)
    files = {name: content.decode("latin-1") for name, (_, content) in after.items() if content is not None}
    must(files == view_of(answer), f"{files}\n{view_of(answer)}")
    must(changed(answer) == ["lib/a.txt", "lib/moved.txt", "plain/below.txt", "plain/fresh.txt", "plugin.php"], str(changed(answer)))


def test_unreadable_files_and_directories_are_captured_and_each_file_gets_mode_644_or_755(bench):
    source = bench.source()
    answer = hostile(bench, """
os.makedirs("closed/inner")
for path, mode in (("closed/a", 0), ("closed/inner/b", 0o100), ("setuid", 0o6755), ("sticky", 0o1644)):
    open(path, "w").write(path + "\\n"); os.chmod(path, mode)
open("lib/a.txt", "a").write("four\\n"); os.chmod("lib/a.txt", 0)
os.chmod("closed/inner", 0); os.chmod("closed", 0); os.chmod("lib", 0); os.chmod(".", 0)
""", source=source)
    answer.expect(0)
    must(changed(answer) == ["closed/a", "closed/inner/b", "lib/a.txt", "setuid", "sticky"], str(changed(answer)))
    after = applied(answer, source)
    modes = {name: oct(after[name][0] & 0o7777) for name in ("closed/a", "closed/inner/b", "setuid", "sticky")}
    must(modes == {"closed/a": "0o644", "closed/inner/b": "0o755", "setuid": "0o755", "sticky": "0o644"}, str(modes))


def test_file_names_with_control_and_non_utf8_bytes_are_unchanged_after_the_patch_is_applied(bench):
    source = bench.source()
    answer = hostile(bench, r"""
for name in [b"new\nline", b"+++ b\nplugin.php", b"\xff\xfe", b"\x01\x1b[31m", b'"q"', b"back\\slash", b"-rf", b"a b ",
             b"Case", b"case", b"n" * 255, "na\u0308me \u202e".encode()]:
    open(name, "wb").write(name)
os.makedirs(".GIT/hooks"); open(".GIT/hooks/pre-commit", "w").write("#!/bin/sh\n")
os.makedirs(".git/hooks"); open(".git/hooks/pre-commit", "w").write("#!/bin/sh\n")
""", source=source)
    answer.expect(0)
    must(len(changed(answer)) == 12, str(changed(answer)))
    must(omitted_entries(answer) == [(".GIT", "artifact-excluded"), (".git", "artifact-excluded")], str(omitted_entries(answer)))
    applied(answer, source)
    names = {os.fsdecode(name): name for name in os.listdir(os.fsencode(source))}
    for name, raw in names.items():
        if name not in ("lib", "plugin.php", "agent.py"):
            with open(os.path.join(os.fsencode(source), raw), "rb") as file:
                must(file.read() == raw, f"{raw!r} has other content")
    must(len(names) == 12 + 3, str(list(names)))


def test_background_process_is_killed_before_changes_are_captured(bench):
    # The agent leaves a process in a session of its own, which keeps appending to a file and swapping a symlink.
    source = bench.source()
    answer = hostile(bench, """
writer = '''
import os, sys, time
os.symlink("/etc/hostname", "link"); open("plain", "w").write("plain")
n = 0
while True:
    n += 1
    with open("log.txt", "a") as file:
        file.write(f"{n}\\\\n")
    os.rename("link", "t"); os.rename("plain", "link"); os.rename("t", "plain")
'''
subprocess.Popen(["python3", "-c", writer, "codebox-survivor"], start_new_session=True,
                 stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
for _ in range(1200):
    if os.path.exists("log.txt") and os.path.getsize("log.txt") > 100: break
    time.sleep(0.05)
""", source=source)
    answer.expect(0)
    for pid in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{pid}/cmdline", "rb") as file:
                must(b"codebox-survivor" not in file.read().split(b"\0"), f"process {pid} survived")
        except OSError:
            continue
    must("log.txt" in changed(answer), str(changed(answer)))
    after = applied(answer, source)
    lines = after["log.txt"][1].split(b"\n")
    must(len(lines) > 10, f"{len(lines)} lines: the writer did not run")
    # The capture shows one moment: the counter in the file has no gap.
    complete = [line for line in lines[:-1]]
    must(complete == [str(n + 1).encode() for n in range(len(complete))], "the log has a gap")


def test_swapping_the_mount_source_with_a_symlink_during_a_run_leaks_no_host_file(bench):
    source = bench.source()
    outside = os.path.join(bench.directory, "outside")
    os.makedirs(os.path.join(outside, "inner"), exist_ok=True)
    for name in ("f", "inner/f"):
        with open(os.path.join(outside, name), "w", encoding="utf-8") as file:
            file.write(SECRET)
    for name in ("d/inner", ):
        os.makedirs(os.path.join(source, name))
    for name in ("d/f", "d/inner/f"):
        with open(os.path.join(source, name), "w", encoding="utf-8") as file:
            file.write("own\n")
    before = tree(outside)
    link = os.path.join(source, "x")
    os.symlink(outside, link)
    swaps = [0, 0]
    libc = ctypes.CDLL(None)

    def meanwhile(process):
        pair = [os.fsencode(os.path.join(source, "d")), os.fsencode(link)]
        naive = os.path.join(source, "d", "f")
        while process.poll() is None or swaps[0] < 100_000:
            for _ in range(100):
                if libc.renameat2(-100, pair[0], -100, pair[1], 2) == 0:
                    swaps[0] += 1
            # Control: a reader that opens by path escapes in the same race.
            libc.renameat2(-100, pair[0], -100, pair[1], 2)
            with open(naive, encoding="utf-8") as file:
                swaps[1] += SECRET in file.read()

    # The agent deletes the swapped directory, so that the capture has to read the baseline.
    answer = hostile(bench, """
open("ok.txt", "w").write("ok\\n")
end = time.time() + 2
import shutil
while time.time() < end:
    for name in ("d", "x"):
        try:
            os.unlink(name) if os.path.islink(name) else shutil.rmtree(name)
        except OSError:
            pass
    time.sleep(0.2)
""", source=source, meanwhile=meanwhile)
    must(answer.exit in (1, 3) and answer.json, str(answer))
    print(f"     {swaps[0]} swaps, a naive reader escaped {swaps[1]} times; exit {answer.exit} {answer.code}")
    must(swaps[0] >= 100_000 and swaps[1] > 0, str(swaps))
    must(SECRET not in answer.stdout + answer.stderr, "the answer contains content from outside the mount")
    if answer.json.get("artifacts"):
        nothing_leaked(bench, answer)
        must(answer.result["approvable"] is False, "a run whose baseline changed is approvable")
    must(tree(outside) == before, "the directory outside was written")


def test_mount_source_with_fifo_sparse_file_or_deep_tree_is_refused(bench):
    def refused(make, code, text, undo=None):
        source = bench.source()
        make(source)
        answer = bench.run("--mount", f"{source}:/workspace/plugin", "--agent-command", "true")
        must(answer.exit != 0 and answer.code == code, str(answer))
        must(text in answer.json["error"]["message"], str(answer))
    def deep(source):
        fd = os.open(source, os.O_RDONLY)
        for _ in range(10000):
            os.mkdir("d", dir_fd=fd)
            inner = os.open("d", os.O_RDONLY, dir_fd=fd)
            os.close(fd)
            fd = inner
        os.close(fd)
    refused(lambda s: os.mkfifo(os.path.join(s, "fifo")), "wp_codebox_mount_special_file", "FIFO")
    refused(lambda s: open(os.path.join(s, "t"), "wb").truncate(1 << 40), "wp_codebox_mount_too_large", "bytes in one file")
    began = cpu_seconds()
    refused(deep, "wp_codebox_mount_too_large", "directory levels")
    must(cpu_seconds() - began < SECONDS, "it used too much processor time")
    subprocess.run(["rm", "-rf", os.path.join(bench.directory, "plugin")], check=True)


def test_archive_given_as_staged_file_is_not_unpacked(bench):
    bomb = gzip.compress(gzip.compress(bytes(200 << 20)))
    path = os.path.join(bench.directory, "bomb.zip")
    with open(path, "wb") as file:
        file.write(bomb)
    must(len(bomb) < 4096, f"{len(bomb)} bytes")
    os.chmod(path, 0o644)
    source = bench.source()
    answer = hostile(bench, f"""
staged = open("/workspace/bomb.zip", "rb").read()
assert len(staged) == {len(bomb)}, len(staged)
open("copied.tar.gz", "wb").write(staged)
assert sorted(os.listdir("/workspace")) == ["bomb.zip", "plugin"], os.listdir("/workspace")
""", "--staged-file", f"{path}:/workspace/bomb.zip", source=source)
    answer.expect(0)
    must(applied(answer, source)["copied.tar.gz"][1] == bomb, "other bytes")
