"""What a visitor does on the page of a sandbox."""

import hashlib
import json
import os

from parent import Visitor

from harness import must

SHOTS = os.environ.get("CODEBOX_SHOTS")
#: Text of the fixture plugin on each page of the sandbox.
BANNER = "document.querySelector('.banner')?.textContent"


def shot(page, name):
    if SHOTS:
        page.screenshot(os.path.join(SHOTS, name + ".png"))


def link_of_banner(page, parent):
    """Returns the address of the link in the row of the plugin on the page of plugins."""
    page.go(parent.url + "/wp-admin/plugins.php")
    return page.evaluate("document.querySelector('tr[data-plugin=\"banner/banner.php\"] a[href*=\"wp-codebox-browser\"]').href")


def open_banner(page, parent, more="&new=1"):
    """Opens the plugin from the page of sandboxes, which the browser does not render, and waits until the sandbox runs."""
    visitor = Visitor(parent)
    visitor.cookies = page.login
    page.go(visitor.link("plugin", "banner") + more)
    running(page)


def running(page):
    page.wait("document.querySelector('.wp-codebox-address')?.disabled === false || document.querySelector('.wp-codebox-cover [role=alert], .notice-error')?.innerText", 180)
    trouble = page.evaluate("document.querySelector('.wp-codebox-address')?.disabled === false ? '' : document.querySelector('.wp-codebox-cover, .notice-error').innerText")
    must(trouble == "", f"{trouble}; console: {page.console()[-10:]}")


def visit(page, path):
    """Types an address into the bar above the frame."""
    page.evaluate(f"""(() => {{ const address = document.querySelector('.wp-codebox-address'); address.value = {path!r};
        address.form.requestSubmit(); }})()""")


def command(page, line):
    """Runs a command in the terminal through the bus of the page; returns its output and exit status."""
    name, *arguments = line
    return page.evaluate(f"""new Promise((done) => {{ const bus = window.wpCodeboxBrowser.events, id = 'case-' + Math.random(); let out = '';
        bus.subscribe('RUNTIME_OUTPUT', (e) => {{ if (e.event.payload.executionId === id) out += e.event.payload.data; }});
        bus.subscribe('RUNTIME_EXIT', (e) => {{ if (e.event.payload.executionId === id) done([e.event.payload.exitCode, out]); }});
        bus.emit({{type: 'AGENT_EXEC_CMD', payload: {{command: {name!r}, args: {arguments!r}, executionId: id}}}}); }})""")


def write(page, path, text):
    """Writes a file of the sandbox through the bus of the page, and waits until it is there."""
    page.evaluate(f"window.wpCodeboxBrowser.events.emit({{type: 'SYSTEM_FILE_SYNC', payload: {{path: {path!r}, content: {text!r}}}}})")
    code, out = command(page, ["cat", path])
    must(code == 0 and out.strip() == text.strip(), f"{path}: {out}")


def keep(page):
    """Presses "Keep as a bundle"; returns the id of the bundle."""
    page.wait("[...document.querySelectorAll('button')].some((button) => button.textContent.includes('Keep as a bundle') && !button.disabled)")
    page.evaluate("[...document.querySelectorAll('button')].find((button) => button.textContent.includes('Keep as a bundle')).click()")
    page.wait("document.querySelector('.wp-codebox-keep')?.innerText.match(/is stored|No bundle/)", 180)
    shown = page.evaluate("document.querySelector('.wp-codebox-keep').innerText")
    must("is stored" in shown, f"{shown}; console: {page.console()[-10:]}")
    return page.evaluate("document.querySelector('.wp-codebox-keep code').textContent")


def claimed_digest(artifact):
    """Returns the digest of the changes that the page computed."""
    return artifact["metadata"]["provenance"]["claims"]["provenance"]["changes_digest"]


def digest_of_changes(artifact):
    """Returns the digest that follows from the files of the bundle, as docs/browser-page.md defines it."""
    rows = [[file["path"], file.get("beforeSha256"), file.get("afterSha256")] for file in artifact["changed_files"]["files"]]
    return hashlib.sha256(json.dumps(rows, separators=(",", ":"), ensure_ascii=False).encode()).hexdigest()
