"""What the server sends: runtime files, archives, links, and the pages of wp-admin."""

import hashlib
import io
import json
import mimetypes
import os
import re
import zipfile

from parent import RUNTIME, Visitor, multipart, notices

from harness import must


def upload(visitor, data, extra=None):
    """Sends an archive with the form of the settings page; returns the notice."""
    page = visitor.get("/wp-admin/options-general.php?page=wp-codebox-settings").text
    form = re.search(r'<form method="post" enctype="multipart/form-data".*?</form>', page, re.S)
    must(form is not None, "the settings page has no form for the archive")
    nonce = re.search(r'name="_wpnonce" value="([^"]+)"', form.group(0)).group(1)
    fields = {"action": "wp_codebox_browser_assets", "_wpnonce": nonce, **(extra or {"install": "1"})}
    body, kind = multipart(fields, {} if data is None else {"wp_codebox_browser_archive": ("codebox-browser.zip", data)})
    answer = visitor.request("POST", "/wp-admin/admin-post.php", body, {"Content-Type": kind})
    must(answer.status == 302, answer)
    return " ".join(notices(visitor.get("/wp-admin/options-general.php?page=wp-codebox-settings")))


def runtime_list(parent):
    return json.loads(parent.read("wp-content/plugins/wp-codebox/assets/browser/runtime.json"))["files"]


def sessions_page(visitor):
    return visitor.open("plugin", "banner", "&new=1")


def test_page_names_the_missing_runtime_files_and_the_command_that_installs_them(parent):
    parent.wp("codebox", "browser-assets", "remove")
    admin = parent.login("admin")
    page = admin.get(admin.link("plugin", "banner"))
    shown = " ".join(notices(page))
    must("wp_codebox_browser_assets_missing" in shown and "php-jspi.bin" in shown and "browser-assets install" in shown, shown)
    must("wpCodeboxBrowserPage =" not in page.text, "the page has a configuration")


def test_settings_page_installs_the_runtime_archive_of_the_release_and_refuses_a_changed_one(parent):
    parent.wp("codebox", "browser-assets", "remove")
    admin = parent.login("admin")
    with open(RUNTIME, "rb") as file:
        release = file.read()
    changed = io.BytesIO(release)
    with zipfile.ZipFile(changed, "a") as archive:
        archive.writestr("evil.php", "<?php echo 'run';")
    shown = upload(admin, changed.getvalue())
    must("evil.php" in shown and "Nothing was installed" in shown, shown)
    base = parent.path("site/wp-content/uploads/wp-codebox-browser-runtime")
    must([name for _, _, names in os.walk(base) for name in names] == [], "something was installed")
    must("No archive was received" in upload(admin, None), "a form without archive")
    must("were installed" in upload(admin, release), "positive control")
    must("were removed" in upload(admin, None, {"remove": "1"}), "remove")


def test_runtime_files_are_served_without_content_encoding_and_with_the_listed_size_and_sha256(installed):
    admin = installed.login("admin")
    page = sessions_page(admin)
    runtime = admin.blueprint(page)["codebox"]["runtime"]
    must(sorted(file["name"] for file in runtime["files"]) == sorted(file["name"] for file in runtime_list(installed)), str(runtime))
    must(mimetypes.guess_type("php.wasm.gz")[1] == "gzip", "positive control")
    for file in runtime["files"]:
        answer = Visitor(installed).get(runtime["base_url"] + file["name"])
        must("content-encoding" not in answer.headers and mimetypes.guess_type(file["name"])[1] is None, f"{file['name']} is unpacked on the way")
        must(answer.status == 200 and len(answer.body) == file["bytes"] and hashlib.sha256(answer.body).hexdigest() == file["sha256"], file["name"])
    must(page["isolation"] == "opaque", page["isolation"])


def test_archives_are_served_to_the_user_of_the_session_only(installed):
    admin, second, editor = (installed.login(name) for name in ("admin", "second", "editor"))
    codebox = admin.blueprint(sessions_page(admin))["codebox"]
    for file in (codebox["core"], codebox["roots"][0]["archive"]):
        answer = admin.get(file["url"])
        must(answer.status == 200, answer)
        must(hashlib.sha256(answer.body).hexdigest() == file["sha256"] and len(answer.body) == file["bytes"], "hash or size")
        must(answer.headers["content-type"] == "application/zip" and answer.headers["x-content-type-options"] == "nosniff", str(answer.headers))
        must("private" in answer.headers["cache-control"] and "immutable" in answer.headers["cache-control"] and "expires" not in answer.headers, str(answer.headers))
        tag = answer.headers["etag"]
        must(tag == f'"{file["sha256"]}"', tag)
        head = admin.request("HEAD", file["url"])
        must(head.status == 200 and head.body == b"" and head.headers["content-length"] == str(file["bytes"]), f"{head} {head.headers}")
        again = admin.get(file["url"], If_None_Match=tag)
        must(again.status == 304 and again.body == b"", again)
        for visitor in (second, editor, Visitor(installed)):
            refused = visitor.get(file["url"])
            must(refused.status == 403 and refused.json["code"] == "wp_codebox_browser_link_foreign", refused)
        base, _, token = file["url"].rpartition("/")
        for bad in (token[:-2] + ("AA" if not token.endswith("AA") else "BB"), "A" + token[1:], token.split(".")[0] + ".x"):
            refused = admin.get(f"{base}/{bad}")
            must(refused.status == 403 and refused.json["code"] == "wp_codebox_browser_link_invalid", refused)


def test_archives_contain_neither_wp_config_nor_its_keys_nor_other_plugins(installed):
    admin = installed.login("admin")
    codebox = admin.blueprint(sessions_page(admin))["codebox"]
    config = installed.read("wp-config.php")
    secrets = [value for value in re.findall(r'_(?:KEY|SALT)\', "([^"]+)"', config)]
    must(len(secrets) == 8, str(secrets))
    for file in (codebox["core"], codebox["roots"][0]["archive"]):
        with zipfile.ZipFile(io.BytesIO(admin.get(file["url"]).body)) as archive:
            names = archive.namelist()
            must("wp-config.php" not in names and not any(re.search(r"wp-content/(plugins|mu-plugins|uploads)/|db\.php$", name) for name in names if name.startswith("wp-content")), "")
            for name in names:
                text = archive.read(name).decode("latin1")
                must(not any(secret in text for secret in secrets), f"a key is in {name}")
    with zipfile.ZipFile(io.BytesIO(admin.get(codebox["roots"][0]["archive"]["url"]).body)) as archive:
        must(archive.namelist() == ["banner.css", "banner.js", "banner.php"], str(archive.namelist()))


def test_archives_are_stored_below_a_secret_directory_name_that_no_listing_shows(installed):
    admin = installed.login("admin")
    codebox = admin.blueprint(sessions_page(admin))["codebox"]
    found = [os.path.join(at, name) for at, _, names in os.walk(installed.path("site/wp-content/uploads")) for name in names if name == codebox["core"]["sha256"]]
    must(len(found) == 1, str(found))
    # Without a state directory the file is below the uploads; its name is a secret of 128 bits there.
    must(re.search(r"/wp-codebox-browser-files-[0-9a-f]{32}/", found[0]) is not None, found[0])
    listing = Visitor(installed).get("/wp-content/uploads/")
    must("wp-codebox-browser-files" not in listing.text, listing)
    must(installed.wp("option", "get", "wp_codebox_browser_directory").strip() in found[0], "the name is not the stored one")


def test_archive_link_is_refused_after_its_session_is_destroyed(installed):
    admin = installed.login("admin")
    page = sessions_page(admin)
    url = admin.blueprint(page)["codebox"]["core"]["url"]
    must(admin.get(url).status == 200, "positive control")
    route = {"url": page["hydrate"]["url"].replace("hydrate-browser-blueprint-ref", "destroy-browser-contained-site-session"), "nonce": page["hydrate"]["nonce"]}
    ended = admin.request("DELETE", route["url"] + "?" + f"input[session_id]={page['session']['session_id']}", None, {"X-WP-Nonce": route["nonce"]})
    if ended.status in (404, 405):
        ended = admin.run(route, {"session_id": page["session"]["session_id"], "contained_site": page["session"]["contained_site"]})
    must(ended.status == 200, ended)
    refused = admin.get(url)
    must(refused.status >= 400 and refused.json["code"].startswith("wp_codebox_browser_session_"), refused)


def test_second_visit_continues_the_session_and_parameter_new_opens_another(installed):
    admin = installed.login("admin")
    first = admin.open("plugin", "banner")
    must(admin.open("plugin", "banner")["session"]["session_id"] == first["session"]["session_id"], "a reload opened another session")
    must(admin.open("plugin", "banner", "&new=1")["session"]["session_id"] != first["session"]["session_id"], "positive control")
    second = installed.login("second")
    must(second.open("plugin", "banner")["session"]["session_id"] != first["session"]["session_id"], "the session of another user")


def test_sandbox_page_without_nonce_or_capability_answers_403(installed):
    admin, editor = installed.login("admin"), installed.login("editor")
    link = admin.link("plugin", "banner")
    must("wpCodeboxBrowserPage =" in admin.get(link).text, "positive control")
    bare = re.sub(r"&_wpnonce=\w+", "", link)
    must(admin.get(bare).status == 403, "without nonce")
    must(editor.get(link).status == 403, "editor")
    must("Open in browser sandbox" in admin.get("/wp-admin/plugins.php").text, "no link on the page of plugins")
    must("Open in browser sandbox" in admin.get("/wp-admin/themes.php").text, "no link on the page of themes")


def test_browser_host_that_differs_only_in_its_port_is_refused_and_another_host_name_is_used(installed):
    # Browsers send cookies to every port of a host, so code on another port of the same host would get those of the site.
    admin = installed.login("admin")
    try:
        installed.configure({"WP_CODEBOX_BROWSER_HOST": f"http://127.0.0.1:{installed.port + 1}"})
        shown = " ".join(notices(admin.get(admin.link("plugin", "banner"))))
        must("wp_codebox_browser_host_invalid" in shown and "cookies ignore ports" in shown, shown)
        installed.configure({"WP_CODEBOX_BROWSER_HOST": f"http://localhost:{installed.port}"})
        page = sessions_page(admin)
        must(page["isolation"] == "separate-host" and page["remote_url"].startswith(f"http://localhost:{installed.port}/"), str(page["remote_url"]))
    finally:
        installed.configure({})
