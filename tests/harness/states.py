"""Writes a state directory with everything in it, and reads it again, with the programs of this checkout or of another version.

    python3 tests/harness/states.py pack FILE            writes a state directory and packs it into FILE (.tar.xz)
    python3 tests/harness/states.py other DIRECTORY      lets the programs in DIRECTORY (wp-codebox, wp-codebox-launch,
                                                         wp_codebox.so) and those of this checkout read what the others wrote

Both need `eval "$(tests/env)"` and root. Facts about a state directory are in `facts.json` beside it.
"""

import json
import os
import pwd
import shutil
import subprocess
import sys
import tarfile
import tempfile

if __name__ == "__main__":
    sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))

from harness.checks import must

SITE = "site-1"
OLD, NEW = "<?php\n/* Plugin Name: Sample */\nreturn 1;\n", "<?php\n/* Plugin Name: Sample */\nreturn 2;\n"
PROFILE = """
id: profile.state
version: 1.0.0
extension: native
workspace: { mode: mirror, access: rw, target: /workspace/plugin }
ttl: { default: 10m, max: 20m, idle_reap: null }
"""


class Programs:
    """The programs of one version, and the user who owns the state directories."""

    def __init__(self, environment, directory=None):
        self.environment = environment
        at = {"CODEBOX": "wp-codebox", "CODEBOX_LAUNCH": "wp-codebox-launch", "CODEBOX_SO": "wp_codebox.so"}
        self.at = {name: os.path.join(directory, file) if directory else environment[name] for name, file in at.items()}
        self.owner = pwd.getpwnam(environment["CODEBOX_OWNER"])

    def call(self, place, *words, as_owner=False, expect=0, places=False):
        """Calls `wp-codebox` in the project of a place; returns its JSON."""
        e = self.environment
        more = ["--state", place.state]
        if places:
            more += ["--wordpress", e["CODEBOX_WORDPRESS"], "--share", e["CODEBOX_SHARE"], "--launcher", self.at["CODEBOX_LAUNCH"], "--php", e["CODEBOX_PHP"]]
        return self.execute(place, [self.at["CODEBOX"], *words, *more, "--json"], as_owner, expect)

    def php(self, place, code):
        """Runs PHP code with the extension; the code sets `$out`, which is returned."""
        words = [self.environment["CODEBOX_PHP"], "-n", "-d", f"extension={self.at['CODEBOX_SO']}", "-d", f"wp_codebox.state_dir={place.state}", "-r",
                 f"use WPCodebox\\Native\\Artifacts; {code} echo json_encode( $out );"]
        return self.execute(place, words, True, 0)

    def execute(self, place, words, as_owner, expect):
        """Executes a program; returns its JSON, or the process itself when no exit status is expected."""
        become = ["setpriv", f"--reuid={self.owner.pw_uid}", f"--regid={self.owner.pw_gid}", "--clear-groups"] if as_owner else []
        done = subprocess.run([*become, *words], cwd=place.project, stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              env={"PATH": "/usr/bin:/bin", "HOME": "/nonexistent"})
        must(expect in (None, done.returncode), f"{words}: {done.returncode}\n{done.stdout[-1500:]}\n{done.stderr[-1500:]}")
        return done if expect is None else json.loads(done.stdout)


class Place:
    """A directory with a state directory and the project whose changes are in it."""

    def __init__(self, root, owner):
        os.chmod(root, 0o755)
        self.state, self.project, self.owner = os.path.join(root, "state"), os.path.join(root, "project"), owner
        for path, mode in ((self.state, 0o700), (self.project, 0o755)):
            if not os.path.isdir(path):
                os.mkdir(path, mode)
                os.chown(path, owner.pw_uid, owner.pw_gid)

    @property
    def site(self):
        return os.path.join(self.state, "sites", SITE)

    def plugin(self, text=None):
        """Writes the file of the plugin, or returns its text."""
        path = os.path.join(self.project, "plugin.php")
        if text is None:
            with open(path, encoding="utf-8") as file:
                return file.read()
        with open(path, "w", encoding="utf-8") as file:
            file.write(text)
        os.chown(path, self.owner.pw_uid, self.owner.pw_gid)
        return None

    def own(self):
        """Gives the state directory to its owner, and adapts the journal of applied changes to this user and this directory, as an operator would after a move."""
        applies = os.path.join(self.site, "applies")
        for user in os.listdir(applies):
            os.rename(os.path.join(applies, user), os.path.join(applies, str(self.owner.pw_uid)))
        for directory, names, files in os.walk(self.state):
            for name in [directory, *(os.path.join(directory, name) for name in names + files)]:
                os.chown(name, self.owner.pw_uid, self.owner.pw_gid, follow_symlinks=False)
        for directory, _, files in os.walk(applies):
            if "journal.json" in files:
                path = os.path.join(directory, "journal.json")
                with open(path, encoding="utf-8") as file:
                    journal = json.load(file)
                for target in journal["targets"]:
                    target["path"] = self.project
                with open(path, "w", encoding="utf-8") as file:
                    json.dump(journal, file)


def write(programs, place):
    """Fills an empty place; returns the facts that `read` checks."""
    place.plugin(OLD)
    edit = "sh -c 'sed -i s/return.1/return\\ 2/ plugin.php'"
    run = programs.call(place, "run", "--site", SITE, "--mount", f"{place.project}:/workspace/plugin", "--agent-command", edit, places=True)
    run_id = run["runtime"]["id"]
    change = programs.call(place, "apply", run_id, "--site", SITE, as_owner=True)["change"]
    must(place.plugin() == NEW, place.plugin())
    profile = os.path.join(os.path.dirname(place.state), "profile.yaml")
    with open(profile, "w", encoding="utf-8") as file:
        file.write(PROFILE)
    box = programs.call(place, "sandbox", "create", "--profile", profile, "--source", place.project, "--site", SITE, places=True)["id"]
    snapshot = programs.call(place, "sandbox", "snapshot", box, "--name", "one", "--site", SITE, places=True)["id"]
    programs.call(place, "sandbox", "destroy", box, "--site", SITE, places=True)
    programs.call(place, "token", "create", "--actor", "atm:state", "--scope", "sandboxes:read")
    programs.call(place, "ledger", "grant", "shop", "500", "--reference", "first", "--reason", "state")
    for number in (1, 2):
        programs.php(place, f'$out = Artifacts::audit( "{SITE}", [ "operation" => "approve", "number" => {number} ] );')
    return {"run": run_id, "sandbox": box, "change": change["id"], "snapshot": snapshot}


def read(programs, place, facts):
    """Reads everything that `write` wrote, and takes the applied change back."""
    listed = programs.call(place, "runs", "list", "--site", SITE)
    must({run["runId"] for run in listed["runs"]} == {facts["run"], facts["sandbox"]} and not listed.get("unreadable"), json.dumps(listed)[:1500])
    must(programs.call(place, "runs", "get", facts["run"], "--site", SITE)["outcome"] == "succeeded", "another outcome")
    for run in (facts["run"], facts["sandbox"]):
        bundle = os.path.join(place.site, "artifacts", run)
        verified = programs.call(place, "artifacts", "verify", "--bundle", bundle)
        must(verified["valid"] and verified["signature"]["status"] == "signed-by-this-host", json.dumps(verified)[:800])
    snapshots = programs.call(place, "sandbox", "snapshots", "--site", SITE, places=True)
    must(facts["snapshot"] in json.dumps(snapshots), json.dumps(snapshots)[:800])
    must("atm:state" in json.dumps(programs.call(place, "token", "list")), "the token is missing")
    must(programs.call(place, "ledger", "verify")["success"] is True, "the ledger is not valid")
    must("500" in json.dumps(programs.call(place, "ledger", "balance", "shop")), "another balance")
    audit = programs.php(place, f'$out = Artifacts::auditRecords( "{SITE}" );')
    must(audit["chain"]["valid"] and audit["total"] == 2, json.dumps(audit)[:800])
    programs.call(place, "gc", "--dry-run", "--site", SITE)
    place.plugin(NEW)
    programs.call(place, "undo", facts["change"], "--site", SITE, as_owner=True)
    must(place.plugin() == OLD, place.plugin())


def pack(environment, file):
    """Writes a state directory with the programs of the environment and packs it, without what is built again."""
    programs = Programs(environment)
    with tempfile.TemporaryDirectory() as root:
        place = Place(root, programs.owner)
        facts = write(programs, place)
        for name in ("templates", "cache", "self-test.json"):
            path = os.path.join(place.state, name)
            shutil.rmtree(path) if os.path.isdir(path) else os.path.exists(path) and os.unlink(path)
        with open(os.path.join(root, "facts.json"), "w", encoding="utf-8") as out:
            json.dump(facts, out)

        def anonymous(member):
            member.uid = member.gid = 0
            member.uname = member.gname = ""
            return member

        with tarfile.open(file, "w:xz") as archive:
            for name in ("state", "facts.json"):
                archive.add(os.path.join(root, name), name, filter=anonymous)


def unpack(file, root, owner):
    """Unpacks a state directory for its owner; returns its place and facts."""
    with tarfile.open(file) as archive:
        archive.extractall(root)
    place = Place(root, owner)
    place.own()
    with open(os.path.join(root, "facts.json"), encoding="utf-8") as facts:
        return place, json.load(facts)


def other(environment, directory):
    """Lets two versions read what the other one wrote."""
    here, there = Programs(environment), Programs(environment, directory)
    for name, writer, reader in (("this one reads what the other wrote", there, here), ("the other reads what this one wrote", here, there)):
        with tempfile.TemporaryDirectory() as root:
            place = Place(root, here.owner)
            read(reader, place, write(writer, place))
            print(name)


if __name__ == "__main__":
    {"pack": pack, "other": other}[sys.argv[1]](dict(os.environ), sys.argv[2])
