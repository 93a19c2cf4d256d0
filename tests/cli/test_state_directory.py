"""Versions of the files in the state directory, rotation of the signing key, backup and restore."""

import json
import os
import re
import shutil
import sqlite3
import subprocess
import tarfile
import tempfile

import pytest

from harness import must, skip_unless_root
from harness.states import NEW, SITE, Place, Programs, read, unpack, write

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
FIRST = os.path.join(ROOT, "tests", "fixtures", "states", "1.tar.xz")


@pytest.fixture(scope="module")
def programs(environment):
    if os.geteuid() != 0:
        skip_unless_root("programs that start as root and as the owner")
    return Programs(environment)


@pytest.fixture
def first(programs):
    """Yields a place with the state directory that the first version wrote, and its facts."""
    with tempfile.TemporaryDirectory(prefix="codebox-state.") as root:
        place, facts = unpack(FIRST, root, programs.owner)
        place.plugin(NEW)
        yield place, facts


@pytest.fixture(scope="module")
def written(programs):
    """Yields a place whose state directory the present programs wrote, and its facts."""
    with tempfile.TemporaryDirectory(prefix="codebox-state.") as root:
        place = Place(root, programs.owner)
        yield place, write(programs, place)


def test_state_directory_of_the_first_version_is_read(programs, first):
    place, facts = first
    must("version" not in os.listdir(place.state), "the first version stated no version")
    read(programs, place, facts)
    # The first command that writes states it.
    with open(os.path.join(place.state, "version"), encoding="utf-8") as file:
        must(file.read() == "1\n", "another version")


def rows():
    """Returns a pattern for each file name in the table of the page."""
    with open(os.path.join(ROOT, "docs", "state-directory.md"), encoding="utf-8") as page:
        table = page.read().split("\n## Files\n")[1].split("\n## ")[0]
    for line in table.splitlines():
        if line.startswith("| `"):
            for name in re.findall(r"`([^`]+)`", line.split("|")[1]):
                pattern = re.escape(name).replace(r"\*\*", ".+")
                yield re.compile(re.sub(r"(?<![A-Z])(SITE|RUN|UID|CHANGE|SNAPSHOT|KEY_ID|TOOL|NAME)(?![A-Z])", "[^/]+", pattern) + "$")


def test_each_file_of_a_state_directory_is_in_the_table(written):
    place, _ = written
    patterns = list(rows())
    must(len(patterns) > 30, f"the table was not read: {len(patterns)}")
    found = [os.path.relpath(os.path.join(directory, name), place.state) for directory, _, names in os.walk(place.state) for name in names]
    must("version" in found and any(name.endswith("run.json") for name in found), f"the directory was not read: {found[:9]}")
    unknown = [name for name in found if not any(pattern.match(name) for pattern in patterns)]
    must(not unknown, f"docs/state-directory.md does not name {unknown}")


def member(name):
    """Returns a function that raises the version in a member of a JSON file."""

    def change(path):
        with open(path, encoding="utf-8") as file:
            document = json.load(file)
        value = document[name]
        document[name] = value + 1 if isinstance(value, int) else re.sub(r"\d+$", lambda match: str(int(match[0]) + 1), value)
        with open(path, "w", encoding="utf-8") as file:
            json.dump(document, file)

    return change


def user_version(path):
    connection = sqlite3.connect(path)
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    # The fixture may be one version behind this program.
    connection.execute(f"PRAGMA user_version = {version + 100}")
    connection.commit()
    connection.close()


def half(path):
    os.truncate(path, os.path.getsize(path) // 2)


def text(content):
    def change(path):
        with open(path, "w", encoding="utf-8") as file:
            file.write(content)

    return change


# File, change to a newer version, change that damages it, command, exit status.
FILES = {
    "version": ("version", text("2\n"), text(""), ["runs", "list"], 125),
    "record": ("sites/{site}/runs/{run}/run.json", member("version"), half, ["runs", "list"], 1),
    "result": ("sites/{site}/runs/{run}/result.json", member("schema"), half, ["runs", "get", "{run}"], 125),
    "journal of a change": ("sites/{site}/applies/{uid}/done/{change}/journal.json", member("schema"), half, ["undo", "{change}", "--site", "{site}"], 1),
    "snapshot": ("sites/{site}/snapshots/{snapshot}/snapshot.json", member("schema"), half, ["sandbox", "snapshots", "--site", "{site}"], 1),
    "service": ("service/service.sqlite", user_version, half, ["token", "list"], 125),
    "ledger": ("ledger/ledger.sqlite", user_version, half, ["ledger", "verify"], 125),
}


def files(root):
    """Returns the content of each file, without the shared memory of open databases."""
    found = {}
    for directory, _, names in os.walk(root):
        for name in names:
            path = os.path.join(directory, name)
            if not name.endswith("-shm") and os.path.isfile(path):
                with open(path, "rb") as file:
                    found[path] = file.read()
    return found


def asked(programs, place, facts, name, change, may_change=frozenset()):
    """Changes a file, calls the command that reads it, and returns what it prints; checks that no file changed, except those named."""
    path, _, _, words, status = FILES[name]
    values = {**facts, "site": SITE, "uid": programs.owner.pw_uid}
    path = os.path.join(place.state, path.format(**values))
    change(path)
    before = files(place.state)
    done = programs.execute(place, [programs.at["CODEBOX"], *(word.format(**values) for word in words), "--state", place.state], True, None)
    after = files(place.state)
    lost = [path for path, content in before.items() if after.get(path) != content and os.path.basename(path) not in may_change]
    must(not lost, f"{name}: {words} changed {lost}")
    return done, status


@pytest.mark.parametrize("name", FILES)
def test_newer_file_is_refused_and_stays_as_it_is(programs, first, name):
    place, facts = first
    text("1\n")(os.path.join(place.state, "version"))
    os.chown(os.path.join(place.state, "version"), programs.owner.pw_uid, programs.owner.pw_gid)
    done, status = asked(programs, place, facts, name, FILES[name][1])
    said = done.stdout + done.stderr
    must(done.returncode == status and "use the newer wp-codebox" in said and "backup" not in said, f"{done.returncode} {said}")
    if name == "version":
        code = f'try {{ $out = Artifacts::auditRecords( "{SITE}" ); }} catch ( Throwable $thrown ) {{ $out = [ $thrown->errorCode, $thrown->getMessage() ]; }}'
        refused = programs.php(place, code)
        must(refused[0] == "wp_codebox_state_dir_invalid" and "use the newer wp-codebox" in refused[1], f"extension: {refused}")


def test_each_command_that_refuses_a_newer_or_damaged_file_accepts_the_file_as_it_was(programs, first):
    """The control of the cases above and below."""
    place, facts = first
    for name in FILES:
        done, _ = asked(programs, place, facts, name, lambda path: None, {"service.sqlite", "journal.json"})
        must(done.returncode == 0, f"{name}: {done.stdout} {done.stderr}")


@pytest.mark.parametrize("name", FILES)
def test_damaged_file_is_refused_and_stays_as_it_is(programs, first, name):
    place, facts = first
    text("1\n")(os.path.join(place.state, "version"))
    done, status = asked(programs, place, facts, name, FILES[name][2])
    said = done.stdout + done.stderr
    # A damaged snapshot can only be removed. A damaged ledger has a code of its own.
    status = {"snapshot": 0, "ledger": 1}.get(name, status)
    must(done.returncode == status and "newer" not in said, f"{done.returncode} {said}")
    must("restore" in said and "backup" in said or name == "snapshot" and "damaged" in said, said)


def test_bundles_and_audit_log_of_an_earlier_key_stay_trusted_until_its_public_key_is_removed(programs, first):
    place, facts = first
    rotated = programs.call(place, "keys", "rotate")
    must(rotated["success"] and rotated["unsigned_audit_logs"] == [] and rotated["key_id"] != rotated["old_key_id"], json.dumps(rotated))
    retired = os.path.join(place.state, "keys", f"{rotated['old_key_id']}.pub")
    mode = os.stat(retired)
    must((mode.st_uid, mode.st_mode & 0o777) == (programs.owner.pw_uid, 0o600), f"owner and mode of {retired}: {mode}")
    # Verification, apply, undo and audit log work with the new key as before.
    read(programs, place, facts)
    programs.call(place, "apply", facts["run"], "--to", place.project, "--site", SITE, as_owner=True)
    must(place.plugin() == NEW, place.plugin())
    programs.call(place, "undo", "--site", SITE, as_owner=True)
    doctor = programs.execute(place, [programs.at["CODEBOX"], "doctor", "--state", place.state, "--json"], False, None)
    must("1 earlier still trusted" in doctor.stdout, f"doctor does not count the earlier key: {doctor.stdout}")
    os.unlink(retired)
    bundle = os.path.join(place.site, "artifacts", facts["run"])
    verified = programs.call(place, "artifacts", "verify", "--bundle", bundle)
    must(verified["signature"]["status"] == "signed-by-unknown", json.dumps(verified)[:600])
    refused = programs.call(place, "apply", facts["run"], "--to", place.project, "--site", SITE, as_owner=True, expect=1)
    must(refused["error"]["code"] == "wp_codebox_artifact_untrusted", json.dumps(refused))
    audit = programs.php(place, f'$out = Artifacts::auditRecords( "{SITE}" );')
    must(audit["chain"]["valid"], f"the audit log was not signed again: {audit}")
    # Control: a second rotation without a key is refused.
    shutil.rmtree(os.path.join(place.state, "keys"))
    refused = programs.call(place, "keys", "rotate", expect=125)
    must("no signing key yet" in refused["error"]["message"], json.dumps(refused))


def test_state_directory_is_complete_after_backup_and_restore_to_another_path(programs, first):
    place, facts = first
    with tempfile.TemporaryDirectory(prefix="codebox-restored.") as root:
        backup = os.path.join(root, "backup.tar")
        subprocess.run(["tar", "-C", place.state, "-cf", backup, "--exclude=./templates", "--exclude=./cache", "."], check=True)
        shutil.rmtree(place.state)
        restored = Place(root, programs.owner)
        restored.project = place.project
        with tarfile.open(backup) as archive:
            archive.extractall(restored.state)
        read(programs, restored, facts)
