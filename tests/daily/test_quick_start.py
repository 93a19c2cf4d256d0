"""The blocks of docs/quick-start.md, executed in their order."""

import os
import re
import shlex

from harness import must

DOCUMENT = os.path.join(os.path.dirname(__file__), "../../docs/quick-start.md")


def test_every_command_of_the_quick_start_exits_with_its_documented_status(developer):
    with open(DOCUMENT, encoding="utf-8") as file:
        blocks = re.findall(r"```(sh|xml|php)\n(.*?)```", file.read(), re.S)
    must(len(blocks) >= 7, f"{len(blocks)} blocks")
    for language, text in blocks:
        if language != "sh":
            # The first line of a file names it.
            name = re.search(r"[\w./]+\.(xml\.dist|php)\b", text)[0]
            os.makedirs(os.path.join(developer.plugin, os.path.dirname(name)), exist_ok=True)
            developer.write(name, text.split("\n", 1)[1] if language == "xml" else text)
            continue
        for line in text.splitlines():
            program, *arguments = shlex.split(line, comments=True)
            must(program == "wp-codebox", line)
            status = re.search(r"# exit status (\d+)", line)
            # The exit status of doctor depends on what this machine lacks, so it is not checked.
            developer.call(*arguments, check=None if arguments == ["doctor"] else int(status[1]) if status else 0)
