"""A held sandbox (kept open after its setup), used from PHP through the extension."""

import json
import os
import shutil
import subprocess

HERE = os.path.dirname(os.path.abspath(__file__))


def test_php_extension_executes_programs_and_commands_in_a_held_sandbox(bench):
    e = os.environ
    source = os.path.join(bench.work, "asked")
    os.mkdir(source, 0o755)
    settings = {"state_dir": e["CODEBOX_STATE"], "share_dir": e["CODEBOX_SHARE"], "runner": e["CODEBOX"], "launcher": e["CODEBOX_LAUNCH"],
                "php_binary": e["CODEBOX_PHP"]}
    call = [e["CODEBOX_PHP"], "-d", f"extension={e['CODEBOX_SO']}"]
    for name, value in settings.items():
        call += ["-d", f"wp_codebox.{name}={value}"]
    # The script is copied, because the owner of the state directory may be unable to read the checkout.
    call += [shutil.copy(os.path.join(HERE, "ask.php"), bench.work), "php", source]
    if os.geteuid() == 0:
        shutil.chown(source, e["CODEBOX_OWNER"])
        # Run as the owner of the state directory, which may connect to its runs.
        owner = e["CODEBOX_OWNER"]
        call = ["setpriv", "--reuid", owner, "--regid", owner, "--clear-groups", *call]
    done = subprocess.run(call, capture_output=True, text=True, check=False, timeout=120, cwd="/")
    assert done.returncode == 0, done.stdout + done.stderr
    seen = json.loads(done.stdout)
    ended = seen["exec"]
    assert ended["code"] == 4 and ended["stdout"] == "words\nhttp://localhost\n" and ended["stderr"] == "", str(ended)
    assert seen["echoed"], "4 MiB of input did not come back"
    assert seen["status"]["schema"] == "wp-codebox/sandbox/v1" and seen["status"]["state"] in ("ready", "active"), str(seen["status"])
    assert seen["command"]["status"] == "ok" and seen["command"]["stdout"].strip() == "Codebox", str(seen["command"])
    assert seen["refused"] in ("wp_codebox_command_unknown", "runtime-command-disallowed"), str(seen)
    assert seen["outcome"] == "succeeded" and seen["changed"] == ["/workspace/p/new.txt"], str(seen)
    assert seen["afterwards"] == "wp_codebox_sandbox_not_held", str(seen)
