"""Executes the `run` steps of a composite action: a small part of what a GitHub runner does."""

import os
import re
import subprocess

EXPRESSION = re.compile(r"\$\{\{\s*(.*?)\s*\}\}")


def value(text, names):
    """Replaces expressions that are one name, such as inputs.job."""
    def known(match):
        if match[1] not in names:
            raise KeyError(f"unknown name {match[1]}")
        return names[match[1]]
    return EXPRESSION.sub(known, str(text))


def read_outputs(path):
    with open(path, encoding="utf-8") as file:
        return dict(line.rstrip("\n").split("=", 1) for line in file if "=" in line)


class Action:
    """One run of a composite action in a directory. Steps with `uses` are skipped; a failed step skips all steps without always()."""

    def __init__(self, document, path, machine, cwd, given):
        self.steps, self.outputs, self.status, self.log, self.summary = [], {}, 0, "", ""
        names = {f"inputs.{name}": str(row.get("default", "")) for name, row in document["inputs"].items()}
        for name, text in given.items():
            if f"inputs.{name}" not in names:
                raise KeyError(f"there is no input {name}")
            names[f"inputs.{name}"] = text
        names |= {"steps.cache.outcome": "success", "steps.cache.outputs.cache-hit": ""}
        for number, step in enumerate(document["runs"]["steps"]):
            always = "always()" in str(step.get("if", ""))
            if "run" not in step or (self.status and not always):
                continue
            files = {name: os.path.join(cwd, f".{name.lower()}-{number}") for name in ("GITHUB_OUTPUT", "GITHUB_STEP_SUMMARY")}
            for file in files.values():
                with open(file, "w", encoding="utf-8"):
                    pass
            env = {name: value(text, names) for name, text in step.get("env", {}).items()}
            # The command line of `shell: bash` on a GitHub runner.
            done = subprocess.run(["bash", "--noprofile", "--norc", "-eo", "pipefail", "-c", step["run"]], cwd=cwd, stdin=subprocess.DEVNULL,
                                  env={**machine.places, **env, **files, "GITHUB_ACTIONS": "true", "GITHUB_ACTION_PATH": os.path.dirname(path)},
                                  capture_output=True, text=True, timeout=300, check=False)
            self.steps.append(step["name"])
            self.log += done.stdout + done.stderr
            with open(files["GITHUB_STEP_SUMMARY"], encoding="utf-8") as file:
                self.summary += file.read()
            for name, text in read_outputs(files["GITHUB_OUTPUT"]).items():
                names[f"steps.{step.get('id')}.outputs.{name}"] = text
            self.status = self.status or done.returncode
        for name, row in document["outputs"].items():
            only = EXPRESSION.fullmatch(row["value"])[1]
            self.outputs[name] = names.get(only, "")
