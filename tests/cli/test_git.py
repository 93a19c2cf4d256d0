"""Git metadata in guests: a source's own `.git` is hidden in every kind of mount view."""

import contextlib
import json
import os
import shutil
import subprocess

from harness import must, skip_unless_root, tree
from harness.bundles import bundle_of, changed, mount_views, omitted_entries
from harness.idmaps import FIRST, without_idmapped_mounts
from harness.reduced import agent, policy, run_without_userns
from harness.repositories import HIDDEN, MARKED, TOKEN, chown_to_state_owner, git, history_repository, repository
from harness.templates import seed_template
from harness.users import unprivileged_bench


def plain(bench, source, script, *arguments, mode="rw"):
    quoted = "'" + script.replace("'", "'\\''") + "'"
    return bench.run("--mount", f"{source}:/workspace/plugin:{mode}", "--agent-command", f"sh -c {quoted}", *arguments)


@contextlib.contextmanager
def of_users(bench, choice):
    with unprivileged_bench(bench, (FIRST + 200, 10)) as user:
        yield user, repository(user), lambda *given, **named: plain(user, *given, "--identity", choice, **named)


@contextlib.contextmanager
def source_in_view(bench, way):
    """Yields the bench, a directory with a repository, and a function that runs a script with that directory mounted in the way `way`."""
    source = repository(bench)
    identity = ("--identity", "shared" if way == "shared" else "own")
    if way in ("own", "copied") and os.geteuid() != 0:
        skip_unless_root("a kernel uid of its own")
    if way == "copied":
        os.chown(os.path.join(source, "lib", "a.txt"), 64_998, 64_998)
    if way == "user":
        with of_users(bench, "own") as row:
            yield row
    elif way == "reduced":
        yield bench, source, lambda source, script, *more, mode="rw": run_without_userns(
            bench, "--mount", f"{source}:/workspace/plugin:{mode}", *agent(script), *policy(), *more)
    else:
        yield bench, source, lambda *given, **named: plain(bench, *given, *identity, **named)


VIEWS = {"shared": "overlay", "own": "overlay", "copied": "copy", "user": "copy", "reduced": "copy"}
LOOK = (f"grep -rl {TOKEN} . && echo LEAKED; find . -mindepth 2 -iname .git -o -name 'git~1' | grep . && echo NAMED; test -d .git && echo NAMED; "
        f"test $(grep -rl {MARKED} . | wc -l) = 6 && echo CONTROL; stat -c MODE=%a nested")


def agent_stdout(answer):
    return answer.expect(0).result["transcript"]["executions"][0]["stdout"]


def is_hidden(output):
    return "LEAKED" not in output and "NAMED" not in output and "CONTROL" in output


def test_git_directories_of_a_mount_source_are_hidden_in_overlay_and_copy_mounts(bench):
    for way, view in VIEWS.items():
        with source_in_view(bench, way) as (where, source, run):
            before = tree(source)
            answer = run(source, LOOK, "--check", f"sh -c '! grep -rq {TOKEN} . && grep -q {MARKED} nested/deep/marked.txt'")
            must(is_hidden(agent_stdout(answer)), f"{way}: {answer}")
            must("MODE=751" in answer.stdout or view == "copy", f"{way}: a directory's mode differs from the source's\n{answer}")
            must(mount_views(where, answer) == [view], f"{way}: {mount_views(where, answer)}")
            must([row["status"] for row in answer.result["checks"]] == ["passed"], f"{way}: the checks' guest\n{answer}")
            must(changed(answer) == [] and tree(source) == before, f"{way}: {changed(answer)}")
            answer = run(source, LOOK, mode="ro")
            must(is_hidden(agent_stdout(answer)), f"{way}, read-only: {answer}")
    # Control: the source contains the token in 13 files.
    found = subprocess.run(["grep", "-rl", TOKEN, source], stdout=subprocess.PIPE, text=True, check=True).stdout
    must(len(found.splitlines()) == 13, found)


def test_guest_cannot_uncover_hidden_git_directories(bench):
    script = ("echo '// more' >> nested/marked.txt; mkdir .git && echo mine > .git/own; rm -rf .git; rmdir nested/.git; rm -f tree/.git; "
              "chmod 700 nested; cp -a nested copied; mv linked moved || { cp -a linked moved; rm -rf linked; }; mkdir linked; ") + LOOK
    for way in ("shared", "own"):
        with source_in_view(bench, way) as (_, source, run):
            answer = run(source, script.replace(" = 6 ", " -ge 6 "))
            must(is_hidden(agent_stdout(answer)), f"{way}: {answer}")
            must("/workspace/plugin/nested/marked.txt" in changed(answer), f"{way}: {changed(answer)}")
            must(not any(".git" in path for path in changed(answer)), f"{way}: {changed(answer)}")


def test_git_is_hidden_by_copying_the_mount_if_the_state_directory_is_on_an_overlay(bench):
    """An overlay refuses new whiteouts (mknod fails with EPERM), and a layer of whiteouts hides `.git` in a mount that is not copied."""
    if os.geteuid() != 0:
        skip_unless_root("an overlay")
    lower = os.path.join(bench.directory, "of-git-state")
    os.makedirs(os.path.join(lower, "state"), mode=0o700)
    shutil.chown(os.path.join(lower, "state"), bench.owner, bench.owner)
    seed_template(os.path.join(lower, "state"))
    with without_idmapped_mounts(bench, lower) as merged:
        answer = bench.agent(LOOK, source=repository(bench), state=os.path.join(merged, "state"))
        must(is_hidden(agent_stdout(answer)), str(answer))
        must([row["view"] for row in answer.result["mounts"]] == ["copy"], str(answer.result["mounts"]))


def test_entries_left_out_of_an_overlay_or_copy_mount_are_reported_once(bench):
    links = {"out": "/etc/hostname", "nested/up": "../../x"}
    expected = [{"path": path, "reason": "git-metadata"} for path in sorted(HIDDEN)]
    expected += [{"path": "nested/up", "reason": "symlink-leaves-mount"}, {"path": "out", "reason": "symlink-absolute"}]
    text = {}
    for way, view in VIEWS.items():
        with source_in_view(bench, way) as (where, source, run):
            owner = os.stat(source)
            for path, to in {**links, "inside": "plugin.php"}.items():
                os.symlink(to, os.path.join(source, path))
                os.lchown(os.path.join(source, path), owner.st_uid, owner.st_gid)
            answer = run(source, "find . -type l -printf '%p %l\\n' | sort")
            # The guest must see the same symlinks in every view (copy or overlay) of the source.
            text[way] = agent_stdout(answer)
            row = answer.result["mounts"]
            git = "none" if way == "reduced" else "baseline"
            must(row == [{"target": "/workspace/plugin", "view": view, "git": git, "leftOut": {"count": 8, "entries": expected}}], f"{way}: {row}")
            notices = [notice for notice in answer.result["notices"] if "does not see all entries" in notice]
            must(len(notices) == 1 and "6 entries named .git" in notices[0] and "2 links that lead out" in notices[0], f"{way}: {notices}")
            with open(os.path.join(bundle_of(answer), "files/mounts.jsonl"), encoding="utf-8") as file:
                kept = json.loads(file.read())
            must((kept["leftOut"], kept["leftOutCount"]) == (expected, 8), f"{way}: {kept}")
            with open(os.path.join(bundle_of(answer), "events.jsonl"), encoding="utf-8") as file:
                events = [json.loads(line) for line in file]
            told = [event["data"]["leftOut"] for event in events if event["type"] == "runtime.mounted"]
            must(told == [{"count": 8, "entries": expected[:5]}], f"{way}: {told}")
    must(set(text.values()) == {"./inside plugin.php\n./nested/up ../../x\n./out /etc/hostname\n"}, str(text))
    # Text mode prints the notice once, and not at all when no entry was left out.
    for source, count in ((repository(bench), 1), (bench.source(), 0)):
        arguments = [part for part in bench.run_arguments("--mount", f"{source}:/workspace/plugin", "--agent-command", "true") if part != "--json"]
        said = bench.finish(arguments, bench.start(arguments)).stderr
        must(said.count("does not see all entries") == count, said)


KNOWN = ("codebox: What was mounted", " M plugin.php", "+// before", "lib/a.txt", "nested/marked.txt", "BLAME 3", "OLD 0", "STASHED 1")
ASK = ("echo '// before' >> plugin.php; chmod 600 lib/a.txt; git log '--format=%an: %s'; git status --porcelain; git diff; git ls-files; "
       "echo BLAME $(git blame -s lib/a.txt | wc -l); echo OLD $(git -C lib show HEAD:plugin.php | grep -c before); "
       "git stash -q; echo STASHED $(git stash list | wc -l); git stash pop -q; git fsck --strict; ")


def test_git_log_diff_and_blame_show_the_baseline_commit_and_the_guests_changes(bench):
    for way, view in VIEWS.items():
        if way == "reduced":
            continue
        with source_in_view(bench, way) as (where, source, run):
            with open(os.path.join(source, "crlf.txt"), "wb") as file:
                file.write(b"one\r\ntwo\r\n")
            os.chown(file.name, os.stat(source).st_uid, os.stat(source).st_gid)
            before = tree(source)
            answer = run(source, ASK + "git commit -qam mine && git log --oneline | wc -l && git status --porcelain",
                         "--check", "sh -c 'git diff --name-only | grep -qx plugin.php && git log --format=%s | grep -qx \"What was mounted\"'")
            output = agent_stdout(answer)
            for text in KNOWN:
                must(text in output, f"{way}: {text}\n{answer}")
            must(output.endswith("\n2\n") and "M crlf.txt" not in output, f"{way}: {output}")
            must(TOKEN not in output and "deep/.GIT" not in output, f"{way}: {output}")
            must([row["status"] for row in answer.result["checks"]] == ["passed"], f"{way}: the checks' guest\n{answer}")
            # Git writes to its own directory outside the mount. The run reports neither a change nor an omitted entry for it.
            must(changed(answer) == ["/workspace/plugin/plugin.php"] and omitted_entries(answer) == [], f"{way}: {changed(answer)} {omitted_entries(answer)}")
            must(answer.result["mounts"][0]["view"] == view and tree(source) == before, f"{way}")
            output = agent_stdout(run(source, "git status --porcelain; git log --format=%s; git ls-files | grep -c .", mode="ro"))
            must(output == "What was mounted\n9\n", f"{way}, read-only: {output}")


def test_git_index_in_the_guest_is_dated_before_the_start_so_that_git_notices_edits_right_after_it(bench):
    # git trusts the modification time of a file that is older than its index, and otherwise compares the content.
    source = repository(bench)
    baseline = "read -r date < /run/codebox/git/0/codebox-pending; git log -1 --format=%s; test $(stat -c %Y /run/codebox/git/0/index) -lt $date"
    must(agent_stdout(plain(bench, source, baseline, "--git", "baseline")) == "What was mounted\n", "baseline")
    source = history_repository(bench)
    os.utime(os.path.join(source, ".git", "index"), (1_000_000_000, 1_000_000_000))
    output = agent_stdout(plain(bench, source, "stat -c %Y /run/codebox/git/0/index", "--git", "history"))
    must(output == "1000000000\n", output)


def test_each_mount_has_its_own_git_repository(bench):
    first, second = repository(bench, "first"), repository(bench, "second")
    with open(os.path.join(second, ".gitignore"), "w", encoding="utf-8") as file:
        file.write("lib/\n")
    script = ("cd /workspace/first; echo x >> plugin.php; git commit -qam one; cd /wordpress/wp-content/plugins/second/lib; echo y >> ../plugin.php; "
              "git diff --stat | grep -c plugin.php; git ls-files :/lib | wc -l; git log --oneline | wc -l; git -C /workspace/second status --porcelain; "
              "git --git-dir /run/codebox/git/0 log --oneline | wc -l; cd /tmp; git --no-pager log 2>&1 | head -c 30; git --version | head -c 11")
    output = agent_stdout(bench.run("--mount", f"{first}:/workspace/first", "--mount", f"{second}:/wordpress/wp-content/plugins/second",
                            "--agent-command", f"sh -c \"{script}\""))
    must(output == "1\n0\n1\n M plugin.php\n2\nfatal: not a git repository (ogit version", repr(output))


def test_baseline_repository_is_generated_on_request_or_for_a_git_work_tree(bench):
    outer = repository(bench)
    with open(os.path.join(outer, "tree", "f.txt"), "w", encoding="utf-8") as file:
        file.write("x\n")
    ask = "git log --format=%s || echo NONE"
    for source, arguments, expected in (
            (outer, (), "baseline"), (os.path.join(outer, "lib"), (), "baseline"), (os.path.join(outer, "tree"), (), "baseline"),
            (bench.source(), (), "none"), (bench.source(), ("--git", "baseline"), "baseline"), (outer, ("--git", "none"), "none")):
        answer = plain(bench, source, ask, *arguments)
        must(agent_stdout(answer) == ("NONE\n" if expected == "none" else "What was mounted\n"), f"{source} {arguments}: {answer}")
        must(answer.result["mounts"][0]["git"] == expected, str(answer.result["mounts"]))
    refused = run_without_userns(bench, "--mount", f"{outer}:/workspace/plugin", *agent("true"), *policy(), "--git", "baseline")
    refused.expect(125, "wp_codebox_isolation_unavailable")


def test_run_continues_without_baseline_commit_if_the_commit_would_exceed_the_disk_limit(bench):
    source = repository(bench)
    with open(os.path.join(source, "large.bin"), "wb") as file:
        file.write(os.urandom(24 << 20))
    os.chown(file.name, os.stat(source).st_uid, os.stat(source).st_gid)
    script = "git status --porcelain | grep -c '?? plugin.php'; git log; test -z \"$(find /run/codebox/git/0/objects -type f)\" && echo EMPTY; echo x > new.txt"
    answer = plain(bench, source, script, "--disk", "20M")
    row = answer.result["transcript"]["executions"][0]
    must(row["stdout"] == "1\nEMPTY\n" and row["stderr"].count("this repository has no commits") == 1, str(answer))
    must(changed(answer) == ["/workspace/plugin/new.txt"], str(changed(answer)))
    # Control: with enough disk the repository has its baseline commit.
    must("What was mounted" in agent_stdout(plain(bench, source, "git log", "--disk", "80M")), "control")


def test_git_history_shows_source_commits_without_credentials(bench):
    ask = (f"git log --format=%s; git describe --tags; git branch; git status --porcelain; git fsck 2>&1 | grep -v dangling; grep -rl {TOKEN} . /run/codebox/git* && echo LEAKED; "
           "git remote; echo x >> lib/a.txt; git blame -s lib/a.txt | wc -l; git commit -qam mine && git log --oneline | wc -l; "
           "touch /run/codebox/git-objects/0/x || echo READONLY; git gc -q && git log --oneline | wc -l")
    known = "change 2\nchange 1\nchange 0\nv1-1-g"
    for way, view in VIEWS.items():
        if way == "reduced":
            continue
        with source_in_view(bench, way) as (where, _, run):
            source = history_repository(where)
            if way == "copied":
                os.chown(os.path.join(source, "lib", "a.txt"), 64_998, 64_998)
            before = tree(source)
            answer = run(source, ask, "--git", "history")
            output = agent_stdout(answer)
            must(output.startswith(known) and "* trunk\n" in output and output.endswith("\n7\n4\nREADONLY\n4\n"), f"{way}: {output!r}")
            must("LEAKED" not in output and "origin" not in output and " M " not in output, f"{way}: {output!r}")
            row = answer.result["mounts"][0]
            must((row["view"], row["git"]) == (view, "history") and tree(source) == before, f"{way}: {row}")
            must(changed(answer) == ["/workspace/plugin/lib/a.txt"] and omitted_entries(answer) == [], f"{way}: {changed(answer)}")
    # Control: the source contains the token.
    must(len(subprocess.run(["grep", "-rl", TOKEN, source], stdout=subprocess.PIPE, text=True, check=True).stdout.splitlines()) == 6, "control")


def test_run_with_git_history_is_refused_if_the_source_repository_is_partial_external_or_reftable(bench):
    def changed_by(make):
        source = history_repository(bench, "elsewhere")
        make(os.path.join(source, ".git"))
        return chown_to_state_owner(bench, source)

    def write(path, text):
        def make(directory):
            os.makedirs(os.path.dirname(os.path.join(directory, path)), exist_ok=True)
            with open(os.path.join(directory, path), "a", encoding="utf-8") as file:
                file.write(text)
        return make

    def replaced(by):
        def make(directory):
            os.rename(directory, directory + "-real")
            by(directory)
        return make

    def a_file(directory):
        with open(directory, "w", encoding="utf-8") as file:
            file.write(f"gitdir: {directory}-real\n")

    def nothing(_):
        pass

    for make, why in ((write("objects/info/alternates", "/srv/other/objects\n"), "alternates"), (write("objects/pack/x.promisor", ""), "partial"),
                      (write("commondir", "../other\n"), "commondir"),
                      (write("config", "[extensions]\n\trefStorage = reftable\n"), "references"),
                      (replaced(a_file), "not a directory"), (replaced(lambda at: os.symlink(at + "-real", at)), "not a directory"), (replaced(nothing), "not the root")):
        source = changed_by(make)
        answer = plain(bench, source, "true", "--git", "history").expect(1, "wp_codebox_git_unavailable")
        must(why in answer.json["error"]["message"], f"{why}: {answer}")
    # Control: an intact repository is shown, and so is a shallow clone with a split index.
    whole = changed_by(nothing)
    must(agent_stdout(plain(bench, whole, "git log --format=%s | wc -l", "--git", "history")) == "3\n", "control")
    # Git clones only from directories that the calling user owns.
    own, shallow = (os.path.join(bench.directory, name) for name in ("own", "shallow"))
    shutil.copytree(whole, own, symlinks=True)
    git(own, "config", "--unset", "core.fsmonitor")
    git(bench.directory, "clone", "-q", "--depth", "1", f"file://{own}", shallow)
    git(shallow, "update-index", "--split-index")
    output = agent_stdout(plain(bench, chown_to_state_owner(bench, shallow), "git log --format=%s; git status --porcelain; git ls-files", "--git", "history"))
    must(output == "change 2\nlib/a.txt\nplugin.php\n", output)
