"""Projects, home directories, archives and bundles that `wp-codebox` must refuse. Each refusal has a control that succeeds."""

import contextlib
import glob
import json
import os
import shutil
import subprocess
import threading
import zipfile

import pytest

from harness import must, remove_tree
from harness.developer import PLUGIN

AGENT = ("--agent-command", "sed -i s/helo/hello/ hello.php")
GOAL = ("Fix the greeting", *AGENT)
CONTROL = ("php", "-r", "echo 1;")
#: Size limits of `wordpress install`: of an archive, and of one file in it.
ARCHIVE_LIMIT, FILE_LIMIT = 256 << 20, 64 << 20


def refused(answer, code, cause, step):
    """Checks the error document of a call with --json: its code, the cause in its message, the next step in message or hints."""
    must(answer.returncode != 0, answer.stdout + answer.stderr)
    error = json.loads(answer.stdout)["error"]
    told = " ".join([error["message"], *error.get("hints", [])])
    must(error["code"] == code and cause in error["message"] and step in told, f"{cause!r}, {step!r}: {json.dumps(error)}")


def copy_template(developer, state, run=subprocess.run):
    """Creates a state directory with the WordPress template of the developer's own one, so that its first run builds none."""
    developer.call(*CONTROL)
    ids = ("-o", str(developer.uid), "-g", str(developer.uid))
    run(["install", "-d", "-m", "0700", *ids, state], check=True)
    run(["cp", "-a", os.path.join(developer.home, ".local/state/wp-codebox/templates"), state], check=True)


@contextlib.contextmanager
def directory(developer, name, **files):
    """Creates a directory in the home of the developer with these files."""
    path = os.path.join(developer.home, name)
    os.makedirs(path)
    for file, text in files.items():
        with open(os.path.join(path, file.replace("__", ".")), "w", encoding="utf-8") as out:
            out.write(text)
    developer.own(path)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def mounted_at(developer, cwd):
    """Returns the standard error of a command in `cwd`, which says which directory is mounted at which guest path."""
    return developer.call(*CONTROL, cwd=cwd).stderr


def test_directory_that_is_neither_plugin_nor_theme_nor_site_is_mounted_as_a_workspace(developer):
    with directory(developer, "notes", a__txt="text") as path:
        must("/workspace/notes" in mounted_at(developer, path), mounted_at(developer, path))
        developer.call("Add a line", "--agent-command", "sh -c 'echo more >> a.txt'", cwd=path)
        must(developer.read(os.path.join(path, "a.txt")) == "text", "a run changed the directory")
        developer.call("apply", cwd=path)
        must(developer.read(os.path.join(path, "a.txt")) == "textmore\n", "not applied")


def test_unreadable_directory_is_refused_and_the_error_names_it(developer):
    with directory(developer, "closed", closed__php=PLUGIN) as path:
        # Others may enter the directory, but not list it.
        os.chown(path, 0, 0), os.chmod(path, 0o711)
        for call in (["run", "--mount", path, *AGENT], GOAL, CONTROL):
            words = [call[0], "--json", *call[1:]]
            refused(developer.call(*words, cwd=path, check=None), "wp_codebox_mount_unreadable", path, "read access")
        developer.own(path)
        must("/plugins/closed" in mounted_at(developer, path), "the control failed")


def test_unreadable_file_of_a_plugin_is_refused_and_the_error_names_it(developer):
    with directory(developer, "part", part__php=PLUGIN, secret__txt="x") as path:
        os.chown(os.path.join(path, "secret.txt"), 0, 0), os.chmod(os.path.join(path, "secret.txt"), 0o600)
        refused(developer.call(*GOAL, "--json", cwd=path, check=None), "wp_codebox_mount_unreadable", "secret.txt", "read access")
        developer.own(path)
        must("/plugins/part" in mounted_at(developer, path), "the control failed")


def test_directory_with_two_plugins_is_refused_unless_one_is_named_like_the_directory(developer):
    other = PLUGIN.replace("Hello", "Other")
    with directory(developer, "two", one__php=PLUGIN, other__php=other) as path:
        refused(developer.call(*GOAL, "--json", cwd=path, check=None), "wp_codebox_input_invalid", "one.php and other.php", "name the directory like the main file")
        os.rename(os.path.join(path, "other.php"), os.path.join(path, "two.php"))
        must('"Other"' in mounted_at(developer, path), mounted_at(developer, path))


def test_symlinked_project_is_mounted_as_its_target(developer):
    link = os.path.join(developer.home, "link")
    os.symlink(developer.plugin, link)
    developer.own(link)
    must("/wordpress/wp-content/plugins/hello" in mounted_at(developer, link), mounted_at(developer, link))
    developer.call(*GOAL, cwd=link)
    developer.call("apply", cwd=link)
    must("'hello'" in developer.read() and os.path.islink(link), developer.read())
    # The change was applied through the symlink; `undo` in the directory itself finds it.
    developer.call("undo")
    must(developer.read() == PLUGIN, developer.read())
    os.remove(link)


class Disk:
    """A file system in memory, in the mount namespace of the developer."""

    def __init__(self, developer, path):
        self.path, self.inside = path, developer.prefix[:4]

    def run(self, *arguments, check=True):
        return subprocess.run([*self.inside, *arguments], check=check, capture_output=True)

    @contextlib.contextmanager
    def full(self):
        filler = os.path.join(self.path, "filler")
        must(b"No space left" in self.run("dd", "if=/dev/zero", f"of={filler}", "bs=64k", check=False).stderr, "the disk is not full")
        yield
        self.run("rm", filler)


@contextlib.contextmanager
def disk(developer, *options):
    """Yields a disk that belongs to the developer."""
    path = os.path.join(developer.home, "elsewhere")
    os.makedirs(path, exist_ok=True)
    developer.own(path)
    there = Disk(developer, path)
    ids = f"uid={developer.uid},gid={developer.uid},mode=700"
    there.run("mount", "-t", "tmpfs", "-o", ",".join((ids, *options)), "none", path)
    try:
        yield there
    finally:
        there.run("umount", "-l", path)


def test_run_with_a_home_on_a_read_only_disk_is_refused_and_the_error_names_it(developer):
    with disk(developer, "ro") as home:
        refused(developer.call(*GOAL, "--json", HOME=home.path, check=None), "wp_codebox_state_dir_invalid", home.path, "with --state")
        refused(developer.call("wordpress", "install", "--json", HOME=home.path, check=None), "wp_codebox_wordpress_unavailable", home.path, "make the directory writable")
    with disk(developer) as home:
        developer.call(*GOAL, HOME=home.path)
    must(developer.read() == PLUGIN, developer.read())


def test_first_run_on_a_full_disk_is_refused_and_succeeds_after_space_was_made(developer):
    developer.call(*CONTROL)
    with disk(developer, "size=300m") as state:
        with state.full():
            refused(developer.call(*GOAL, "--json", XDG_STATE_HOME=state.path, check=None), "wp_codebox_state_dir_invalid", "No space left", "check free space and permissions of the state directory")
        developer.call(*GOAL, XDG_STATE_HOME=state.path)
    with disk(developer, "size=1m") as state:
        refused(developer.call(*GOAL, "--json", XDG_STATE_HOME=state.path, check=None), "wp_codebox_bundle_write_failed", "was not started", "free some space")
    must(developer.read() == PLUGIN, developer.read())


def test_wordpress_install_on_a_full_disk_fails_and_succeeds_after_space_was_made(developer, origin):
    with disk(developer, "size=300m") as cache:
        place = {"XDG_CACHE_HOME": cache.path}
        developer.call("wordpress", "list", **place)
        with little_space(cache):
            refused(developer.call("wordpress", "install", "--json", check=None, **place), "wp_codebox_wordpress_unavailable", "No space left", f"free space on the disk of {cache.path}")
            must(json.loads(developer.call("wordpress", "list", "--json", **place).stdout)["cores"] == [], "a part of WordPress is listed")
        developer.call("wordpress", "install", **place)
        must(origin.version in developer.call("wordpress", "list", **place).stdout, "the control failed")


@contextlib.contextmanager
def little_space(cache):
    """Leaves room for directories on the disk, and none for an archive."""
    cache.run("mount", "-o", "remount,size=2m", cache.path)
    yield
    cache.run("mount", "-o", "remount,size=300m", cache.path)


def test_apply_and_undo_with_a_full_or_read_only_state_directory_change_nothing(developer):
    changed = PLUGIN.replace("helo", "hello")
    with disk(developer, "size=400m") as state:
        place = {"XDG_STATE_HOME": state.path}
        copy_template(developer, os.path.join(state.path, "wp-codebox"), lambda command, check: state.run(*command, check=check))
        developer.call(*GOAL, **place)
        for command, before, after in (("apply", PLUGIN, changed), ("undo", changed, PLUGIN)):
            with state.full():
                refused(developer.call(command, "--json", check=None, **place), "wp_codebox_apply_failed", "nothing was changed", "of the state directory if the error names a journal")
            state.run("mount", "-o", "remount,ro", state.path)
            refused(developer.call(command, "--json", check=None, **place), "wp_codebox_apply_failed", "nothing was changed", "remount the file system read-write")
            developer.call("log", **place)
            state.run("mount", "-o", "remount,rw", state.path)
            must(developer.read() == before, developer.read())
            developer.call(command, **place)
            must(developer.read() == after, developer.read())


def archive(developer, name, members, link=None):
    """Writes a zip with these members, and a symbolic link to /etc with the name `link`."""
    path = os.path.join(developer.home, name)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as out:
        for member, data in members.items():
            out.writestr(member, data)
        if link:
            entry = zipfile.ZipInfo(link)
            entry.create_system, entry.external_attr = 3, 0o120777 << 16
            out.writestr(entry, "/etc")
    return path


def truncated(path, size):
    with open(path, "ab") as file:
        file.truncate(size)
    return path


CORE = {"wordpress/wp-load.php": "<?php"}
RELEASE = "use a release"
#: What is wrong with an archive: the function that makes it, part of the error message, part of the next step.
ARCHIVES = {
    "truncated": (lambda d: truncated(archive(d, "bad.zip", {"wordpress/a.php": os.urandom(9000)}), 600), "is damaged", RELEASE),
    "no-archive": (lambda d: os.path.join(d.plugin, "hello.php"), "is not an archive", RELEASE),
    "too-large": (lambda d: truncated(os.path.join(d.home, "bad.zip"), ARCHIVE_LIMIT + 1), f"more than {ARCHIVE_LIMIT} bytes", RELEASE),
    "unpacks-too-large": (lambda d: archive(d, "bad.zip", {"wordpress/wp-load.php": b"\0" * (FILE_LIMIT + 1)}), f"more than {FILE_LIMIT} bytes", RELEASE),
    "parent-directory": (lambda d: archive(d, "bad.zip", {**CORE, "../evil.php": "<?php"}), '"../evil.php"', RELEASE),
    "absolute": (lambda d: archive(d, "bad.zip", {**CORE, f"{d.home}/evil.php": "<?php"}), '/evil.php"', RELEASE),
    "link": (lambda d: archive(d, "bad.zip", CORE, link="wordpress/wp-includes"), '"wordpress/wp-includes" in it is a link', RELEASE),
    "other-product": (lambda d: archive(d, "bad.zip", {"drupal/index.php": "<?php"}), "wp-load.php is missing", "the files must be at the top level"),
    "empty": (lambda d: archive(d, "bad.zip", {}), "wp-load.php is missing", "the files must be at the top level"),
}


@pytest.fixture(scope="module")
def intact_archive_is_accepted(developer):
    """Installs an intact archive, as the control of every refused one. It has the version that the cache already has, so the list stays equal."""
    developer.call(*CONTROL)
    before = developer.call("wordpress", "list", "--json").stdout
    developer.call("wordpress", "install", release(developer, os.path.join(developer.home, ".cache/wp-codebox/wordpress")), "--json")
    must(developer.call("wordpress", "list", "--json").stdout == before, "the control installed another version")


@pytest.mark.usefixtures("intact_archive_is_accepted")
@pytest.mark.parametrize("case", ARCHIVES)
def test_archive_that_is_not_a_wordpress_release_is_refused_and_installs_nothing(developer, case):
    make, cause, step = ARCHIVES[case]
    before = developer.call("wordpress", "list", "--json").stdout
    cache = os.path.join(developer.home, ".cache/wp-codebox/wordpress")
    entries = os.listdir(cache)
    path = make(developer)
    developer.own(path)
    refused(developer.call("wordpress", "install", path, "--json", check=None), "wp_codebox_wordpress_invalid", cause, step)
    must(developer.call("wordpress", "list", "--json").stdout == before, "something was installed")
    must("evil.php" not in str(list(os.walk(developer.home))) and os.listdir(cache) == entries, f"left behind: {os.listdir(cache)}")


def release(developer, cache):
    """Writes a zip with the core in this cache, and returns its path."""
    path = os.path.join(developer.home, "good.zip")
    version = next(name for name in os.listdir(cache) if name[0].isdigit())
    base = os.path.join(cache, version)
    with zipfile.ZipFile(path, "w", zipfile.ZIP_STORED) as out:
        for directory, _, names in os.walk(base):
            for name in names:
                member = os.path.join(directory, name)
                out.write(member, os.path.join("wordpress", os.path.relpath(member, base)))
    return path


def test_first_run_without_network_is_refused_and_the_error_says_what_to_do(developer, origin):
    nothing = {"WP_CODEBOX_CACHE_DIR": os.path.join(developer.home, "empty-cache"), "WP_CODEBOX_WORDPRESS_ORIGIN": "http://127.0.0.1:9"}
    answer = developer.call(*GOAL, "--json", check=None, **nothing)
    refused(answer, "wp_codebox_wordpress_unavailable", "cannot be reached", "wp-codebox wordpress install FILE.zip")
    must(developer.read() == PLUGIN, developer.read())
    developer.call(*GOAL, **{**nothing, "WP_CODEBOX_WORDPRESS_ORIGIN": origin.url})


def test_two_first_runs_at_once_install_wordpress_once_and_both_succeed(developer, origin, environment):
    place = {"WP_CODEBOX_CACHE_DIR": os.path.join(developer.home, "shared-cache"), "XDG_STATE_HOME": os.path.join(developer.home, "fresh-state")}
    asked, answers = len(origin.asked), []
    threads = [threading.Thread(target=lambda: answers.append(developer.call(*CONTROL, check=None, **place))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    must([(answer.returncode, answer.stdout) for answer in answers] == [(0, "1")] * 2, "\n".join(answer.stdout + answer.stderr for answer in answers))
    versions = os.path.join(place["WP_CODEBOX_CACHE_DIR"], "wordpress")
    must([name for name in os.listdir(versions) if name[0].isdigit()] == [origin.version], str(os.listdir(versions)))
    archives = [path for path in origin.asked[asked:] if path.endswith(".zip")]
    must(len(archives) == 1, f"downloaded {len(archives)} times: {origin.asked[asked:]}")
    for inner in ("", "wp-admin", "wp-includes"):
        whole = set(os.listdir(os.path.join(environment["CODEBOX_WORDPRESS"], inner))) - {"wp-config.php"}
        must(whole <= set(os.listdir(os.path.join(versions, origin.version, inner))), f"files are missing in {inner}")


@pytest.mark.parametrize("mode, cause", [(0o700, "Permission denied"), (0o755, "belongs to uid")], ids=["closed", "readable"])
def test_state_directory_of_another_user_is_refused(developer, mode, cause):
    state = os.path.join(developer.home, "of-another")
    os.makedirs(state)
    os.chown(state, developer.uid + 1, developer.uid + 1), os.chmod(state, mode)
    for call in (["php", "--state", state, "--json", "-r", "echo 1;"], ["log", "--state", state, "--json"], ["apply", "--state", state, "--json"]):
        answer = developer.call(*call, check=None)
        refused(answer, "wp_codebox_state_dir_invalid", cause, "a directory of your own with --state")
        must(state in json.loads(answer.stdout)["error"]["message"], answer.stdout)
    must(os.listdir(state) == [], "the directory of the other user was changed")
    developer.own(state), os.chmod(state, 0o700)
    copy_template(developer, state)
    developer.call("php", "--state", state, "-r", "echo 1;")
    remove_tree(state)


TAMPERED = {
    "patch": ("files/patch.diff", lambda text: text.replace("hello", "hacked"), "files/patch.diff"),
    "file": ("files/mounts/0/hello.php", lambda text: text.replace("hello", "hacked"), "files/mounts/0/hello.php"),
    "manifest": ("manifest.json", lambda text: text.replace('"createdAt": "2', '"createdAt": "1', 1), "manifest.json"),
    "unsigned": ("files/attestation.dsse.json", None, "files/attestation.dsse.json"),
}


@pytest.fixture(scope="module")
def good(developer):
    """Returns the run whose intact bundle is the control of every tampered one."""
    developer.call(*GOAL)
    return json.loads(developer.call("log", "--json").stdout)["runs"][0]["runId"]


@pytest.mark.parametrize("case", TAMPERED)
def test_tampered_or_unsigned_bundle_is_neither_shown_nor_applied(developer, good, case):
    member, change, cause = TAMPERED[case]
    path = os.path.join(json.loads(developer.call(*GOAL, "--json").stdout)["artifacts"]["directory"], member)
    with open(path, encoding="utf-8") as file:
        text = file.read()
    if change is None:
        os.remove(path)
    else:
        must(change(text) != text, f"{member} has nothing to change")
        with open(path, "w", encoding="utf-8") as file:
            file.write(change(text))
    refused(developer.call("diff", "--json", check=None), "wp_codebox_artifact_verification_failed", "its change is not shown", "run the task again")
    refused(developer.call("apply", "--json", check=None), "wp_codebox_artifact_verification_failed", cause, "discard it or run the task again")
    must(developer.read() == PLUGIN, developer.read())
    developer.call("apply", good)
    developer.call("undo")
    must(developer.read() == PLUGIN, developer.read())


def test_bundle_that_is_blocked_because_of_a_secret_is_not_applied(developer):
    token = "ghp_" + "Zz09" * 9
    leave = f"sh -c 'echo {token[:4]}\"\"{token[4:]} > secret.txt'"
    refused(developer.call("Leave a secret", "--json", "--agent-command", leave, check=None), "wp_codebox_secret_in_patch", "secret.txt", "remove it and run again")
    answer = developer.call("apply", "--json", check=None)
    must(answer.returncode != 0 and token not in answer.stdout, answer.stdout)
    must(not os.path.exists(os.path.join(developer.plugin, "secret.txt")) and developer.read() == PLUGIN, "the directory was changed")
    developer.call("Leave no secret", "--agent-command", leave.replace("ghp_", "abc_"))
    developer.call("apply")
    developer.call("undo")


def test_log_and_undo_name_a_change_whose_record_is_damaged_and_one_whose_directory_is_missing(developer):
    developer.call(*GOAL)
    change = json.loads(developer.call("apply", "--json").stdout)["change"]["id"]
    done, = glob.glob(os.path.join(developer.home, ".local/state/wp-codebox/sites/*/applies/*/done", change))
    record = os.path.join(done, "journal.json")
    with open(record, encoding="utf-8") as file:
        text = file.read()
    with open(record, "w", encoding="utf-8") as file:
        file.write(text[:100])
    log = developer.call("log", check=None)
    must(log.returncode != 0 and change in log.stderr and "restore it from a backup" in log.stderr, log.stdout + log.stderr)
    must("Fix the greeting" in log.stdout, log.stdout)
    refused(developer.call("undo", "--json", check=None), "wp_codebox_apply_failed", change, "wp-codebox undo CHANGE")
    with open(record, "w", encoding="utf-8") as file:
        file.write(text)
    developer.call("log")
    # The state of a change that was interrupted while it exchanged paths, and whose directory was then removed.
    interrupted = os.path.join(os.path.dirname(os.path.dirname(done)), "open", change)
    shutil.copytree(done, interrupted)
    developer.own(interrupted)
    os.rename(os.path.join(interrupted, "exchanged"), os.path.join(interrupted, "begin.json"))
    with open(os.path.join(interrupted, "journal.json"), "w", encoding="utf-8") as file:
        file.write(text.replace(developer.plugin, developer.plugin + "-removed"))
    told = developer.call("log").stderr
    must(f"the interrupted change {change} was put back, except in {developer.plugin}-removed" in told, told)
    must("Warning" not in developer.call("log").stderr, "the warning is repeated")
    developer.call("undo")
    must(developer.read() == PLUGIN, developer.read())
    shutil.rmtree(interrupted)
