"""Isolation levels and floors: a run is refused with the name of the missing mechanism, and the bundle attests each guest.

tests/sandbox/withhold.c hides a mechanism from `wp-codebox` and its children and leaves the host
unchanged. The control makes the same call with nothing hidden.
"""

import json
import os
import subprocess

from harness import must, skip_unless_root

POLICY = {"network": "deny", "filesystem": "readwrite-mounts", "commands": ["command-agent-run"], "secrets": "none",
          "approvals": "never"}
AXES = ["files", "processes", "network", "syscalls", "privileges", "memory", "cpu", "pids", "disk", "identity"]


def with_policy(**more):
    return "--policy", json.dumps({**POLICY, **more})


def withhold(bench):
    program = os.path.join(bench.directory, "withhold")
    if not os.path.exists(program):
        source = os.path.join(os.path.dirname(__file__), "..", "sandbox", "withhold.c")
        subprocess.run(["cc", "-o", program, source], check=True)
    return program


def without(bench, mechanism, *arguments, as_owner=False):
    """Calls `wp-codebox` on a simulated host that lacks this kernel mechanism."""
    command = [withhold(bench), mechanism, bench.environment["CODEBOX"], *arguments]
    if as_owner and os.geteuid() == 0:
        status = os.stat(bench.state)
        command = ["/usr/bin/setpriv", f"--reuid={status.st_uid}", f"--regid={status.st_gid}", "--clear-groups", *command]
    process = subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={"PATH": "/usr/bin:/bin"})
    return bench.finish(command, process)


def agent_run(bench, *arguments):
    return bench.run_arguments("--mount", f"{bench.source()}:/workspace/plugin", "--agent-command", "touch new.txt", *arguments)


def test_run_is_refused_if_an_isolation_floor_of_its_policy_is_not_reached(bench):
    bench.agent("true", *with_policy(isolation_floors={"cpu": "best-effort", "files": "enforced"})).expect(0)
    answer = bench.agent("touch ran", *with_policy(isolation_floors={"cpu": "enforced"}))
    answer.expect(125, "wp_codebox_isolation_unavailable")
    error = answer.json["error"]
    must("axis cpu must be enforced but is best-effort" in error["message"], str(answer))
    must(any("isolation_floors.cpu" in hint for hint in error["hints"]), str(answer))
    must([row["axis"] for row in error["data"]["axes"]] == AXES, str(answer))
    must(error["data"]["missed"] == [{"axis": "cpu", "demanded": "enforced", "observed": "best-effort"}], str(answer))


def test_policy_with_an_unsupported_isolation_level_axis_or_floor_is_refused(bench):
    for more in ({"minimum_isolation": "none"}, {"isolation_floors": {"moon": "enforced"}},
                 {"isolation_floors": {"memory": "strict"}}):
        bench.agent("true", *with_policy(**more)).expect(126, "runtime-policy-invalid")
    bench.agent("true", *with_policy(minimum_isolation="full", isolation_floors={"memory": "not-enforced"})).expect(0)


def test_run_whose_policy_allows_level_reduced_has_level_full_if_the_machine_supports_it(bench):
    answer = bench.agent("true", *with_policy(minimum_isolation="reduced")).expect(0)
    must(answer.result["isolation"]["level"] == "full", str(answer))


def test_run_is_refused_if_the_kernel_lacks_an_isolation_mechanism(bench):
    for mechanism, text in (("deny:unshare", "unshare"), ("deny:landlock", "landlock"), ("deny:seccomp", "seccomp")):
        answer = without(bench, mechanism, *agent_run(bench)).expect(125, "wp_codebox_isolation_unavailable")
        error = answer.json["error"]
        must(text in error["message"] and error["hints"], str(answer))
        must([row["axis"] for row in error["data"]["axes"]] == AXES, str(answer))
        must(any(row["enforced"] != "enforced" and text in row["evidence"] for row in error["data"]["axes"]), str(answer))
    without(bench, "none", *agent_run(bench)).expect(0)


def test_doctor_names_the_missing_mechanism_and_its_fix(bench):
    if os.geteuid() != 0 and os.geteuid() != os.stat(bench.state).st_uid:
        skip_unless_root("the state directory belongs to somebody else")
    arguments = ["doctor", *bench.paths(), "--json"]
    whole = without(bench, "none", *arguments, as_owner=True).expect(0).json
    must(whole["level"] == "full" and [row["axis"] for row in whole["isolation"]["axes"]] == AXES, str(whole))
    checks = {check["id"]: check for check in whole["checks"]}
    for name in ["kernel", "landlock", "cgroups", "sandbox"] + ["axis-" + axis for axis in AXES]:
        must(name in checks, f"no check {name}: {whole}")
    must("cause" not in checks, str(whole))
    for mechanism, fix in (("namespaces:user", "user.max_user_namespaces"), ("proc", "systempaths=unconfined"),
                           ("deny:unshare", "packaging/container/seccomp.json")):
        answer = without(bench, mechanism, *arguments, as_owner=True)
        document = answer.json
        must(answer.exit == 1 and document["status"] == "error" and document["level"] in ("none", "reduced"), str(answer))
        fixes = [check["fix"] for check in document["checks"] if check["id"] == "cause"]
        must(any(fix in text for text in fixes), f"{mechanism}: {fixes}")
    # Doctor must not keep the level of an earlier probe: with nothing hidden it reports full again.
    must(without(bench, "none", *arguments, as_owner=True).expect(0).json["level"] == "full", "doctor still reports a reduced level")


def test_doctor_fails_below_the_required_level_like_a_run_of_that_level(bench):
    if os.geteuid() != 0 and os.geteuid() != os.stat(bench.state).st_uid:
        skip_unless_root("the state directory belongs to somebody else")
    arguments = ["doctor", *bench.paths(), "--json"]
    for level in ("full", "reduced"):
        without(bench, "none", *arguments, "--require", level, as_owner=True).expect(0)
    lacking = without(bench, "deny:unshare", *arguments, as_owner=True)
    must(lacking.exit == 1 and lacking.json["level"] == "reduced", str(lacking))
    must(without(bench, "deny:unshare", *arguments, "--require", "full", as_owner=True).exit == 1, "full is not required")
    without(bench, "deny:unshare", *arguments, "--require", "reduced", as_owner=True).expect(0)
    without(bench, "deny:unshare", *agent_run(bench)).expect(125, "wp_codebox_isolation_unavailable")
    must(without(bench, "deny:seccomp", *arguments, "--require", "reduced", as_owner=True).exit == 1, "level none passed the gate")
    must(bench.call("doctor", "--require", "none").exit != 0, "level none can be required")


def test_bundle_attests_the_isolation_of_each_guest(bench):
    answer = bench.agent("touch new.txt", "--check", "true", *with_policy(isolation_floors={"network": "enforced"})).expect(0)
    directory = answer.json["artifacts"]["directory"]
    path = os.path.join(directory, "files", "runtime-evidence", "run-attestation.json")
    with open(path, encoding="utf-8") as file:
        seen = json.load(file)
    must(seen["schema"] == "wp-codebox/run-attestation/v1" and seen["runId"] == answer.result["run_id"], str(seen))
    must([guest["phase"] for guest in seen["guests"]] == ["work", "check"], str(seen))
    must(seen["guests"][0]["report"] == answer.result["isolation"], "another report than the run's")
    must(seen["level"] == seen["minimumIsolation"] == "full" and seen["isolationFloors"] == {"network": "enforced"}, str(seen))
    with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
        must(seen["bootId"] == file.read().strip(), str(seen))
    must(seen["kernel"] == os.uname().release and seen["network"] == {"posture": "deny"}, str(seen))
    must(seen["exposedSecrets"] == [] and seen["limits"]["processes"] == 128, str(seen))
    verify = ("artifacts", "verify", "--bundle", directory, "--state", bench.state, "--json")
    bench.call(*verify).expect(0)
    seen["guests"][1]["report"]["level"] = "none"
    with open(path, "w", encoding="utf-8") as file:
        json.dump(seen, file)
    must(not bench.call(*verify).expect(1).json["valid"], "a changed attestation verifies")
