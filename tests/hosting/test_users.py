"""`wp-codebox users`: the state directories, and the group of the runner socket."""

import json
import os
import pwd
import shutil
import subprocess

import pytest

from hosting import GROUP, OUTSIDER, STATES, USERS, call
from harness import must, poll_until
from harness.callers import setpriv

NAME = "later"


@pytest.fixture(name="later")
def user_without_state(hosting):
    """A user that the command does not know yet. Returns the path of its state directory."""
    must(call("useradd", "--system", "--user-group", "--no-create-home", NAME).returncode == 0, "no user")
    state = os.path.join(STATES, NAME)
    yield state
    for pid in hosting_processes():
        os.kill(pid, 9)
    call("userdel", NAME)
    if os.path.islink(state) or os.path.isfile(state):
        os.unlink(state)
    shutil.rmtree(state, ignore_errors=True)


def hosting_processes():
    try:
        uid = pwd.getpwnam(NAME).pw_uid
    except KeyError:
        return []
    return [int(pid) for pid in filter(str.isdigit, os.listdir("/proc")) if os.path.exists(f"/proc/{pid}") and os.stat(f"/proc/{pid}").st_uid == uid]


def facts(path):
    stat = os.lstat(path)
    return stat.st_uid, stat.st_gid, stat.st_mode, sorted(os.listdir(path)) if os.path.isdir(path) else None


def rows(hosting):
    return {row["name"]: row for row in json.loads(hosting.users("list", "--json").stdout)["users"]}


def test_user_gets_a_private_state_directory_and_the_group_and_a_second_call_changes_nothing(hosting, later):
    first = hosting.users("add", NAME)
    must(later in first.stdout and "php*-fpm" in first.stderr and "wp_codebox.runner_socket = /run/wp-codebox/runner.sock" in first.stderr, str(first))
    account = pwd.getpwnam(NAME)
    must(facts(later) == (account.pw_uid, account.pw_gid, 0o40700, []), str(facts(later)))
    must(GROUP in call("id", "-Gn", NAME).stdout.split(), "not in the group")
    stat = os.stat(STATES)
    must((stat.st_uid, stat.st_mode) == (0, 0o40755), str(stat))
    open(os.path.join(later, "kept"), "w", encoding="utf-8").close()
    hosting.users("add", NAME)
    must(facts(later)[3] == ["kept"] and rows(hosting)[NAME] == {"name": NAME, "uid": account.pw_uid, "may_connect": True, "state_dir": later, "state_owner": account.pw_uid}, str(rows(hosting)))
    # Without its own request the state stays.
    must("kept" in hosting.users("remove", NAME).stdout, "nothing is said about the state")
    must(facts(later)[3] == ["kept"] and not rows(hosting)[NAME]["may_connect"], str(rows(hosting)))
    hosting.users("remove", NAME, "--delete-state")
    must(not os.path.exists(later) and NAME not in rows(hosting), "the state is left")


def test_link_file_and_directory_of_another_user_in_the_place_of_a_state_directory_are_refused(hosting, later):
    victim = os.path.join(STATES, USERS[0])
    before = facts(victim)
    for make in (lambda: os.symlink(victim, later), lambda: os.symlink(USERS[0], later), lambda: open(later, "w", encoding="utf-8").close(), lambda: os.mkdir(later, 0o700)):
        make()
        here = facts(later)
        said = hosting.users("add", NAME, expect=125)
        must("wp_codebox_state_dir_invalid" in said.stderr and later in said.stderr, said.stderr)
        must(facts(later) == here and facts(victim) == before, "something changed")
        must(GROUP not in call("id", "-Gn", NAME).stdout.split(), "a refused user got the group")
        os.rmdir(later) if os.path.isdir(later) and not os.path.islink(later) else os.unlink(later)
    # A directory of another user, which has the name of this one.
    os.mkdir(later, 0o700)
    os.chown(later, before[0], before[1])
    must("must belong to" in hosting.users("add", NAME, expect=125).stderr, "another user's directory is accepted")
    os.rmdir(later)
    hosting.users("add", NAME)


def test_unknown_names_root_and_callers_without_root_are_refused(hosting):
    names = set(os.listdir(STATES))
    for name in ("no-such-user", "0", "../x", ".", "a/b", ""):
        must("wp_codebox_input_invalid" in hosting.users("add", name, expect=1).stderr, name)
        must("wp_codebox_input_invalid" in hosting.users("remove", name, "--delete-state", expect=1).stderr, name)
    must("name the user that PHP runs as" in hosting.users("add", "root", expect=1).stderr, "root")
    for words in (("add", OUTSIDER), ("remove", USERS[0], "--delete-state")):
        must("wp_codebox_forbidden" in hosting.users(*words, user=USERS[0], expect=126).stderr, str(words))
    must(set(os.listdir(STATES)) == names, "a refused call made a directory")
    # Every user may list.
    must(json.loads(hosting.users("list", "--json", user=USERS[0]).stdout)["users"], "no list")


def test_state_is_deleted_only_when_no_process_of_the_user_runs(hosting, later):
    hosting.users("add", NAME)
    os.symlink(os.path.join(STATES, USERS[0]), os.path.join(later, "link"))
    before = facts(os.path.join(STATES, USERS[0]))
    process = subprocess.Popen([*setpriv(NAME), "sleep", "60"])
    uid = pwd.getpwnam(NAME).pw_uid
    poll_until(lambda: os.stat(f"/proc/{process.pid}").st_uid == uid, what="the process keeps root")
    said = hosting.users("remove", NAME, "--delete-state", expect=125)
    must("wp_codebox_busy" in said.stderr and str(process.pid) in said.stderr, said.stderr)
    must(os.path.isdir(later) and rows(hosting)[NAME]["may_connect"], "a refused call changed something")
    process.kill()
    process.wait()
    # Also of a user who is gone: another one may get the uid.
    must(call("userdel", NAME).returncode == 0, "userdel")
    must(rows(hosting)[NAME]["uid"] is None, "no row")
    hosting.users("remove", NAME, "--delete-state")
    must(not os.path.lexists(later) and facts(os.path.join(STATES, USERS[0])) == before, "the target of a link changed")


def test_state_directory_in_the_place_of_all_state_directories_is_named_with_the_way_to_move_it(hosting):
    os.chown(STATES, pwd.getpwnam(USERS[0]).pw_uid, -1)
    os.chmod(STATES, 0o700)
    try:
        said = hosting.users("add", OUTSIDER, expect=125).stderr
        must("is itself the state directory of uid" in said and f"mv {STATES}.old {STATES}/USER" in said, said)
    finally:
        os.chown(STATES, 0, -1)
        os.chmod(STATES, 0o755)
    must(not os.path.exists(os.path.join(STATES, OUTSIDER)), "a refused call made a directory")
