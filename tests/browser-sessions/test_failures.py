"""Failures between a real site and a real browser: each shows a message, and no stored edit is lost."""

import html
import json
import os
import re

from page import BANNER, command, link_of_banner, open_banner, running, visit
from parent import notices

from harness import must


REGISTERED = "navigator.serviceWorker.getRegistrations().then((all) => all.map((one) => one.scope).filter((scope) => scope.includes('/site/')))"


def test_sandbox_whose_tab_was_closed_during_its_boot_is_opened_again_with_the_same_session(installed, admin, browser, opened):
    link = link_of_banner(admin, installed)
    # The service worker of a sandbox that stays open.
    before = set(opened.evaluate(REGISTERED))
    # The tabs of a browser share cookies, so this one has the login for which the link was made.
    tab = browser.page()
    try:
        # No archive arrives, so the boot stands still when the service worker is registered.
        tab.session.send("Fetch.enable", {"patterns": [{"urlPattern": "*/browser-file/*"}]})
        tab.go(link + "&new=1")
        tab.wait(f"{REGISTERED}.then((all) => all.some((scope) => !{sorted(before)}.includes(scope)))")
        tab.wait("[...document.querySelectorAll('iframe')].some((frame) => frame.src.includes('remote.html'))")
        must(tab.evaluate("document.querySelector('.wp-codebox-address')?.disabled") is True, "positive control: the sandbox is not ready")
        session = tab.evaluate("window.wpCodeboxBrowserPage.session.session_id")
    finally:
        tab.close()
    admin.go(link)
    running(admin)
    must(admin.evaluate("window.wpCodeboxBrowserPage.session.session_id") == session, "another session")
    must(admin.frame("/site/", BANNER) == "Banner of the parent", "the front page")
    must(command(admin, ["cat", "banner.php"])[0] == 0, "commands")
    now = set(admin.evaluate(REGISTERED))
    must(len(now - before) == 1, "service workers of the closed tab stay")
    visit(opened, "/?again")
    opened.frame("/site/", "location.href.includes('?again')")


def test_full_storage_is_reported_in_the_terminal_and_the_sandbox_runs(installed, browser, opened):
    log = "document.querySelector('.wp-codebox-log').textContent"
    page = browser.page(own_storage=True)
    try:
        page.cookies(installed.url, installed.login("admin").cookies)
        page.session.send("Storage.overrideQuotaForOrigin", {"origin": installed.url, "quotaSize": 500000})
        open_banner(page, installed)
        must("wp_codebox_browser_storage_full" in page.evaluate(log), page.evaluate(log))
        must(page.frame("/site/", BANNER) == "Banner of the parent", "the front page")
    finally:
        page.close()
    must("wp_codebox_browser_storage_full" not in opened.evaluate(log), "positive control: with space")


def compose(keeper, session, size):
    """Stores a bundle of ten new files of that size, as the page's upload does; returns its id."""
    # PHP code in a file makes the files and passes all of them to the ability in one value.
    keeper.write("persist.php", f"""<?php
        $files = array_map( static fn( int $at ): array => [ 'path' => "plugins/banner/media/$at.bin", 'content_base64' => base64_encode( random_bytes( {size} ) ) ], range( 0, 9 ) );
        $stored = wp_get_ability( 'wp-codebox/persist-browser-artifact' )->execute( [ 'session_id' => '{session}', 'files' => $files ] );
        echo wp_json_encode( is_wp_error( $stored ) ? [ 'refused' => $stored->get_error_code() . ': ' . $stored->get_error_message() ] : [ 'artifact' => $stored['artifact_id'] ] );""")
    try:
        stored = json.loads(keeper.wp("--user=admin", "eval-file", keeper.path("site", "persist.php")))
    finally:
        os.remove(keeper.path("site", "persist.php"))
    must("artifact" in stored, json.dumps(stored))
    return stored["artifact"]


def test_bundle_of_ten_1_mb_files_opens_in_a_sandbox_and_one_of_ten_5_mb_files_is_refused_as_too_large(keeper):
    visitor = keeper.login("admin")
    session = visitor.open("plugin", "banner", "&new=1")["session"]["session_id"]
    screen = visitor.get("/wp-admin/tools.php?page=wp-codebox").text
    link = html.unescape(re.search(r'data-sandbox="([^"]+)"', screen).group(1))
    must("slug&" in link, link)
    small, large = (visitor.get(link.replace("slug&", f"slug={compose(keeper, session, size)}&")) for size in (1_000_000, 5_000_000))
    must("window.wpCodeboxBrowserPage =" in small.text, f"positive control: {notices(small)}")
    shown = " ".join(notices(large))
    must("window.wpCodeboxBrowserPage =" not in large.text and "wp_codebox_browser_seed_too_large" in shown, shown)
    must("too large for a browser sandbox, which takes at most 16 MB" in shown, shown)
