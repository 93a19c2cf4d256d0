"""Commits of approved files on a git branch: `wp-codebox change-site`, as the extension starts it, with real repositories."""

import hashlib
import json
import os
import shutil
import socket
import subprocess

import pytest

from harness import must, skip_unless_root
from harness.bundles import bundle_of
from harness.frames import PROTOCOL
from harness.repositories import chown_to_state_owner, git

TARGET = "/workspace/plugin"
CHANGE = ("sed -i s/two/zwei/ lib/a.txt; printf '#!/bin/sh\\n' > run.sh; chmod +x run.sh; rm plugin.php; "
          "ln -s lib/a.txt link; printf 'a\\0b' > 'name with space.bin'; mkdir empty")
FILES = {"plugin.php", "lib/a.txt", "run.sh", "link", "name with space.bin"}
MESSAGE_KEYS = ("Codebox-Bundle", "Codebox-Run", "Codebox-Manifest", "Codebox-Patch", "Codebox-Approved-By")


class Change:
    """The bundle of a run, with methods that commit its files on a git branch through the extension's interface."""

    def __init__(self, bench, script=CHANGE, **more):
        self.bench = bench
        answer = bench.agent(script, **more).expect(0)
        self.directory = bundle_of(answer)
        self.run_id = os.path.basename(self.directory)
        with open(os.path.join(self.directory, "files/changed-files.json"), encoding="utf-8") as file:
            self.files = [row["path"] for row in json.load(file)["files"]]

    def read(self, name):
        with open(os.path.join(self.directory, name), "rb") as file:
            return file.read()

    def patch(self, files):
        """Returns the parts of the bundle's patch that change these files."""
        blocks = [b"diff --git " + block for block in self.read("files/patch.diff").split(b"diff --git ")[1:]]
        names = [os.path.relpath(path, TARGET).encode() for path in files]
        return b"".join(block for block in blocks if any(b"b/" + name in block.splitlines()[0] for name in names))

    def request(self, repository, files=None, **more):
        files = self.files if files is None else [f"{TARGET}/{name}" for name in files]
        person = {"name": "Jo Doe", "email": "jo@example.org"}
        return {"type": "commit", "reference": self.run_id, "approved_files": files,
                "manifest_sha256": hashlib.sha256(self.read("manifest.json")).hexdigest(),
                "patch_sha256": hashlib.sha256(self.patch(files)).hexdigest(),
                "repository": repository, "directories": {TARGET: "code"}, "branch": "codebox/x", "base": "main",
                "author": person, "committer": {**person, "name": "Site"}, "approver": "jo\nX: y", **more}

    def start(self, action, wrapper=(), env=None):
        ours, theirs = socket.socketpair()
        process = subprocess.Popen([*wrapper, self.bench.environment["CODEBOX"], "change-site"], stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                                   stderr=subprocess.DEVNULL, env=env or {}, pass_fds=(3,), preexec_fn=lambda: os.dup2(theirs.fileno(), 3))
        theirs.close()
        ours.sendall(json.dumps({"protocol": PROTOCOL, "state_dir": self.bench.state, "php_binary": self.bench.environment["CODEBOX_PHP"],
                                 "site": self.bench.site, "action": action}).encode() + b"\n")
        return process, ours

    def finish(self, started):
        """Returns the last message; None if the process died before it sent one."""
        process, ours = started
        ours.settimeout(180)
        with ours, ours.makefile("rb") as lines:
            rows = [json.loads(line) for line in lines]
        process.wait(60)
        return rows[-1] if rows else None

    def commit(self, repository, files=None, **more):
        return self.finish(self.start(self.request(repository, files, **more)))

    def committed(self, repository, files=None, **more):
        answer = self.commit(repository, files, **more)
        must(answer and answer["type"] == "result" and answer["result"]["status"] == "committed", json.dumps(answer))
        return answer["result"]

    def refused(self, code, repository, files=None, **more):
        answer = self.commit(repository, files, **more)
        must(answer and answer["type"] == "error" and answer["error"]["code"] == code, f"{code}: {json.dumps(answer)}")
        must(repository not in json.dumps(answer) and self.bench.state not in json.dumps(answer), f"a host path is told: {answer}")
        return answer["error"]


@pytest.fixture(scope="module")
def change(bench):
    return Change(bench)


class Repository:
    """A repository whose directory `code` holds the sample plugin."""

    def __init__(self, bench, name, bare=False):
        self.bench, self.path = bench, os.path.join(bench.directory, name)
        shutil.rmtree(self.path, ignore_errors=True)
        os.makedirs(self.path)
        shutil.copytree(bench.source(f"{name}-source"), self.inside("code"))
        git(self.path, "init", "-q", "-b", "main")
        with open(self.inside("README"), "w", encoding="utf-8") as file:
            file.write("other\n")
        self.save("base")
        if bare:
            git(bench.directory, "clone", "-q", "--bare", self.path, self.path + ".git")
            self.path += ".git"
        self.own()
        self.base = self.git("rev-parse", "main").strip()

    def inside(self, *names):
        return os.path.join(self.path, *names)

    def own(self):
        chown_to_state_owner(self.bench, self.path)

    def git(self, *arguments):
        return git(self.path, *arguments)

    def save(self, text):
        git(self.path, "add", "-A")
        git(self.path, "commit", "-q", "-m", text)

    def branches(self):
        return self.git("for-each-ref", "--format=%(refname)").split()

    def changed(self, commit):
        return {name.removeprefix("code/") for name in self.git("diff-tree", "-r", "-z", "--name-only", f"{commit}^", commit).split("\0") if name}

    def untouched(self):
        """Returns modification time and inode number of every tracked file, the index and HEAD, to compare before and after."""
        names = [*self.git("ls-files", "-z").split("\0")[:-1], ".git/index", ".git/HEAD"]
        return {name: (os.lstat(self.inside(name)).st_mtime_ns, os.lstat(self.inside(name)).st_ino) for name in names}


def write(path, text, mode=0o644):
    with open(path, "w", encoding="utf-8") as file:
        file.write(text)
    os.chmod(path, mode)


def owner(bench):
    return os.stat(bench.state).st_uid


def test_approved_files_become_one_commit_with_provenance_and_the_work_tree_is_unchanged(bench, change):
    repository = Repository(bench, "plain")
    before = repository.untouched()
    result = change.committed(repository.path)
    commit = result["change"]
    must(repository.git("rev-parse", "codebox/x").strip() == commit and repository.git("rev-parse", "codebox/x^").strip() == repository.base, commit)
    must(repository.changed(commit) == FILES, str(repository.changed(commit)))
    must({name.removeprefix(TARGET + "/") for name in result["files"]} == FILES, str(result["files"]))
    modes = {row.split("\t")[1]: row.split()[0] for row in repository.git("ls-tree", "-r", commit).splitlines()}
    must((modes["code/run.sh"], modes["code/link"], modes["code/lib/a.txt"]) == ("100755", "120000", "100644") and "code/plugin.php" not in modes, str(modes))
    must(repository.git("show", f"{commit}:code/lib/a.txt") == "one\nzwei\nthree\n" and repository.git("show", f"{commit}:code/link") == "lib/a.txt", "contents")
    trailers = dict(line.split(": ", 1) for line in repository.git("log", "-1", "--format=%(trailers:only)", commit).splitlines() if line)
    must(tuple(trailers) == MESSAGE_KEYS and trailers["Codebox-Run"] == change.run_id and trailers["Codebox-Approved-By"] == "jo X: y", json.dumps(trailers))
    must(repository.git("log", "-1", "--format=%an <%ae> %cn", commit).strip() == "Jo Doe <jo@example.org> Site", "people")
    must(repository.git("fsck", "--strict") == "", "fsck")
    for directory, names, files in os.walk(repository.path):
        for name in [directory, *(os.path.join(directory, name) for name in names + files)]:
            must(os.lstat(name).st_uid == owner(bench), f"{name} belongs to another user")
    must(repository.untouched() == before and repository.git("status", "--porcelain") == "", "the work tree or its index changed")
    # The same call again returns the same commit.
    must(change.committed(repository.path)["change"] == commit and repository.git("rev-parse", "codebox/x").strip() == commit, "repeated")


def test_files_are_committed_in_a_bare_repository_and_in_the_top_directory_of_a_repository(bench, change):
    repository = Repository(bench, "bare", bare=True)
    must(repository.changed(change.committed(repository.path)["change"]) == FILES, "bare")
    top = Repository(bench, "top")
    top.git("mv", "code/lib", "code/plugin.php", ".")
    top.save("top")
    top.own()
    must(top.changed(change.committed(top.path, directories={TARGET: ""})["change"]) == FILES, "top")
    change.refused("wp_codebox_git_repository_invalid", top.path, branch="codebox/y", directories={TARGET: "../x"})
    change.refused("wp_codebox_apply_target_mismatch", top.path, branch="codebox/y", directories={})


def test_branch_made_by_codebox_gets_further_commits_unless_another_program_committed_to_it(bench, change):
    repository = Repository(bench, "continued")
    first = change.committed(repository.path, ["lib/a.txt"])["change"]
    repository.git("pack-refs", "--all")
    repository.own()
    second = change.committed(repository.path, ["run.sh"])["change"]
    must(repository.git("rev-parse", f"{second}^").strip() == first and repository.changed(second) == {"run.sh"}, "not continued")
    # The branch already has the changed lib/a.txt, which differs from the base file of the change: a conflict.
    conflict = change.refused("wp_codebox_apply_conflict", repository.path, ["lib/a.txt", "link"])
    must([row["path"] for row in conflict["data"]["conflicts"]] == [TARGET + "/lib/a.txt"], json.dumps(conflict))
    other = repository.git("commit-tree", "-p", second, "-m", "mine", f"{second}^{{tree}}").strip()
    repository.git("update-ref", "refs/heads/codebox/x", other)
    repository.own()
    change.refused("wp_codebox_git_branch_conflict", repository.path, ["link"])
    must(repository.git("rev-parse", "codebox/x").strip() == other, "the foreign branch moved")
    repository.git("update-ref", "refs/heads/codebox/x", second)
    change.committed(repository.path, ["link"])


def test_file_that_differs_in_the_base_commit_is_a_conflict_but_one_that_differs_only_in_the_work_tree_is_not(bench, change):
    repository = Repository(bench, "differs")
    write(repository.inside("code/lib/a.txt"), "only in the work tree\n")
    change.committed(repository.path)
    write(repository.inside("code/lib/a.txt"), "committed\n")
    repository.save("other")
    repository.own()
    conflict = change.refused("wp_codebox_apply_conflict", repository.path, branch="codebox/y")
    must([row["path"] for row in conflict["data"]["conflicts"]] == [TARGET + "/lib/a.txt"], json.dumps(conflict))
    must(repository.branches() == ["refs/heads/codebox/x", "refs/heads/main"], str(repository.branches()))
    # The base commit has a directory where the change has a file, and one where the change has a symlink.
    for place, path in (("code/run.sh/x", "run.sh"), ("code/link/x", "link")):
        os.makedirs(os.path.dirname(repository.inside(place)))
        write(repository.inside(place), "x")
        repository.save(place)
        repository.own()
        change.refused("wp_codebox_apply_conflict", repository.path, [path], branch="codebox/z")


def test_commit_on_a_foreign_symbolic_or_checked_out_branch_is_refused(bench, change):
    repository = Repository(bench, "refs")
    code = "wp_codebox_git_branch_conflict"
    repository.git("branch", "foreign")
    change.refused(code, repository.path, branch="foreign")
    repository.git("symbolic-ref", "refs/heads/alias", "refs/heads/main")
    change.refused(code, repository.path, branch="alias")
    # Controls: after the branches are deleted, commits on new branches with these names succeed.
    for name in ("foreign", "alias"):
        repository.git("update-ref", "--no-deref", "-d", f"refs/heads/{name}")
        repository.own()
        change.committed(repository.path, branch=name)
    must(repository.git("rev-parse", "main").strip() == repository.base, "the base moved")
    for checkout in (["checkout", "-q", "foreign"], ["worktree", "add", "-q", os.path.join(bench.directory, "linked"), "alias"]):
        repository.git(*checkout)
        repository.own()
        change.refused(code, repository.path, ["lib/a.txt"], branch=checkout[-1])
    # HEAD names a branch that does not exist yet; the branch counts as checked out.
    repository.git("symbolic-ref", "HEAD", "refs/heads/unborn")
    change.refused(code, repository.path, branch="unborn")
    change.refused(code, repository.path, branch="main/below")
    for name in ("main", "a..b", "-x", "x.lock", "a b", "HEAD^{commit}", "../../x", ""):
        change.refused("wp_codebox_git_repository_invalid", repository.path, branch=name)
    change.refused("wp_codebox_git_repository_invalid", repository.path, branch="new", base="missing")
    change.committed(repository.path, branch="new")


#: Settings of a repository that start a program.
PROGRAMS = ("core.fsmonitor", "core.editor", "core.pager", "core.sshCommand", "core.askPass", "core.alternateRefsCommand", "core.gitProxy", "gpg.program", "gpg.ssh.program", "diff.external",
            "diff.x.textconv", "diff.x.command", "filter.x.clean", "filter.x.smudge", "filter.x.process", "merge.x.driver", "credential.helper", "uploadpack.packObjectsHook",
            "sequence.editor", "trailer.x.cmd", "remote.origin.uploadpack")
HOOKS = ("pre-commit", "post-commit", "commit-msg", "prepare-commit-msg", "post-checkout", "post-index-change", "reference-transaction", "pre-auto-gc", "fsmonitor-watchman", "update", "post-update")


def test_programs_configured_in_a_repository_are_not_run_by_a_commit(bench, change):
    repository = Repository(bench, "hostile")
    marker, program = repository.inside("marker"), repository.inside(".git", "evil")
    write(program, f"#!/bin/sh\necho \"$0\" >> {marker}\nexit 1\n", 0o755)
    for key in PROGRAMS:
        repository.git("config", key, program)
    for key, value in (("commit.gpgSign", "true"), ("diff.x.binary", "true"), ("core.hooksPath", repository.inside(".git", "hooks2")), ("remote.origin.url", f"ext::{program}"),
                       ("protocol.allow", "always"), ("remote.origin.promisor", "true"), ("extensions.partialClone", "origin"), ("core.repositoryformatversion", "1"),
                       ("include.path", repository.inside("fifo")), ("core.worktree", "/"), ("core.attributesFile", program)):
        repository.git("config", key, value)
    os.makedirs(repository.inside(".git", "hooks2"), exist_ok=True)
    for directory in ("hooks", "hooks2"):
        for hook in HOOKS:
            shutil.copy(program, repository.inside(".git", directory, hook))
    write(repository.inside(".git", "info", "attributes"), "* filter=x diff=x merge=x text eol=crlf ident working-tree-encoding=UTF-16\n")
    # A replacement object and a graft: if git used them, the commit would have another base.
    plain = {"PATH": "/usr/bin:/bin", "GIT_DIR": repository.inside(".git"), "GIT_CONFIG_COUNT": "0"}
    blob = subprocess.run(["git", "-c", "safe.directory=*", "hash-object", "-w", "--no-filters", "--stdin"], input=b"replaced\n", stdout=subprocess.PIPE, check=True,
                          env={**plain, "GIT_DIR": Repository(bench, "donor").inside(".git")}).stdout.decode().strip()
    old = subprocess.run(["git", "hash-object", "--stdin"], input=b"one\ntwo\nthree\n", stdout=subprocess.PIPE, check=True, env={"PATH": "/usr/bin:/bin"}).stdout.decode().strip()
    source = os.path.join(bench.directory, "donor", ".git", "objects", blob[:2])
    os.makedirs(repository.inside(".git", "objects", blob[:2]), exist_ok=True)
    shutil.copy(os.path.join(source, blob[2:]), repository.inside(".git", "objects", blob[:2], blob[2:]))
    os.makedirs(repository.inside(".git", "refs", "replace"))
    write(repository.inside(".git", "refs", "replace", old), blob + "\n")
    write(repository.inside(".git", "info", "grafts"), f"{repository.base} {repository.base}\n")
    os.mkfifo(repository.inside("fifo"))
    repository.own()
    commit = change.committed(repository.path)["change"]
    # The commit does not use the git variables of its environment either.
    trace = repository.inside("trace")
    asked = {"GIT_TRACE": trace, "GIT_EXEC_PATH": os.path.dirname(program)}
    must(change.finish(change.start(change.request(repository.path), env=asked))["type"] == "result", "the same commit again")
    must(not os.path.exists(trace), "git read the environment")
    must(not os.path.exists(marker), "programs ran: " + (open(marker, encoding="utf-8").read() if os.path.exists(marker) else ""))
    subprocess.run(["git", "-c", "safe.directory=*", "version"], env={"PATH": "/usr/bin:/bin", "GIT_TRACE": trace}, check=True, stdout=subprocess.DEVNULL)
    must(os.path.exists(trace), "the control writes no trace")
    # Control: ordinary git runs the programs and reads the replacement. Git would block at the FIFO, so the FIFO is removed.
    os.remove(repository.inside("fifo"))
    os.remove(repository.inside(".git", "info", "grafts"))
    env = {"PATH": "/usr/bin:/bin", "HOME": "/nonexistent", "GIT_DIR": repository.inside(".git"), "GIT_WORK_TREE": repository.path}
    subprocess.run(["git", "-c", "safe.directory=*", "update-ref", "refs/heads/control", commit], env=env, check=False, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    must(os.path.exists(marker), "the control runs no hook")
    shown = subprocess.run(["git", "-c", "safe.directory=*", "cat-file", "blob", old], env=env, stdout=subprocess.PIPE, check=True).stdout
    must(shown == b"replaced\n", f"the control reads {shown}")
    parent = subprocess.run(["git", "--no-replace-objects", "-c", "safe.directory=*", "cat-file", "-p", commit], env=env, stdout=subprocess.PIPE, check=True).stdout.decode()
    must(f"parent {repository.base}\n" in parent and "gpgsig" not in parent, parent)
    raw = subprocess.run(["git", "--no-replace-objects", "-c", "safe.directory=*", "cat-file", "blob", f"{commit}:code/lib/a.txt"], env=env, stdout=subprocess.PIPE, check=True).stdout
    must(raw == b"one\nzwei\nthree\n", f"{raw}")


def linked_git(repository):
    os.rename(repository.inside(".git"), repository.path + "-moved")
    os.symlink(repository.path + "-moved", repository.inside(".git"))


def git_file(repository):
    os.rename(repository.inside(".git"), repository.path + "-moved")
    write(repository.inside(".git"), f"gitdir: {repository.path}-moved\n")


def linked(name):
    def link(repository):
        place = repository.inside(".git", name)
        if not os.path.lexists(place):
            os.makedirs(place)
        os.rename(place, repository.path + "-moved")
        os.symlink(repository.path + "-moved", place)
    return link


def alternates(repository):
    write(repository.inside(".git", "objects", "info", "alternates"), os.path.join(repository.bench.directory, "plain", ".git", "objects") + "\n")


def reftable(repository):
    repository.git("config", "extensions.refStorage", "reftable")
    repository.git("config", "core.repositoryformatversion", "1")


def fifo(name):
    def make(repository):
        if os.path.lexists(repository.inside(".git", name)):
            os.remove(repository.inside(".git", name))
        os.mkfifo(repository.inside(".git", name))
    return make


#: For each unsupported feature: the function that adds it to a repository, and the error code of the refusal.
UNUSABLE = {
    "link as .git": (linked_git, "wp_codebox_git_repository_invalid"),
    "file as .git": (git_file, "wp_codebox_git_repository_invalid"),
    "link as objects": (linked("objects"), "wp_codebox_git_repository_invalid"),
    "link as objects/pack": (linked("objects/pack"), "wp_codebox_git_repository_invalid"),
    "link as refs/heads": (linked("refs/heads"), "wp_codebox_git_repository_invalid"),
    "link above the branch": (linked("refs/heads/codebox"), "wp_codebox_git_branch_conflict"),
    "link as config": (linked("config"), "wp_codebox_git_repository_invalid"),
    "alternates": (alternates, "wp_codebox_git_repository_invalid"),
    "other storage of references": (reftable, "wp_codebox_git_repository_invalid"),
    "FIFO as config": (fifo("config"), "wp_codebox_git_repository_invalid"),
    "FIFO as packed-refs": (fifo("packed-refs"), "wp_codebox_git_repository_invalid"),
}


@pytest.mark.parametrize("name", UNUSABLE)
def test_repository_with_an_unsupported_feature_is_refused_and_accepted_without_it(bench, change, name):
    spoil, code = UNUSABLE[name]
    repository = Repository(bench, "unusable")
    shutil.rmtree(repository.path + "-moved", ignore_errors=True)
    if os.path.lexists(repository.path + "-moved"):
        os.remove(repository.path + "-moved")
    # Control: a commit succeeds before the feature is added.
    change.committed(repository.path, ["run.sh"], branch="control")
    spoil(repository)
    repository.own()
    if os.path.isdir(repository.path + "-moved"):
        chown_to_state_owner(bench, repository.path + "-moved")
    change.refused(code, repository.path)
    must(not os.path.isfile(os.path.join(repository.path + "-moved", "x")), "the branch was written elsewhere")


def test_repository_that_belongs_to_another_user_or_lies_in_the_state_directory_is_refused(bench, change):
    if os.geteuid() != 0:
        skip_unless_root("another user")
    repository = Repository(bench, "owned")
    change.committed(repository.path, ["run.sh"], branch="control")
    os.chown(repository.inside(".git"), owner(bench) + 1, -1)
    os.chmod(repository.inside(".git"), 0o777)
    change.refused("wp_codebox_git_repository_invalid", repository.path)
    os.chown(repository.inside(".git"), owner(bench), -1)
    change.committed(repository.path)
    inside = os.path.join(bench.state, "repository")
    os.rename(repository.path, inside)
    try:
        change.refused("wp_codebox_git_repository_invalid", inside, branch="inside")
    finally:
        os.rename(inside, repository.path)
    change.committed(repository.path, branch="inside")
    for path in ("relative", os.path.join(bench.directory, "none"), "/"):
        answer = change.commit(path)
        must(answer["type"] == "error" and answer["error"]["code"] == "wp_codebox_git_repository_invalid", json.dumps(answer))


def test_commit_is_refused_if_the_bundle_was_modified_a_digest_differs_or_an_approved_file_is_not_in_it(bench):
    change = Change(bench)
    repository = Repository(bench, "bundle")
    change.refused("wp_codebox_artifact_changed", repository.path, patch_sha256="0" * 64)
    change.refused("wp_codebox_artifact_changed", repository.path, manifest_sha256="0" * 64)
    change.refused("wp_codebox_approved_files_invalid", repository.path, ["none.php"])
    change.refused("wp_codebox_approved_files_invalid", repository.path, ["empty"])
    must(repository.branches() == ["refs/heads/main"], str(repository.branches()))
    change.committed(repository.path, ["run.sh"])
    with open(os.path.join(change.directory, "files/patch.diff"), "ab") as file:
        file.write(b"\n")
    change.refused("wp_codebox_artifact_verification_failed", repository.path, ["link"])


def test_apply_is_refused_if_the_digest_of_the_approved_patch_differs(bench, change):
    directory = bench.source("apply-target")
    request = change.request("unused", ["run.sh"])
    action = {"type": "apply", "targets": {TARGET: directory}, **{key: request[key] for key in ("reference", "approved_files", "manifest_sha256", "patch_sha256")}}
    refused = change.finish(change.start({**action, "patch_sha256": "0" * 64}))
    must(refused["type"] == "error" and refused["error"]["code"] == "wp_codebox_artifact_changed", json.dumps(refused))
    must(not os.path.exists(os.path.join(directory, "run.sh")), "the file was written")
    applied = change.finish(change.start(action))
    must(applied["type"] == "result" and applied["result"]["status"] == "applied", json.dumps(applied))


def test_each_of_several_concurrent_commits_is_complete_or_refused(bench, change):
    repository = Repository(bench, "race")
    started = [change.start(change.request(repository.path, [name])) for name in ("run.sh", "link", "lib/a.txt")]
    answers = [change.finish(one) for one in started]
    done = [answer["result"]["change"] for answer in answers if answer["type"] == "result"]
    must(done and all(answer["error"]["code"] in ("wp_codebox_busy", "wp_codebox_git_branch_conflict") for answer in answers if answer["type"] == "error"), json.dumps(answers))
    made = repository.git("rev-list", f"{repository.base}..codebox/x").split()
    must(sorted(made) == sorted(done), f"{made} {done}")
    must(repository.git("fsck", "--strict") == "", "fsck")


def test_committing_process_killed_before_or_after_any_git_command_leaves_no_branch_or_the_complete_new_one(bench, change):
    if os.geteuid() != 0:
        skip_unless_root("a mount over git")
    place = os.path.join(bench.directory, "kills")
    os.makedirs(place)
    os.chmod(place, 0o777)
    real, wrapper, counter = (os.path.join(place, name) for name in ("real", "wrapper", "counter"))
    shutil.copy(os.path.realpath(shutil.which("git", path="/usr/local/bin:/usr/bin")), real)
    program = next(path for path in ("/usr/local/bin/git", "/usr/bin/git") if os.path.exists(path))
    kills, points = 0, {"none": 0, "new": 0}
    for moment in ("before", "after"):
        for number in range(1, 60):
            repository = Repository(bench, "killed")
            write(counter, "0", 0o666)
            kill = "kill -9 $PPID; exit 1"
            write(wrapper, f"#!/bin/sh\nread n < {counter}; n=$((n+1)); echo $n > {counter}\n"
                           + (f"[ $n = {number} ] && {{ {kill}; }}\n{real} \"$@\"\n" if moment == "before" else f"{real} \"$@\"; s=$?\n[ $n = {number} ] && {{ {kill}; }}\nexit $s\n"), 0o755)
            mounted = ["/usr/bin/unshare", "-m", "--propagation", "private", "/bin/sh", "-c", f"/bin/mount --bind {wrapper} {program} && exec \"$@\"", "sh"]
            answer = change.finish(change.start(change.request(repository.path), mounted))
            if answer is not None:
                must(answer["type"] == "result", json.dumps(answer))
                break
            kills += 1
            tip = [name for name in repository.branches() if name != "refs/heads/main"]
            points["new" if tip else "none"] += 1
            must(repository.git("fsck", "--strict", "--no-dangling") == "", f"{moment} {number}: fsck")
            must(repository.git("status", "--porcelain") == "", f"{moment} {number}: the work tree changed")
            # The next call creates the commit, or returns the one that the killed process had created.
            commit = change.committed(repository.path)["change"]
            must(repository.git("rev-list", f"{repository.base}..codebox/x").split() == [commit], f"{moment} {number}: {commit}")
            must(repository.changed(commit) == FILES, f"{moment} {number}")
            must(os.listdir(os.path.join(bench.state, "sites", bench.site, "git-branch")).count("work") == 0, "the work directory is left")
        else:
            must(False, "the process was killed each time")
    must(kills >= 20 and points["new"] >= 1 and points["none"] >= 10, f"{kills} {points}")


def test_damaged_repository_is_refused_as_a_git_failure_with_a_message_and_no_branch_is_created(bench, change):
    repository = Repository(bench, "damaged")
    tree = repository.git("rev-parse", "main^{tree}").strip()
    os.remove(repository.inside(".git", "objects", tree[:2], tree[2:]))
    error = change.refused("wp_codebox_git_failed", repository.path)
    must(len(error["message"].split()) > 4, error["message"])
    must("codebox/x" not in repository.git("branch", "--list", "--all"), "a branch was made")


def test_damaged_record_of_a_branch_is_refused_and_neither_record_nor_branch_changes(bench, change):
    repository = Repository(bench, "damaged-record")
    place = os.path.join(bench.state, "sites", bench.site, "git-branch")
    before = set(os.listdir(place)) if os.path.isdir(place) else set()
    commit = change.committed(repository.path)["change"]
    [record] = [os.path.join(place, name) for name in set(os.listdir(place)) - before if name.endswith(".json")]
    with open(record, "rb") as file:
        good = file.read()
    os.truncate(record, len(good) // 2)
    error = change.refused("wp_codebox_state_dir_invalid", repository.path)
    must(os.path.basename(record) in error["message"] and "restore it from a backup" in error["message"], error["message"])
    must(os.path.getsize(record) == len(good) // 2 and repository.git("rev-parse", "codebox/x").strip() == commit, "the record or the branch changed")
    # Control: with the record as it was, the call finds its commit again.
    with open(record, "wb") as file:
        file.write(good)
    must(change.committed(repository.path)["change"] == commit, "another commit")
