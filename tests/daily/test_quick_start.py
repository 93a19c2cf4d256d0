"""The blocks of docs/quick-start.md, executed in their order."""

import os
import re
import shlex

from harness import must


def test_every_command_of_the_quick_start_succeeds(developer):
    path = os.path.join(os.path.dirname(__file__), "../../docs/quick-start.md")
    with open(path, encoding="utf-8") as file:
        blocks = re.findall(r"```sh\n(.*?)```", file.read(), re.S)
    must(len(blocks) >= 4, f"{len(blocks)} blocks")
    for line in "".join(blocks).splitlines():
        program, *arguments = shlex.split(line)
        must(program == "wp-codebox", line)
        # doctor reports what this machine lacks by its exit status.
        developer.call(*arguments, check=None if arguments == ["doctor"] else 0)
