"""A plugin that is a single file runs in a sandbox, is kept as a bundle, opened again and applied."""

import hashlib
import json
import os

import pytest
from page import claimed_digest, command, digest_of_changes, keep, running, shot, visit, write

from harness import must

FILE = "wp-content/plugins/single.php"
CODE = """<?php
/* Plugin Name: Single file */
add_action( 'wp_footer', static function () {
	echo '<p class="single">Single file of the parent</p>';
} );
"""
SINGLE = "document.querySelector('.single')?.textContent"


@pytest.fixture
def single(keeper):
    """A plugin of a single file on the parent."""
    keeper.write(FILE, CODE)
    keeper.wp("plugin", "activate", "single")
    yield CODE.replace("of the parent", "of the bundle")
    keeper.wp("plugin", "deactivate", "single")
    os.unlink(keeper.path("site", FILE))


def test_edit_of_a_single_file_plugin_is_stored_as_a_bundle_opened_again_and_applied(keeper, single, browser):
    visitor = keeper.login("admin")
    page = browser.page()
    page.cookies(keeper.url, visitor.cookies)
    others = sorted(os.listdir(keeper.path("site/wp-content/plugins")))
    try:
        must("slug=single.php&" in visitor.get("/wp-admin/admin.php?page=wp-codebox-browser").text.replace("&#038;", "&"), "the list lacks the plugin")
        page.go(keeper.url + "/wp-admin/plugins.php")
        page.go(page.evaluate("document.querySelector('tr[data-plugin=\"single.php\"] a[href*=\"wp-codebox-browser\"]').href") + "&new=1")
        running(page)
        must(page.frame("/site/", SINGLE) == "Single file of the parent", "the plugin does not run")
        must(command(page, ["pwd"])[1] == "/wordpress/wp-content/plugins\n", "working directory")
        write(page, "single.php", single)
        write(page, "beside.php", "<?php // no file of the session")
        visit(page, "/?edited")
        page.frame("/site/", SINGLE + " === 'Single file of the bundle'")
        page.wait("[...document.querySelectorAll('[role=tab]')].some((tab) => tab.textContent.includes('(1)'))")
        shot(page, "single-file")
        artifact = keep(page)
        found = json.loads(keeper.wp("--user=admin", "codebox", "artifacts", "get", artifact, "--format=json"))["artifact"]
        changed = found["changed_files"]["files"]
        must([(row["path"], row["status"]) for row in changed] == [("/wordpress/wp-content/plugins/single.php", "modified")], str(changed))
        must(claimed_digest(found) == digest_of_changes(found), f"the page's digest is another one: {found['metadata']['provenance']}")
        review = page.evaluate("document.querySelector('.wp-codebox-keep a').href")
        page.go(review)
        page.wait("document.querySelector('a[href*=\"kind=bundle\"]') !== null")
        page.go(page.evaluate("document.querySelector('a[href*=\"kind=bundle\"]').href"))
        running(page)
        must(page.frame("/site/", SINGLE) == "Single file of the bundle", "the bundle's change is not in the sandbox")
    finally:
        page.close()
    refused = keeper.wp("--user=admin", "codebox", "artifacts", "apply", artifact, "--all", check=False)
    must(refused.returncode != 0 and "wp_codebox_apply_browser_origin_unconfirmed" in refused.stdout + refused.stderr, f"{refused.stdout} {refused.stderr}")
    must(keeper.read(FILE) == CODE, "the site changed")
    applied = json.loads(keeper.wp("--user=admin", "codebox", "artifacts", "apply", artifact, "--all", "--confirm-browser-origin", "--format=json"))
    must(applied["result"]["status"] == "applied", json.dumps(applied["result"]))
    must(hashlib.sha256(keeper.read(FILE).encode()).hexdigest() == hashlib.sha256(single.encode()).hexdigest(), "the file has other contents")
    must(sorted(os.listdir(keeper.path("site/wp-content/plugins"))) == others, "another file changed")
