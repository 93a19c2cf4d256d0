"""Creates git repositories on the host whose configuration holds a credential."""

import os
import subprocess

TOKEN = "credential-of-the-host"

MARKED = "what-the-guest-may-read"

# `.git` at several depths, in every spelling that git accepts on some file system, as directory, file and symlink.
HIDDEN = (".git", "nested/.git", "nested/deep/.GIT", "odd/git~1", "tree/.git", "linked/.git")


def repository(bench, name="work"):
    """Creates a plugin with a repository, a nested repository, a work tree with a `.git` file, and one with a `.git` symlink."""
    source = bench.source(name)
    for path in HIDDEN[:4]:
        os.makedirs(os.path.join(source, path, "hooks"))
        for file in ("config", "hooks/pre-commit", "logs"):
            with open(os.path.join(source, path, file), "w", encoding="utf-8") as out:
                out.write(f"[remote] url = https://{TOKEN}@example.org/x.git\n")
    for directory in ("tree", "linked"):
        os.makedirs(os.path.join(source, directory))
    with open(os.path.join(source, "tree/.git"), "w", encoding="utf-8") as out:
        out.write(f"gitdir: /srv/{TOKEN}/worktrees/tree\n")
    os.symlink(f"/srv/{TOKEN}", os.path.join(source, "linked/.git"))
    for directory in (".", "nested", "nested/deep", "odd", "tree", "linked"):
        with open(os.path.join(source, directory, "marked.txt"), "w", encoding="utf-8") as out:
            out.write(MARKED + "\n")
    os.chmod(os.path.join(source, "nested"), 0o751)
    of = os.stat(bench.state)
    for path in [source, *(os.path.join(at, name) for at, *names in os.walk(source) for name in names[0] + names[1])]:
        os.lchown(path, of.st_uid, of.st_gid)
    return source


def git(directory, *arguments):
    return subprocess.run(["git", "-c", "safe.directory=*", "-c", "user.name=x", "-c", "user.email=x@localhost", "-c", "commit.gpgsign=false", *arguments],
                          cwd=directory, check=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"}).stdout


def history_repository(bench, name="real"):
    """Creates a repository with three commits, a pack, a tag, and credentials in its configuration."""
    source = bench.source(name)
    git(source, "init", "-q", "-b", "trunk")
    for number in range(3):
        with open(os.path.join(source, "lib/a.txt"), "a", encoding="utf-8") as file:
            file.write(f"line {number}\n")
        git(source, "add", "-A")
        git(source, "commit", "-qm", f"change {number}")
        if number == 1:
            git(source, "tag", "v1")
            git(source, "gc", "-q")
    git(source, "remote", "add", "origin", f"https://{TOKEN}@example.org/x.git")
    git(source, "config", "http.extraheader", TOKEN)
    git(source, "config", "core.fsmonitor", f"/bin/{TOKEN}")
    for path in ("FETCH_HEAD", "logs/HEAD", "hooks/post-checkout", "modules/x/config", "credentials"):
        os.makedirs(os.path.dirname(os.path.join(source, ".git", path)), exist_ok=True)
        with open(os.path.join(source, ".git", path), "a", encoding="utf-8") as file:
            file.write(f"{TOKEN}\n")
    return chown_to_state_owner(bench, source)


def chown_to_state_owner(bench, source):
    of = os.stat(bench.state)
    for at, directories, files in os.walk(source):
        for name in [at, *(os.path.join(at, name) for name in directories + files)]:
            os.lchown(name, of.st_uid, of.st_gid)
    return source
