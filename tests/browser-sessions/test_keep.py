"""An edit in the browser becomes a bundle that is reviewed, opened again, and applied after a further confirmation."""

import hashlib
import json
import os
import shutil
import subprocess

import pytest
from page import BANNER, claimed_digest, command, digest_of_changes, keep, open_banner, running, shot, write

from harness import must

PLUGIN = "wp-content/plugins/banner"
MORE = "<?php\n// Größe: 1 & 2, ends without a line end"


@pytest.fixture(scope="module")
def kept(keeper, browser):
    """An administrator's tab after "Keep as a bundle", the id of the bundle, and the hashes of the files in the sandbox."""
    visitor = keeper.login("admin")
    page = browser.page()
    page.cookies(keeper.url, visitor.cookies)
    open_banner(page, keeper)
    page.frame("/site/", BANNER)
    edited = keeper.read(f"{PLUGIN}/banner.php").replace("Banner of the parent", "Banner of the bundle")
    write(page, "banner.php", edited)
    write(page, "inc/more.php", MORE)
    must(command(page, ["rm", "banner.js"])[0] == 0, "banner.js cannot be deleted")
    page.wait("[...document.querySelectorAll('[role=tab]')].some((tab) => tab.textContent.includes('(3)'))")
    shot(page, "changes")
    artifact = keep(page)
    shot(page, "kept")
    review = page.evaluate("document.querySelector('.wp-codebox-keep a').href")
    hashes = {name: hashlib.sha256(text.encode()).hexdigest() for name, text in (("banner.php", edited), ("inc/more.php", MORE))}
    yield page, artifact, review, hashes
    page.close()


def artifacts(keeper, *arguments, check=True):
    return keeper.wp("--user=admin", "codebox", "artifacts", *arguments, check=check)


def test_edit_stored_from_the_browser_becomes_a_valid_bundle_with_signature_status_browser_origin(keeper, kept):
    _, artifact, _, _ = kept
    found = json.loads(artifacts(keeper, "inspect", artifact, "--format=json"))
    must(found["verification"]["valid"] and found["verification"]["signature"]["status"] == "browser-origin", json.dumps(found["verification"])[:800])
    must(keeper.read(f"{PLUGIN}/banner.php").count("Banner of the parent") == 1, "the site changed")


def test_patch_of_the_bundle_is_applied_by_git_and_gives_the_files_of_the_sandbox(keeper, kept, tmp_path):
    _, artifact, _, hashes = kept
    copy = tmp_path / "banner"
    shutil.copytree(keeper.path("site", PLUGIN), copy)
    patch = artifacts(keeper, "diff", artifact)
    done = subprocess.run(["git", "apply", "--unsafe-paths", "-"], cwd=copy, input=patch, text=True, capture_output=True, check=False,
                          env={**os.environ, "GIT_CEILING_DIRECTORIES": str(tmp_path)})
    must(done.returncode == 0, f"{done.stderr}\n{patch}")
    for name, sha256 in hashes.items():
        must(hashlib.sha256((copy / name).read_bytes()).hexdigest() == sha256, name)
    must(not (copy / "banner.js").exists() and (copy / "banner.css").exists(), "deleted file")


def test_page_and_host_compute_the_same_digest_of_the_changes(keeper, kept):
    _, artifact, _, _ = kept
    found = json.loads(artifacts(keeper, "get", artifact, "--format=json"))["artifact"]
    must(len(found["changed_files"]["files"]) == 3, str(found["changed_files"]))
    must(claimed_digest(found) == digest_of_changes(found), f"the page's digest is another one: {found['metadata']['provenance']}")


def test_bundle_opened_from_its_review_runs_its_change_in_a_new_sandbox(keeper, kept):
    page, _, review, _ = kept
    page.go(review)
    page.wait("document.querySelector('a[href*=\"kind=bundle\"]') !== null")
    shot(page, "review")
    must("browser" in page.evaluate("document.querySelector('#wpbody-content').innerText").lower(), "the review does not name the origin")
    page.go(page.evaluate("document.querySelector('a[href*=\"kind=bundle\"]').href"))
    running(page)
    must(page.frame("/site/", BANNER) == "Banner of the bundle", "the bundle's change is not in the sandbox")
    must(command(page, ["cat", "inc/more.php"])[1].startswith("<?php"), "the added file is missing")
    must(command(page, ["cat", "banner.js"])[0] != 0, "the deleted file is there")
    shot(page, "bundle")
    # One file is taken back to the code of the site, so the second bundle has the other two changes only.
    write(page, "banner.php", keeper.read(f"{PLUGIN}/banner.php"))
    page.wait("[...document.querySelectorAll('[role=tab]')].some((tab) => tab.textContent.includes('(2)'))")
    second = json.loads(artifacts(keeper, "get", keep(page), "--format=json"))
    changed = sorted((entry["relativePath"], entry["status"]) for entry in second["artifact"]["changed_files"]["files"])
    must(changed == [("banner.js", "deleted"), ("inc/more.php", "added")], str(changed))


def test_bundle_from_a_browser_is_applied_only_if_its_browser_origin_is_confirmed(keeper, kept):
    _, artifact, _, hashes = kept
    before = keeper.read(f"{PLUGIN}/banner.php")
    approved = "--approved-files=banner.php,inc/more.php,banner.js"
    refused = artifacts(keeper, "apply", artifact, approved, check=False)
    must(refused.returncode != 0 and "wp_codebox_apply_browser_origin_unconfirmed" in refused.stdout + refused.stderr, f"{refused.stdout} {refused.stderr}")
    must(keeper.read(f"{PLUGIN}/banner.php") == before, "the site changed")
    applied = json.loads(artifacts(keeper, "apply", artifact, approved, "--confirm-browser-origin", "--format=json"))
    must(applied["result"]["status"] == "applied", json.dumps(applied["result"]))
    for name, sha256 in hashes.items():
        with open(keeper.path("site", PLUGIN, name), "rb") as file:
            must(hashlib.sha256(file.read()).hexdigest() == sha256, name)
    must(not os.path.exists(keeper.path("site", PLUGIN, "banner.js")), "banner.js is still there")
    log = keeper.wp("--user=admin", "eval", "echo wp_json_encode( wp_get_ability( 'wp-codebox/list-audit-records' )->execute( [] ) );")
    must("browser_origin_confirmed" in log, "the audit log does not name the confirmation")
