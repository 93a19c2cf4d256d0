#!/usr/bin/env python3
"""A second, independent verifier of artifact bundles. Standard library only.

Reads bundle directories, one per line, from standard input and answers one JSON
object per line: {"directory", "valid", "codes", "signature", "coverage"}. `codes` is the
sorted set of violation codes; `signature` is "signed", "unsigned" or "invalid" (the owner
of the key is not checked); `coverage` of a signed bundle is "manifest", or "files" when the
attestation has no hash of the manifest.

Written from the rules, not from the Rust verifier; the two are compared on generated
and tampered bundles. Only the Rust verifier limits size and depth.
"""

import base64
import hashlib
import ipaddress
import json
import os
import re
import stat
import sys

MANIFEST = "manifest.json"
ATTESTATION = "files/attestation.dsse.json"
HEX64 = re.compile(r"[0-9a-f]{64}\Z")


class NotJson(Exception):
    """Raised for bytes that are not exactly one strict JSON value."""


class Unreadable(Exception):
    """Raised for a member that cannot be read as a regular file inside the bundle."""

    def __init__(self, kind):
        super().__init__(kind)
        self.kind = kind


# --- JSON -------------------------------------------------------------------


def parse(data):
    def members(pairs):
        found = {}
        for key, value in pairs:
            if key in found:
                raise NotJson("duplicate key")
            found[key] = value
        return found

    def number(text):
        value = float(text)
        if value in (float("inf"), float("-inf")):
            raise NotJson("number out of range")
        return value

    def constant(name):
        raise NotJson(name)

    try:
        return json.loads(
            data.decode("utf-8"),
            object_pairs_hook=members,
            parse_int=number,
            parse_float=number,
            parse_constant=constant,
        )
    except (ValueError, RecursionError) as error:
        raise NotJson(str(error)) from error


def canonical(value, depth=0):
    if depth > 30:
        return '"[max-depth]"'
    if value is None:
        return "null"
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float):
        return canonical_number(value)
    if isinstance(value, str):
        return canonical_text(value)
    if isinstance(value, list):
        return "[" + ",".join(canonical(item, depth + 1) for item in value[:2000]) + "]"
    keys = sorted(value, key=lambda key: key.encode("utf-16-be", "surrogatepass"))[:300]
    pairs = (canonical_text(key) + ":" + canonical(value[key], depth + 1) for key in keys)
    return "{" + ",".join(pairs) + "}"


def canonical_text(text):
    short = {8: "\\b", 9: "\\t", 10: "\\n", 12: "\\f", 13: "\\r", 34: '\\"', 92: "\\\\"}
    out = []
    for character in text:
        code = ord(character)
        if code in short:
            out.append(short[code])
        elif code < 0x20 or 0xD800 <= code < 0xE000:
            out.append("\\u%04x" % code)
        else:
            out.append(character)
    return '"' + "".join(out) + '"'


def canonical_number(value):
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    mantissa, _, exponent = repr(abs(value)).partition("e")
    whole, _, fraction = mantissa.partition(".")
    if fraction == "0":
        fraction = ""
    digits = (whole + fraction).lstrip("0")
    # Position of the decimal point, counted from the first significant digit.
    point = len(whole) + int(exponent or 0) - (len(whole + fraction) - len((whole + fraction).lstrip("0")))
    stripped = digits.rstrip("0")
    digits = stripped or "0"
    count = len(digits)
    if count <= point <= 21:
        body = digits + "0" * (point - count)
    elif 0 < point <= 21:
        body = digits[:point] + "." + digits[point:]
    elif -6 < point <= 0:
        body = "0." + "0" * -point + digits
    else:
        tail = "." + digits[1:] if count > 1 else ""
        body = "%s%se%s%d" % (digits[0], tail, "+" if point > 0 else "-", abs(point - 1))
    return sign + body


def sha256(*parts):
    digest = hashlib.sha256()
    for part in parts:
        digest.update(part.encode("utf-8") if isinstance(part, str) else part)
    return digest.hexdigest()


# --- scalar checks --------------------------------------------------------------


def get(value, *keys):
    for key in keys:
        value = value.get(key) if isinstance(value, dict) else None
    return value


def texts(value):
    """Returns the set of the texts in a list, or None if the value is not a list of texts."""
    return set(value) if isinstance(value, list) and all(map(is_text, value)) else None


def is_audit(value):
    named = all(is_text(get(value, key)) and get(value, key) for key in ("kind", "wrappedCmd"))
    return named and is_text(get(value, "wrapperName")) and all(texts(get(value, key)) is not None for key in ("wrappedArgs", "mounts"))


def is_text(value):
    """Whether the value is a string without lone surrogates, i.e. encodable as UTF-8."""
    return isinstance(value, str) and not any(0xD800 <= ord(c) < 0xE000 for c in value)


def is_digest(value):
    return isinstance(value, dict) and value.get("algorithm") == "sha256" and is_hex(value.get("value"))


def is_hex(value):
    return isinstance(value, str) and HEX64.match(value) is not None


def bad_path(path):
    return (
        path == ""
        or "\0" in path
        or "\\" in path
        or path.startswith("/")
        or re.match(r"[A-Za-z][A-Za-z0-9+.-]*:", path) is not None
        or ".." in path.split("/")
    )


NOT_PUBLIC = [ipaddress.IPv4Network(text) for text in (
    "0.0.0.0/8", "10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12",
    "192.0.0.0/24", "192.88.99.0/24", "192.168.0.0/16", "198.18.0.0/15", "224.0.0.0/3")]
# Parts of the global unicast range that are special or embed an IPv4 address.
SPECIAL = [ipaddress.IPv6Network(text) for text in ("2001::/23", "2002::/16")]


def is_public_four(number):
    return not any(ipaddress.IPv4Address(number) in network for network in NOT_PUBLIC)


def is_public_six(address):
    if address in ipaddress.IPv6Network("64:ff9b::/96"):
        return is_public_four(int(address) & 0xFFFFFFFF)
    isatap = address.packed[8:12] in (b"\0\0\x5e\xfe", b"\2\0\x5e\xfe")
    unicast = address in ipaddress.IPv6Network("2000::/3")
    return unicast and not isatap and not any(address in network for network in SPECIAL)


def url_code(url):
    match = re.match(r"([A-Za-z][A-Za-z0-9+.-]*):(.*)\Z", url.strip(), re.DOTALL)
    if not match:
        return "malformed-reference"
    if match.group(1).lower() not in ("http", "https"):
        return "unsafe-file"
    authority = re.split(r"[/\\?#]", match.group(2).lstrip("/\\"), maxsplit=1)[0]
    host = authority.rsplit("@", 1)[-1]
    six = re.match(r"\[([^\]]*)\](?::[0-9]*)?\Z", host)
    if six:
        try:
            address = ipaddress.IPv6Address(six.group(1))
        except ValueError:
            return "malformed-reference"
        return None if is_public_six(address) else "unsafe-file"
    match = re.match(r"([^:\[\]]*)(?::[0-9]*)?\Z", host)
    if not match:
        return "malformed-reference"
    host = match.group(1).lower()
    host = host[:-1] if host.endswith(".") else host
    labels = host.split(".")
    if "" in labels or re.search(r'[\x00-\x20<>^|%"`\x7f]', host):
        return "malformed-reference"
    if re.match(r"[0-9]+\Z", labels[-1]) or labels[-1].startswith("0x"):
        address = four(labels)
        if address is None:
            return "malformed-reference"
        return None if is_public_four(address) else "unsafe-file"
    return "unsafe-file" if labels[-1] in ("localhost", "local") else None


def four(labels):
    def number(text):
        try:
            if text.startswith("0x"):
                return int(text[2:] or "0", 16)
            if len(text) > 1 and text.startswith("0"):
                return int(text, 8)
            return int(text, 10)
        except ValueError:
            return None

    numbers = [number(label) for label in labels]
    if len(numbers) > 4 or None in numbers or any(n > 255 for n in numbers[:-1]):
        return None
    if numbers[-1] >= 256 ** (5 - len(numbers)):
        return None
    address = 0
    for value in numbers[:-1]:
        address = address * 256 + value
    return address * 256 ** (5 - len(numbers)) + numbers[-1]


DATE = re.compile(
    r"[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])"
    r"(T([01][0-9]|2[0-4]):[0-5][0-9](:[0-5][0-9])?(\.[0-9]+)?(Z|[+-][0-9]{2}:[0-9]{2})?)?\Z"
)


# --- Ed25519 (RFC 8032), verification only --------------------------------------

P = 2**255 - 19
ORDER = 2**252 + 27742317777372353535851937790883648493
D = -121665 * pow(121666, P - 2, P) % P
ROOT = pow(2, (P - 1) // 4, P)


def add(a, b):
    x = (a[1] - a[0]) * (b[1] - b[0]) % P
    y = (a[1] + a[0]) * (b[1] + b[0]) % P
    z = 2 * a[3] * b[3] * D % P
    w = 2 * a[2] * b[2] % P
    e, f, g, h = y - x, w - z, w + z, y + x
    return (e * f % P, g * h % P, f * g % P, e * h % P)


def times(scalar, point):
    result = (0, 1, 1, 0)
    while scalar:
        if scalar & 1:
            result = add(result, point)
        point = add(point, point)
        scalar >>= 1
    return result


def same(a, b):
    return (a[0] * b[2] - b[0] * a[2]) % P == 0 and (a[1] * b[2] - b[1] * a[2]) % P == 0


def point_of(data):
    y = int.from_bytes(data, "little")
    sign, y = y >> 255, y & (2**255 - 1)
    if y >= P:
        return None
    square = (y * y - 1) * pow(D * y * y + 1, P - 2, P) % P
    x = pow(square, (P + 3) // 8, P)
    if (x * x - square) % P:
        x = x * ROOT % P
    if (x * x - square) % P or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = P - x
    return (x, y, 1, x * y % P)


BASE = point_of((4 * pow(5, P - 2, P) % P).to_bytes(32, "little"))


def ed25519(public, message, signature):
    if len(public) != 32 or len(signature) != 64:
        return False
    key, commitment = point_of(public), point_of(signature[:32])
    scalar = int.from_bytes(signature[32:], "little")
    if key is None or commitment is None or scalar >= ORDER:
        return False
    challenge = hashlib.sha512(signature[:32] + public + message).digest()
    challenge = int.from_bytes(challenge, "little") % ORDER
    return same(times(scalar, BASE), add(commitment, times(challenge, key)))


# --- the bundle -----------------------------------------------------------------


class Bundle:
    def __init__(self, directory):
        self.directory = directory
        self.codes = []
        self.hashes = {}
        self.listed = set()
        self.manifest = None
        self.coverage = None

    def add(self, code):
        self.codes.append(code)

    # files

    def locate(self, path):
        """Returns stat of a member; fails when a path component is a symlink."""
        full = self.directory
        parts = [part for part in path.split("/") if part not in ("", ".")]
        if not parts or path.endswith("/"):
            raise Unreadable("missing")
        info = None
        for index, part in enumerate(parts):
            full = os.path.join(full, part)
            try:
                info = os.lstat(full)
            except OSError as error:
                raise Unreadable("missing") from error
            last = index == len(parts) - 1
            if stat.S_ISLNK(info.st_mode) and not last:
                raise Unreadable("link")
        return full, info

    def read(self, path):
        full, info = self.locate(path)
        if not stat.S_ISREG(info.st_mode):
            raise Unreadable("type")
        try:
            with open(full, "rb") as handle:
                return handle.read()
        except OSError as error:
            raise Unreadable("missing") from error

    def document(self, path):
        try:
            return parse(self.read(path))
        except (Unreadable, NotJson):
            return None

    def hash_of(self, path):
        try:
            return sha256(self.read(path))
        except Unreadable:
            return None

    def reference(self, path):
        if bad_path(path):
            self.add("invalid-path")
            return False
        if path not in self.listed:
            self.add("malformed-reference")
            return False
        return True

    def of_kind(self, kind):
        rows = self.manifest["files"]
        return [row["path"] for row in rows if row["kind"] == kind and not bad_path(row["path"])]

    # the order of the rules

    def verify(self):
        try:
            data = self.read(MANIFEST)
        except Unreadable as error:
            missing = error.kind == "missing" and not os.path.lexists(os.path.join(self.directory, MANIFEST))
            self.add("missing-manifest" if missing else "malformed-manifest")
            return "unsigned"
        try:
            self.manifest = parse(data)
        except NotJson:
            self.add("malformed-manifest")
            return "unsigned"
        if not manifest_fits(self.manifest):
            self.add("invalid-manifest-shape")
            return "unsigned"
        self.topology()
        self.orphans()
        self.file_hashes()
        self.content_digest()
        self.bundle_id()
        self.metadata()
        self.review()
        for path in self.of_kind("runtime-episode-trace"):
            trace = self.document(path)
            if trace is None or not trace_holds(trace):
                self.add("malformed-reference")
        for kind, fits, digest, prefix in REFERENCE_KINDS:
            for path in self.of_kind(kind):
                self.reference_document(self.document(path), fits, digest, prefix)
        self.typed_artifacts()
        self.transcripts()
        self.wasi_tools()
        self.cases()
        return self.attestation()

    def topology(self):
        for row in self.manifest["files"]:
            path = row["path"]
            if bad_path(path):
                self.add("invalid-path")
                continue
            if path in self.listed:
                self.add("invalid-manifest-shape")
            self.listed.add(path)
            base = get(row, "viewer", "base")
            if is_text(base) and url_code(base):
                self.add(url_code(base))
            try:
                _, info = self.locate(path)
            except Unreadable as error:
                self.add("unsafe-file" if error.kind == "link" else "missing-file")
                continue
            if not stat.S_ISREG(info.st_mode):
                self.add("missing-file")
            elif info.st_nlink > 1:
                self.add("hardlink")
        if MANIFEST not in self.listed:
            self.add("invalid-manifest-shape")

    def orphans(self):
        for where, directories, files in os.walk(self.directory):
            links = [name for name in directories if os.path.islink(os.path.join(where, name))]
            for name in files + links:
                path = os.path.relpath(os.path.join(where, name), self.directory)
                if path not in self.listed:
                    self.add("orphaned-file")

    def file_hashes(self):
        for row in self.manifest["files"]:
            path = row["path"]
            if bad_path(path):
                continue
            value = self.self_hash() if path == MANIFEST else self.hash_of(path)
            if value is not None and path != MANIFEST:
                self.hashes[path] = value
            if not is_digest(row.get("sha256")):
                self.add("missing-file-hash")
            elif row["sha256"]["value"] != value:
                self.add("file-hash-mismatch")

    def self_hash(self):
        zero = {"algorithm": "sha256", "value": "0" * 64}
        files = [dict(row, sha256=zero) if row["path"] == MANIFEST else row for row in self.manifest["files"]]
        text = canonical(dict(self.manifest, files=files))
        return sha256("wp-codebox/artifact-manifest-self/v1\n", text)

    def list_digest(self):
        kept = ("path", "kind", "contentType", "redaction", "provenance", "viewer")
        rows = [{key: row[key] for key in kept if key in row} for row in self.manifest["files"]]
        return sha256("wp-codebox/artifact-manifest-file-list/v1\n", canonical(rows))

    def plain_rows(self):
        """Whether the file list rows of manifest and attestation have only known members; the signature does not cover these rows."""
        return all(
            set(row) <= {"path", "kind", "contentType", "sha256"}
            and ("sha256" not in row or set(row["sha256"].keys()) <= {"algorithm", "value"})
            for row in self.manifest["files"]
            if row["path"] in (MANIFEST, ATTESTATION)
        )

    def attested_digest(self):
        rest = [row for row in self.manifest["files"] if row["path"] not in (MANIFEST, ATTESTATION)]
        text = canonical(dict(self.manifest, files=rest))
        return sha256("wp-codebox/artifact-manifest-attested/v1\n", text)

    def content_digest(self):
        inputs = self.manifest["contentDigest"]["inputs"]
        stated = self.manifest["contentDigest"]["value"]
        for path in inputs:
            if path != "manifest.files" and not self.reference(path):
                return
        if not is_hex(stated):
            self.add("invalid-manifest-shape")
            return
        if inputs == ["manifest.files"]:
            value = self.list_digest()
        else:
            parts = ["wp-codebox/artifact-content/v1\n"]
            try:
                for index, path in enumerate(inputs):
                    parts += ["\n" if index else "", path, "\n", self.read(path)]
                value = sha256(*parts)
            except Unreadable:
                value = None
        if value != stated:
            self.add("digest-mismatch")

    def bundle_id(self):
        prefix = "artifact-bundle-sha256-"
        name = self.manifest["id"]
        if name.startswith(prefix) and name != prefix + self.manifest["contentDigest"]["value"]:
            self.add("bundle-id-mismatch")

    def metadata(self):
        artifacts = get(self.document("metadata.json"), "artifacts")
        for value in artifacts.values() if isinstance(artifacts, dict) else ():
            paths = value if isinstance(value, list) and all(map(is_text, value)) else [value]
            for path in paths:
                if is_text(path):
                    self.reference(path)

    def review(self):
        review = self.document("files/review.json")
        if review is None:
            return
        evidence = get(review, "evidence")
        if not isinstance(evidence, dict):
            self.add("malformed-reference")
            return
        stated = evidence.get("artifactContentDigest")
        if is_text(stated) and stated != self.manifest["contentDigest"]["value"]:
            self.add("review-evidence-mismatch")
        patch = evidence.get("patch")
        if is_text(patch) and self.reference(patch):
            stated = evidence.get("patchSha256")
            if is_text(stated) and stated != self.hash_of(patch):
                self.add("review-evidence-mismatch")
        changed = evidence.get("changedFiles")
        if is_text(changed) and self.reference(changed):
            document = self.document(changed)
            if document is None:
                self.add("review-evidence-mismatch")
            known, named = get(document, "files"), get(review, "changedFiles")
            if isinstance(known, list) and isinstance(named, list):
                pairs = {(get(row, "path"), get(row, "status")) for row in known if isinstance(row, dict)}
                for row in named:
                    if isinstance(row, dict) and (row.get("path"), row.get("status")) not in pairs:
                        self.add("review-evidence-mismatch")
        for key in ("runtimeEpisodeTrace", "runtimeReferenceManifest", "runtimeReplayReferenceIndex"):
            if is_text(evidence.get(key)):
                self.reference(evidence[key])

    def reference_document(self, document, fits, digest, prefix):
        if document is None or not fits(document):
            self.add("malformed-reference")
            return
        stated = document["digest"]["value"]
        if digest(document) != stated:
            self.add("digest-mismatch")
        if document["id"] != prefix + stated:
            self.add("bundle-id-mismatch")
        bundle = document["artifactBundle"]
        own = (self.manifest["id"], self.manifest["contentDigest"]["value"])
        if (bundle["id"], bundle["digest"]["value"]) != own:
            self.add("review-evidence-mismatch")
        files = list(document.get("files", []))
        files += [document[key] for key in ("trace", "events") if key in document]
        files += list(document.get("references", {}).values())
        for row in files:
            if self.reference(row["path"]) and self.hash_of(row["path"]) != row["sha256"]["value"]:
                self.add("file-hash-mismatch")
        for holder in document.get("observations", []) + document["snapshots"]:
            for ref in holder["artifactRefs"]:
                if not is_text(ref.get("path")) or not self.reference(ref["path"]):
                    continue
                if not is_digest(ref.get("digest")):
                    self.add("missing-file-hash")
                elif self.hash_of(ref["path"]) != ref["digest"]["value"]:
                    self.add("file-hash-mismatch")

    def plain_hash(self, path, stated):
        value = self.hash_of(path)
        if value is None:
            self.add("missing-file")
        elif value != stated:
            self.add("file-hash-mismatch")

    def typed_artifacts(self):
        for path in self.of_kind("typed-artifacts-index"):
            document = self.document(path)
            rows = get(document, "artifacts")
            schema = get(document, "schema") == "wp-codebox/typed-artifacts-index/v1"
            if not schema or not isinstance(rows, list):
                self.add("malformed-reference")
                continue
            for row in rows:
                target = get(row, "artifact", "path")
                if not is_text(target):
                    self.add("malformed-reference")
                    continue
                if self.reference(target):
                    stated = get(row, "artifact", "sha256")
                    self.plain_hash(target, stated if is_hex(stated) else None)
                own = any(isinstance(row.get(key), dict) for key in ("payload_schema", "payloadSchema"))
                if own and "payload" in row:
                    self.add("payload-schema-violation")

    def transcripts(self):
        for path in self.of_kind("tool-call-transcript"):
            document = self.document(path)
            calls = get(document, "tool_calls")
            schema = get(document, "schema") == "wp-codebox/tool-call-transcript/v1"
            if not schema or not isinstance(calls, list) or not is_text(get(document, "redaction", "policy")):
                self.add("malformed-reference")
                continue
            for call in calls:
                required = ("call_id", "tool_name", "tool_type", "phase", "status")
                complete = all(is_text(get(call, key)) and get(call, key) for key in required)
                if not complete or not is_text(get(call, "redaction", "policy")):
                    self.add("malformed-reference")
                for group in ("input_artifacts", "output_artifacts"):
                    rows = get(call, group)
                    for row in rows if isinstance(rows, list) else ():
                        target = get(row, "path")
                        if not is_text(target):
                            self.add("malformed-reference")
                        elif self.reference(target) and "sha256" in row:
                            stated = row["sha256"]
                            stated = stated["value"] if is_digest(stated) else stated
                            self.plain_hash(target, stated if is_hex(stated) else None)

    def wasi_tools(self):
        records = self.wasi_records()
        called, whole = {}, True
        for path in self.of_kind("tool-call-transcript"):
            document = self.document(path)
            whole = whole and not (isinstance(document, dict) and "calls_cut" in document)
            calls = get(document, "tool_calls")
            for call in calls if isinstance(calls, list) else ():
                ran = texts(get(call, "executions"))
                if get(call, "tool_type") != "wasi" or not ran:
                    continue
                tool = get(call, "tool_name") if is_text(get(call, "tool_name")) else ""
                digests = tuple(get(call, "wasi", name) for name in ("definitionSha256", "moduleSha256"))
                record = records.get(tool)
                if record is None or record[0] != digests or not ran <= record[1]:
                    self.add("review-evidence-mismatch")
                called.setdefault(tool, set()).update(ran)
        for tool, (_, ran) in records.items():
            if whole and not ran <= called.get(tool, set()):
                self.add("review-evidence-mismatch")

    def wasi_records(self):
        records = {}
        for path in self.of_kind("wasi-tools"):
            document = self.document(path)
            rows = get(document, "tools")
            if get(document, "schema") != "wp-codebox/wasi-tools/v1" or not isinstance(rows, list):
                self.add("malformed-reference")
                continue
            for row in rows:
                name, ran, audits = get(row, "id"), texts(get(row, "executions")), get(row, "sandboxAudits")
                digests = tuple(get(row, key) for key in ("definitionSha256", "moduleSha256"))
                complete = is_text(name) and name and ran and all(is_hex(value) for value in digests)
                if not complete or not isinstance(audits, list) or not audits or not all(map(is_audit, audits)) or name in records:
                    self.add("malformed-reference")
                else:
                    records[name] = (digests, ran)
        return records

    def cases(self):
        seen = set()
        for case in self.manifest.get("cases", []):
            if case["id"] in seen:
                self.add("invalid-manifest-shape")
            seen.add(case["id"])
            when = get(case, "verification", "verifiedAt")
            if when is not None and not DATE.match(when):
                self.add("invalid-manifest-shape")
            for row in case["artifacts"]:
                if self.reference(row["path"]) and is_digest(row.get("sha256")):
                    self.plain_hash(row["path"], row["sha256"]["value"])
                url = row.get("publicUrl")
                if url is not None and url_code(url):
                    self.add(url_code(url))

    def attestation(self):
        if ATTESTATION not in self.listed:
            return "unsigned"
        if self.attested(self.document(ATTESTATION)):
            return "signed"
        self.add("attestation-invalid")
        return "invalid"

    def attested(self, envelope):
        try:
            kind = envelope["payloadType"]
            payload = base64.b64decode(envelope["payload"], validate=True)
            if kind != "application/vnd.in-toto+json":
                return False
            head = "DSSEv1 %d %s %d " % (len(kind), kind, len(payload))
            # The second signature is that of a host that verified the bundle and took it over.
            keys = []
            for signature in envelope["signatures"]:
                public = base64.b64decode(signature["publicKey"], validate=True)
                made = base64.b64decode(signature["sig"], validate=True)
                if signature["keyid"] != sha256(public) or public in keys:
                    return False
                if not ed25519(public, head.encode() + payload, made):
                    return False
                keys.append(public)
            if len(keys) not in (1, 2):
                return False
            statement = parse(payload)
            if statement["_type"] != "https://in-toto.io/Statement/v1":
                return False
            predicate = statement["predicate"]
            origin = predicate.get("origin")
            # Manifest and statement name the same origin, and the type of the statement follows from it.
            if origin not in (None, "browser") or origin != self.manifest.get("origin"):
                return False
            if ("origin" in predicate) != ("origin" in self.manifest):
                return False
            kind = "bundle-attestation" if origin is None else "browser-bundle-attestation"
            if statement["predicateType"] != f"wp-codebox/{kind}/v1":
                return False
            subjects = [(row["name"], row["digest"]["sha256"]) for row in statement["subject"]]
            wanted = {path: value for path, value in self.hashes.items() if path != ATTESTATION}
            if len(subjects) != len(dict(subjects)) or dict(subjects) != wanted:
                return False
            if predicate["fileListSha256"] != self.list_digest():
                return False
            keys = ("id", "contentDigest", "createdAt", "runtime")
            if any(canonical(predicate[key]) != canonical(self.manifest[key]) for key in keys):
                return False
            if "manifestSha256" not in predicate and origin is None:
                self.coverage = "files"
                return True
            if not self.plain_rows() or predicate["manifestSha256"] != self.attested_digest():
                return False
            self.coverage = "manifest"
            return True
        except (KeyError, TypeError, ValueError, AttributeError, NotJson):
            return False


# --- shapes -----------------------------------------------------------------------


def manifest_fits(manifest):
    if not isinstance(manifest, dict):
        return False
    content, files = manifest.get("contentDigest"), manifest.get("files")
    inputs = get(content, "inputs")
    fits = (
        is_text(manifest.get("id"))
        and is_text(manifest.get("createdAt"))
        and isinstance(manifest.get("runtime"), dict)
        and get(content, "algorithm") == "sha256"
        and is_text(get(content, "value"))
        and isinstance(inputs, list)
        and all(map(is_text, inputs))
        and isinstance(files, list)
        and all(is_file_row(row) for row in files)
    )
    if not fits or "cases" not in manifest:
        return fits
    cases = manifest["cases"]
    return isinstance(cases, list) and all(map(case_fits, cases))


def is_file_row(row):
    return isinstance(row, dict) and all(is_text(row.get(key)) for key in ("path", "kind", "contentType"))


def case_fits(case):
    if not isinstance(case, dict) or not is_text(case.get("id")) or not case["id"].strip():
        return False
    if any(key in case and not is_digest(case[key]) for key in ("hash", "digest")):
        return False
    if "verification" in case:
        verification = case["verification"]
        if not is_text(get(verification, "status")):
            return False
        if "verifiedAt" in verification and not is_text(verification["verifiedAt"]):
            return False
    rows = case.get("artifacts")
    return isinstance(rows, list) and all(map(case_artifact_fits, rows))


def case_artifact_fits(row):
    return (
        isinstance(row, dict)
        and is_text(row.get("path"))
        and is_text(row.get("kind"))
        and all(key not in row or is_text(row[key]) for key in ("contentType", "publicUrl"))
        and ("sha256" not in row or is_digest(row["sha256"]))
    )


def every(value, check):
    return isinstance(value, list) and all(map(check, value))


def is_string(value):
    return isinstance(value, str)


def is_file_ref(row):
    return is_file_row(row) and is_digest(row.get("sha256"))


def is_trace_ref(ref):
    return (
        isinstance(ref, dict)
        and is_text(ref.get("kind"))
        and is_text(ref.get("id"))
        and ("digest" not in ref or is_digest(ref["digest"]))
        and all(key not in ref or is_text(ref[key]) for key in ("artifactId", "path"))
    )


def is_snapshot(row):
    def bound(ref):
        return isinstance(ref, dict) and is_text(ref.get("kind")) and is_text(ref.get("id")) and is_digest(ref.get("digest"))

    return (
        isinstance(row, dict)
        and is_text(row.get("id"))
        and is_text(row.get("semantics"))
        and is_digest(row.get("digest"))
        and is_text(get(row, "replay", "status"))
        and every(get(row, "replay", "limitations"), is_string)
        and every(row.get("artifactRefs"), bound)
    )


def reference_head(document, schema):
    bundle = get(document, "artifactBundle")
    return (
        isinstance(document, dict)
        and document.get("schema") == schema
        and document.get("version") == 1
        and is_text(document.get("id"))
        and is_text(document.get("createdAt"))
        and is_digest(document.get("digest"))
        and isinstance(document.get("runtime"), dict)
        and get(bundle, "kind") == "artifact-bundle"
        and is_text(get(bundle, "id"))
        and is_digest(get(bundle, "digest"))
        and every(document.get("snapshots"), is_snapshot)
    )


def reference_manifest_fits(document):
    return (
        reference_head(document, "wp-codebox/runtime-reference-manifest/v1")
        and every(document.get("files"), is_file_ref)
        and all(key not in document or is_file_ref(document[key]) for key in ("trace", "events"))
    )


def replay_index_fits(document):
    def action(row):
        return (
            isinstance(row, dict)
            and isinstance(row.get("index"), float)
            and is_text(row.get("id"))
            and is_trace_ref(row.get("actionRef"))
            and is_trace_ref(row.get("executionRef"))
            and ("observationRef" not in row or is_trace_ref(row["observationRef"]))
        )

    def observation(row):
        return (
            isinstance(row, dict)
            and is_text(row.get("id"))
            and is_text(row.get("type"))
            and is_trace_ref(row.get("ref"))
            and every(row.get("artifactRefs"), is_trace_ref)
        )

    return (
        reference_head(document, "wp-codebox/runtime-replay-reference-index/v1")
        and isinstance(document.get("references"), dict)
        and all(map(is_file_ref, document["references"].values()))
        and every(document.get("actions"), action)
        and every(document.get("observations"), observation)
        and is_text(get(document, "replay", "status"))
        and every(get(document, "replay", "instructions"), is_string)
        and every(get(document, "replay", "limitations"), is_string)
    )


def digest_over(prefix, keys):
    def compute(document):
        kept = {key: document[key] for key in keys if key in document}
        return sha256(prefix + "\n", canonical(kept))

    return compute


HEAD = ["schema", "version", "runtime", "artifactBundle"]
REFERENCE_KINDS = (
    (
        "runtime-reference-manifest",
        reference_manifest_fits,
        digest_over("wp-codebox/runtime-reference-manifest/v1", HEAD + ["files", "trace", "events", "snapshots"]),
        "runtime-reference-manifest-sha256-",
    ),
    (
        "runtime-replay-index",
        replay_index_fits,
        digest_over(
            "wp-codebox/runtime-replay-reference-index/v1",
            HEAD + ["references", "actions", "observations", "snapshots", "replay"],
        ),
        "runtime-replay-reference-index-sha256-",
    ),
)


# --- episode traces -----------------------------------------------------------------

EPISODE = "wp-codebox/runtime-episode-%s/v1"
FORBIDDEN = set(
    "reward success grader scenario task-set task_set taskSet benchmark model-eval model_eval modelEval".split()
)


def episode_digest(payload):
    return sha256(EPISODE % "trace" + "\n", canonical(payload))


def full(value):
    return is_text(value) and value != ""


def trace_holds(trace):
    reset = get(trace, "reset")
    observations, refs = get(reset, "observations"), get(reset, "observationRefs")
    steps, snapshots = get(trace, "steps"), get(trace, "snapshots")
    if not isinstance(trace, dict) or trace.get("schema") != EPISODE % "trace" or trace.get("version") != 1:
        return False
    if not full(trace.get("id")) or not full(trace.get("createdAt")):
        return False
    if not full(get(trace, "runtime", "id")) or not full(get(reset, "id")):
        return False
    if not all(isinstance(rows, list) for rows in (observations, refs, steps, snapshots)):
        return False
    if not isinstance(get(reset, "runtime"), dict) or len(observations) != len(refs):
        return False
    bundle = trace.get("artifactRef")
    return (
        all(map(observation_holds, observations))
        and all(
            ref_holds(ref, "observation", get(seen, "digest"), seen) for ref, seen in zip(refs, observations)
        )
        and (bundle is None or ref_holds(bundle, "artifact-bundle", None))
        and all(step_holds(step, index) for index, step in enumerate(steps))
        and all(map(snapshot_holds, snapshots))
        and not has_forbidden(trace, ("data", "metadata", "artifacts"))
    )


def ref_holds(ref, kind, target, named=None):
    if not full(get(ref, "kind")) or (kind and ref["kind"] != kind) or not full(ref.get("id")):
        return False
    if full(get(named, "id")) and ref["id"] != named["id"]:
        return False
    if not is_digest(ref.get("digest")):
        return False
    return not is_digest(target) or ref["digest"]["value"] == target["value"]


def own_digest_holds(value, payload):
    return is_digest(value.get("digest")) and value["digest"]["value"] == episode_digest(payload)


def refs_hold(value):
    refs = value.get("artifactRefs", [])
    return isinstance(refs, list) and all(ref_holds(ref, None, None) for ref in refs)


def payload_of(value, name, keys):
    payload = {key: value[key] for key in keys if key in value}
    payload.update(schema=EPISODE % name, artifactRefs=value.get("artifactRefs", []))
    return payload


def observation_holds(value):
    return (
        isinstance(value, dict)
        and value.get("schema") == EPISODE % "observation"
        and all(full(value.get(key)) for key in ("id", "type", "observedAt"))
        and "data" in value
        and refs_hold(value)
        and own_digest_holds(value, payload_of(value, "observation", ("type", "data", "observedAt")))
    )


def snapshot_holds(value):
    return (
        isinstance(value, dict)
        and value.get("schema") == EPISODE % "snapshot"
        and all(full(value.get(key)) for key in ("id", "createdAt", "semantics"))
        and isinstance(value.get("metadata"), dict)
        and refs_hold(value)
        and own_digest_holds(value, payload_of(value, "snapshot", ("id", "createdAt", "semantics", "metadata")))
    )


def action_holds(action):
    if action.get("schema") != EPISODE % "action":
        return False
    if action.get("kind") not in ("command", "filesystem", "http", "browser") or not full(action.get("command")):
        return False
    if not every(action.get("args"), is_string):
        return False
    keys = ["kind", "command", "args"]
    for key in ("cwd", "method", "url", "path", "operation", "selector", "description"):
        if key in action:
            if not isinstance(action[key], str) or (key != "cwd" and action[key] == ""):
                return False
            keys.append(key)
    if "timeoutMs" in action:
        if not isinstance(action["timeoutMs"], float) or action["timeoutMs"] < 0:
            return False
        keys.append("timeoutMs")
    if "metadata" in action:
        if not isinstance(action["metadata"], dict):
            return False
        keys.append("metadata")
    payload = {key: action[key] for key in keys}
    payload["schema"] = EPISODE % "action"
    return own_digest_holds(action, payload)


def step_holds(step, index):
    action, execution = get(step, "action"), get(step, "execution")
    if not full(get(step, "id")) or get(step, "index") != index:
        return False
    if not full(get(action, "id")) or not action_holds(action) or not full(get(execution, "id")):
        return False
    executed = {"algorithm": "sha256", "value": episode_digest(execution)}
    if not ref_holds(step.get("actionRef"), "action", action["digest"], action):
        return False
    if not ref_holds(step.get("executionRef"), "execution", executed, execution):
        return False
    observation = step.get("observation")
    ref = step.get("observationRef")
    if observation is None:
        return ref is None
    return observation_holds(observation) and ref_holds(
        ref, "observation", get(observation, "digest"), observation
    )


def has_forbidden(value, free=("data", "metadata")):
    if isinstance(value, list):
        return any(has_forbidden(item) for item in value)
    if isinstance(value, dict):
        return any(
            key in FORBIDDEN or (key not in free and has_forbidden(item)) for key, item in value.items()
        )
    return False


def main():
    for line in sys.stdin:
        bundle = Bundle(line.rstrip("\n"))
        signature = bundle.verify()
        answer = {
            "directory": bundle.directory,
            "valid": not bundle.codes,
            "codes": sorted(set(bundle.codes)),
            "signature": signature,
            "coverage": bundle.coverage,
        }
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main()
