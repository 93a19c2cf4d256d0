"""What a developer may come with: directories, homes, archives and bundles that cannot be used. Each refusal has a control beside it."""

import contextlib
import json
import os
import shutil
import subprocess
import threading
import zipfile

from harness import must
from harness.developer import PLUGIN

GOAL = ("Fix the greeting", "--agent-command", "sed -i s/helo/hello/ hello.php")
CONTROL = ("php", "-r", "echo 1;")


def refused(answer, code, *parts):
    """Checks the error of a call with --json, and that it says each part."""
    must(answer.returncode != 0, answer.stdout + answer.stderr)
    error = json.loads(answer.stdout)["error"]
    told = " ".join([error["message"], *error.get("hints", [])])
    must(error["code"] == code and all(part in told for part in parts), json.dumps(error))


def own(developer):
    subprocess.run(["chown", "-R", "-h", f"{developer.uid}:{developer.uid}", developer.home], check=True)


@contextlib.contextmanager
def directory(developer, name, **files):
    """Creates a directory in the home of the developer with these files."""
    path = os.path.join(developer.home, name)
    os.makedirs(path)
    for file, text in files.items():
        with open(os.path.join(path, file.replace("__", ".")), "w", encoding="utf-8") as out:
            out.write(text)
    own(developer)
    yield path
    shutil.rmtree(path, ignore_errors=True)


def mounted_at(developer, cwd):
    """Returns what the command says about the mounted directory."""
    return developer.call(*CONTROL, cwd=cwd).stderr


def test_directory_that_is_neither_plugin_nor_theme_nor_site_is_mounted_as_a_workspace(developer):
    with directory(developer, "notes", a__txt="text") as path:
        must("/workspace/notes" in mounted_at(developer, path), mounted_at(developer, path))


def test_unreadable_directory_is_refused_by_its_name(developer):
    with directory(developer, "closed", a__txt="text") as path:
        os.chown(path, 0, 0), os.chmod(path, 0o700)
        refused(developer.call("run", "--json", "--mount", path, "--agent-command", "true", check=None), "wp_codebox_mount_unreadable", path)
        own(developer)
        developer.call("run", "--mount", path, "--agent-command", "true")


def test_directory_with_two_plugins_is_refused_or_names_the_chosen_one(developer):
    other = PLUGIN.replace("Hello", "Other")
    with directory(developer, "two", one__php=PLUGIN, other__php=other) as path:
        answer = developer.call(*CONTROL, cwd=path, check=None)
        said = answer.stderr
        must("one.php" in said and "other.php" in said or "/workspace/two" in said, said)


def test_symlinked_project_is_mounted_as_its_target(developer):
    link = os.path.join(developer.home, "link")
    os.symlink(developer.plugin, link)
    own(developer)
    must("/wordpress/wp-content/plugins/hello" in mounted_at(developer, link), mounted_at(developer, link))
    os.remove(link)


@contextlib.contextmanager
def disk(developer, *options):
    """Yields a state directory on another file system, in the mount namespace of the developer."""
    state = os.path.join(developer.home, "elsewhere")
    os.makedirs(state, exist_ok=True)
    own(developer)
    inside = developer.prefix[:4]
    ids = f"uid={developer.uid},gid={developer.uid},mode=700"
    subprocess.run([*inside, "mount", "-t", "tmpfs", "-o", ",".join((ids, *options)), "none", state], check=True)
    try:
        yield state
    finally:
        subprocess.run([*inside, "umount", "-l", state], check=True)


def test_home_on_a_read_only_disk_is_refused_and_names_the_directory(developer):
    with disk(developer, "ro") as state:
        refused(developer.call("php", "--json", "-r", "echo 1;", XDG_STATE_HOME=state, check=None), "wp_codebox_state_dir_invalid", state)
    with disk(developer) as state:
        developer.call(*CONTROL, XDG_STATE_HOME=state)


def test_home_on_a_full_disk_is_refused_and_says_so(developer):
    with disk(developer, "size=64k") as state:
        answer = developer.call("php", "--json", "-r", "echo 1;", XDG_STATE_HOME=state, check=None)
        must(answer.returncode != 0 and "space" in answer.stdout + answer.stderr, answer.stdout + answer.stderr)


def archive(developer, name, members):
    path = os.path.join(developer.home, name)
    with zipfile.ZipFile(path, "w") as out:
        for member, text in members.items():
            out.writestr(member, text)
    own(developer)
    return path


def test_archives_that_are_no_wordpress_release_are_refused_and_install_nothing(developer):
    developer.call(*CONTROL)
    before = developer.call("wordpress", "list", "--json").stdout
    damaged = archive(developer, "damaged.zip", {"wordpress/a.php": "x" * 10_000})
    with open(damaged, "r+b") as file:
        file.truncate(600)
    for path in (damaged, archive(developer, "product.zip", {"drupal/index.php": "<?php"}), archive(developer, "hostile.zip", {"../evil.php": "<?php", "wordpress/wp-load.php": ""}),
                 archive(developer, "absolute.zip", {"/etc/evil.php": "<?php", "wordpress/wp-load.php": ""}), archive(developer, "empty.zip", {})):
        answer = developer.call("wordpress", "install", path, "--json", check=None)
        refused(answer, "wp_codebox_wordpress_invalid")
        must(not os.path.exists(os.path.join(developer.home, "evil.php")), path)
    must(developer.call("wordpress", "list", "--json").stdout == before, "something was installed")


def test_without_network_the_first_run_is_refused_with_what_to_do(developer):
    nothing = {"WP_CODEBOX_CACHE_DIR": os.path.join(developer.home, "empty-cache"), "WP_CODEBOX_WORDPRESS_ORIGIN": "http://127.0.0.1:9"}
    refused(developer.call(*GOAL, "--json", check=None, **nothing), "wp_codebox_wordpress_unavailable", "wordpress install")
    must(developer.read() == PLUGIN, developer.read())
    developer.call(*CONTROL)


def test_two_first_runs_at_once_install_wordpress_once_and_both_succeed(developer, origin):
    place = {"WP_CODEBOX_CACHE_DIR": os.path.join(developer.home, "shared-cache"), "XDG_STATE_HOME": os.path.join(developer.home, "fresh-state")}
    answers = []
    threads = [threading.Thread(target=lambda: answers.append(developer.call(*CONTROL, check=None, **place))) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    must([(answer.returncode, answer.stdout) for answer in answers] == [(0, "1")] * 2, "\n".join(answer.stdout + answer.stderr for answer in answers))
    versions = os.listdir(os.path.join(place["WP_CODEBOX_CACHE_DIR"], "wordpress"))
    must([name for name in versions if name[0].isdigit()] == [origin.version], str(versions))


def test_state_directory_of_another_user_is_refused(developer):
    state = os.path.join(developer.home, "of-root")
    os.makedirs(state, 0o700)
    refused(developer.call("php", "--json", "--state", state, "-r", "echo 1;", check=None), "wp_codebox_state_dir_invalid", state)
    own(developer)
    developer.call("php", "--state", state, "-r", "echo 1;")
    shutil.rmtree(state)


def bundle(developer, answer):
    """Returns the directory of the bundle of a run with --json."""
    return json.loads(answer.stdout)["artifacts"]["directory"]


def test_bundle_that_was_tampered_with_or_has_no_signature_is_not_applied(developer):
    for member, change, code in (("files/patch.diff", lambda text: text.replace("hello", "hacked"), "wp_codebox_artifact_verification_failed"),
                                 ("files/attestation.dsse.json", None, "wp_codebox_artifact_")):
        path = os.path.join(bundle(developer, developer.call(*GOAL, "--json")), member)
        with open(path, encoding="utf-8") as file:
            text = file.read()
        if change is None:
            os.remove(path)
        else:
            with open(path, "w", encoding="utf-8") as file:
                file.write(change(text))
        error = json.loads(developer.call("apply", "--json", check=None).stdout)["error"]
        must(error["code"].startswith(code) and developer.read() == PLUGIN, json.dumps(error))
    developer.call(*GOAL)
    developer.call("apply")
    developer.call("undo")


def test_bundle_that_is_blocked_because_of_a_secret_is_not_applied(developer):
    token = "ghp_" + "Zz09" * 9
    developer.call("Leave a secret", "--agent-command", f"sh -c 'echo {token[:4]}\"\"{token[4:]} > secret.txt'", check=None)
    answer = developer.call("apply", "--json", check=None)
    must(answer.returncode != 0 and token not in answer.stdout and not os.path.exists(os.path.join(developer.plugin, "secret.txt")), answer.stdout)
