"""A sandbox in a stock Chromium, opened from wp-admin as its user does it."""

import re

from page import BANNER, command, open_banner, running, shot, visit

from harness import must


def test_plugin_opened_from_the_plugins_page_runs_with_its_style_and_script_and_without_foreign_requests(installed, opened):
    seen = opened.seen
    must(seen["palette"], "the command palette of WordPress is not on the page")
    must(seen["text"] == "Banner of the parent", seen["text"])
    must(seen["color"] == "rgb(1, 2, 3)", "style")
    must(seen["script"] == "script", "script")
    # Chromium itself asks its maker for hints; no page causes these requests.
    asked = [line for line in seen["trapped"] if not re.search(r"^\w+ (https?://)?([^/:]+\.)?(google|googleapis|gstatic|gvt1)\.com[:/]", line)]
    must(asked == [], str(asked))
    foreign = [url for url in seen["requests"] if not url.startswith((installed.url + "/", "data:", "blob:", "about:", "chrome"))]
    must(foreign == [], str(foreign[:5]))
    must(len([url for url in seen["requests"] if "/wp-codebox/v1/browser-file/" in url]) >= 2, "positive control: the archives were requested")


def test_dashboard_of_the_sandbox_opens_after_login(sandbox):
    visit(sandbox, "/wp-admin/")
    title = sandbox.frame("/site/", "document.querySelector('#wpadminbar, #loginform') && document.title")
    if "Log In" in title:
        sandbox.frame("/site/", "document.querySelector('#user_login').value = 'admin', document.querySelector('#user_pass').value = 'password', document.querySelector('#loginform').requestSubmit(), true")
    must(sandbox.frame("/site/", "document.querySelector('#dashboard-widgets') && document.title.includes('Dashboard')"), "dashboard")
    shot(sandbox, "dashboard")


def test_edit_of_a_file_shows_in_the_sandbox_and_not_on_the_site(installed, sandbox):
    before = installed.read("wp-content/plugins/banner/banner.php")
    code, out = command(sandbox, ["cat", "banner.php"])
    must(code == 0 and "Banner of the parent" in out, out)
    text = before.replace("Banner of the parent", "Banner of the sandbox")
    sandbox.evaluate(f"window.wpCodeboxBrowser.events.emit({{type: 'SYSTEM_FILE_SYNC', payload: {{path: 'banner.php', content: {text!r}}}}})")
    code, out = command(sandbox, ["cat", "banner.php"])
    must("Banner of the sandbox" in out, out)
    visit(sandbox, "/?again")
    sandbox.frame("/site/", BANNER + " === 'Banner of the sandbox'")
    shot(sandbox, "edited")
    must(installed.read("wp-content/plugins/banner/banner.php") == before, "the site changed")
    must("Banner of the parent" in installed.login("admin").get("/").text, "the site shows the edit")


PROBES = {
    "page of wp-admin": "parent.parent.document.title",
    "cookies": "document.cookie",
    "storage": "localStorage.setItem('probe', '1'), localStorage.getItem('probe')",
    "database": "new Promise((done, fail) => { const open = indexedDB.open('wp-codebox-browser'); open.onsuccess = () => done('open'); open.onerror = () => fail(open.error); })",
    "caches": "caches.keys().then((keys) => keys.length)",
    "request with cookies": "fetch('/wp-admin/profile.php', {credentials: 'include'}).then((answer) => answer.text()).then((text) => text.includes('user_login') && text.includes('admin@example.org') ? 'read' : Promise.reject(new Error('not read')))",
}


def probe(expression):
    return f"Promise.resolve().then(() => ({expression})).then((value) => 'reached:' + value, (error) => 'blocked:' + error.name)"


def test_documents_of_the_sandbox_reach_neither_page_nor_cookies_nor_storage_of_the_site(installed, admin, sandbox):
    admin.go(installed.url + "/wp-admin/plugins.php")
    # Control: a frame of the site itself, without the sandbox, reaches all of it.
    admin.evaluate("""new Promise((done) => { const outer = document.createElement('iframe'); outer.src = '/?control'; outer.onload = () => {
        const inner = outer.contentDocument.createElement('iframe'); inner.src = '/?control-inner'; inner.onload = () => done(true);
        outer.contentDocument.body.append(inner); }; document.body.append(outer); document.cookie = 'probe=site;path=/'; })""")
    for name, expression in PROBES.items():
        must(admin.frame("?control-inner", probe(expression)).startswith("reached:"), f"positive control: {name}")
    must("probe=site" in admin.frame("?control-inner", "document.cookie"), "positive control: the cookie of the site")
    must(sandbox.frame("/site/", "self.origin") == "null", "the origin is not opaque")
    must(sandbox.evaluate("document.cookie").count("probe=site") == 1, "positive control: the cookie is still there")
    for name, expression in PROBES.items():
        found = sandbox.frame("/site/", probe(expression))
        if name == "storage" and found == "reached:1":
            # The engine gives opaque documents a storage in memory, which is not that of the site.
            sandbox.evaluate("localStorage.setItem('site-only', 'secret')")
            must(sandbox.frame("/site/", "String(localStorage.getItem('site-only'))") == "null", "the storage of the site")
        elif name == "cookies" and found.startswith("reached:"):
            must("probe=site" not in found and "wordpress_" not in found, found)
        else:
            must(found.startswith("blocked:"), f"{name}: {found}")


def test_reload_continues_the_session_with_its_edits(installed, other):
    session = other.evaluate("window.wpCodeboxBrowserPage.session.session_id")
    text = installed.read("wp-content/plugins/banner/banner.php").replace("Banner of the parent", "Banner after reload")
    other.evaluate(f"window.wpCodeboxBrowser.events.emit({{type: 'SYSTEM_FILE_SYNC', payload: {{path: 'banner.php', content: {text!r}}}}})")
    command(other, ["pwd"])
    other.wait("[...document.querySelectorAll('[role=tab]')].some((tab) => tab.textContent.includes('(1)'))")
    other.go(other.evaluate("location.href.replace(/&new=1/, '')"))
    running(other)
    must(other.evaluate("window.wpCodeboxBrowserPage.session.session_id") == session, "another session")
    other.frame("/site/", BANNER + " === 'Banner after reload'")


def test_file_added_in_one_of_two_running_sandboxes_is_not_in_the_other(sandbox, other):
    sandbox.evaluate("window.wpCodeboxBrowser.events.emit({type: 'SYSTEM_FILE_SYNC', payload: {path: 'only-here.txt', content: 'one'}})")
    must(command(sandbox, ["cat", "only-here.txt"])[0] == 0, "positive control")
    must(command(other, ["cat", "banner.php"])[0] == 0, "positive control: the second sandbox has files")
    must(command(other, ["cat", "only-here.txt"])[0] != 0, "the file is in both")


def test_sandbox_on_a_separate_host_has_its_own_origin_and_a_working_rest_api(installed, admin):
    host = f"http://localhost:{installed.port}"
    installed.configure({"WP_CODEBOX_BROWSER_HOST": host})
    try:
        open_banner(admin, installed)
        admin.frame("/site/", BANNER)
        must(admin.frame("/site/", "self.origin") == host, "origin")
        must(admin.frame("/site/", probe("parent.parent.document.title")).startswith("blocked:"), "the page of wp-admin")
        must("wordpress_" not in admin.frame("/site/", "document.cookie + ' '"), "cookies")
        name = admin.frame("/site/", "fetch(document.querySelector('link[rel=\"https://api.w.org/\"]').href).then((answer) => answer.json()).then((index) => index.namespaces.includes('wp/v2'))")
        must(name is True, str(name))
        shot(admin, "separate-host")
    finally:
        installed.configure({})
