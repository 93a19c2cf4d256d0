"""Mail of a guest is captured outside the guest, stored in the bundle and never delivered.

The cases send mail through port 25 in the guest, sendmail, PHP and WordPress.
"""

import json
import os

from test_hostile import hostile

from harness import must
from harness.frames import SupervisorClient

SECRET = "hunter2-hunter2-hunter2"
# Python code of a minimal SMTP client for the guest.
RAW = r"""
def dial():
    link = socket.create_connection(("127.0.0.1", 25), 60)
    return link, link.makefile("rb")

def say(link, lines, text):
    link.sendall(text if isinstance(text, bytes) else text.encode())
    return lines.readline()

def mail(content, to="b@x.test", sender="a@x.test"):
    link, lines = dial()
    lines.readline()
    for line in ("HELO x\r\n", f"MAIL FROM:<{sender}>\r\n", f"RCPT TO:<{to}>\r\n", "DATA\r\n"):
        say(link, lines, line)
    answer = say(link, lines, content + b"\r\n.\r\n")
    link.close()
    return answer
"""


def directory_of(answer):
    return answer.json["artifacts"]["directory"]


def log(directory):
    with open(os.path.join(directory, "files", "runtime-evidence", "mail.jsonl"), encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    return rows[:-1], rows[-1]


def content(directory, row):
    with open(os.path.join(directory, row["kept"]), "rb") as file:
        return file.read()


def patch_of(directory):
    with open(os.path.join(directory, "files", "patch.diff"), encoding="utf-8") as patch:
        return patch.read()


def test_mail_from_wp_mail_sendmail_and_smtp_is_captured(bench):
    answer = bench.agent(r"""
cat >/tmp/mail.php <<'PHP'
<?php
add_action( 'wp_mail_failed', function ( $error ) { echo $error->get_error_message(); } );
$seen   = array();
$seen[] = wp_mail( array( 'One <one@example.org>', 'two@example.org' ), 'Größe & Co', "Hello\n.\n..dots\n", array( 'Bcc: hidden@example.org' ) );
$seen[] = wp_mail( 'one@example.org', 'named', 'x', 'From: Shop <shop@localhost.test>' );
$seen[] = wp_mail( 'one@example.org', 'attached', 'x', '', __FILE__ );
$seen[] = mail( 'one@example.org', 'plain', 'body', '', '-fbounce@example.org' );
file_put_contents( '/workspace/plugin/seen.json', wp_json_encode( $seen ) );
PHP
wp eval-file /tmp/mail.php &&
printf 'Subject: by hand\n\nbody\n' | sendmail one@example.org &&
python3 -c 'import smtplib; s = smtplib.SMTP("localhost"); s.login("user", "any"); s.sendmail("p@x.test", ["q@x.test", "r@x.test"], "Subject: python\r\n\r\nbody")' &&
printf 'To: one@example.org\nX-Bcc: two@example.org\nBcc: two@example.org\nSubject: copies\n\nx' | sendmail -t &&
{ printf 'To: one@example.org\n\nx' | sendmail; echo $? >/workspace/plugin/none; printf x | sendmail -bs; echo $? >>/workspace/plugin/none; }
""")
    answer.expect(0)
    directory = directory_of(answer)
    patch = patch_of(directory)
    must("[true,true,true,true]" in patch, f"{patch}\n{answer}")
    must("+64\n+64\n" in patch, patch)
    rows, end = log(directory)
    must([row["subject"] for row in rows] == ["Größe & Co", "named", "attached", "plain", "by hand", "python", "copies"], json.dumps(rows))
    must([row["from"] for row in rows[3:6]] == ["bounce@example.org", "agent@localhost", "p@x.test"], json.dumps(rows))
    must(sorted(rows[0]["to"]) == ["hidden@example.org", "one@example.org", "two@example.org"], str(rows[0]))
    must(rows[5]["to"] == ["q@x.test", "r@x.test"], str(rows[5]))
    must(rows[6]["to"] == ["one@example.org", "two@example.org"], str(rows[6]))
    must(content(directory, rows[6]) == b"To: one@example.org\r\nX-Bcc: two@example.org\r\nSubject: copies\r\n\r\nx\r\n", "another field was changed")
    must(end["received"] == 7 and end["listed"] == 7 and not end["ended"], str(end))
    first = content(directory, rows[0])
    must(b"From: WordPress <wordpress@example.org>" in first, first.decode())
    must(b"From: Shop <shop@localhost.test>" in content(directory, rows[1]), "a named sender was changed")
    must(b"hidden@" not in first and first.endswith(b"\r\n\r\nHello\r\n.\r\n..dots\r\n"), first.decode())
    must(b"Content-Disposition: attachment" in content(directory, rows[2]), "no attachment")
    must(any("7 mails were sent and captured" in notice for notice in answer.result.get("notices", [])), str(answer.result.get("notices", [])))
    bench.call("artifacts", "verify", "--bundle", directory, "--state", bench.state, "--json").expect(0)


def test_run_without_mail_has_no_mail_list_or_notice(bench):
    answer = bench.agent("true")
    answer.expect(0)
    must(not os.path.exists(os.path.join(directory_of(answer), "files", "runtime-evidence", "mail.jsonl")), "a mail list exists")
    must("mail" not in json.dumps(answer.result.get("notices", [])), str(answer.result.get("notices", [])))


def test_mail_sent_through_a_mock_phpmailer_is_not_captured(bench):
    """WordPress core's test suite replaces `$phpmailer` with a mock that stores mails instead of sending them."""
    answer = bench.agent(r"""
cat >/tmp/mock.php <<'PHP'
<?php
require_once ABSPATH . WPINC . '/PHPMailer/PHPMailer.php';
require_once ABSPATH . WPINC . '/PHPMailer/Exception.php';
require_once ABSPATH . WPINC . '/class-wp-phpmailer.php';
class MockPHPMailer extends WP_PHPMailer {
	public $mock_sent = array();
	public function postSend() {
		$this->mock_sent[] = array( 'to' => $this->to, 'subject' => $this->Subject );
		return true;
	}
}
$GLOBALS['phpmailer'] = new MockPHPMailer( true );
$sent                 = wp_mail( 'one@example.org', 'mocked', 'x' );
file_put_contents( '/workspace/plugin/seen.json', wp_json_encode( array( $sent, $GLOBALS['phpmailer']->mock_sent[0]['subject'] ?? '' ) ) );
PHP
wp eval-file /tmp/mock.php
""")
    answer.expect(0)
    directory = directory_of(answer)
    must('[true,"mocked"]' in patch_of(directory), patch_of(directory))
    must(not os.path.exists(os.path.join(directory, "files", "mail")), "a mocked mail was delivered")


def test_captured_mails_are_limited_in_number_and_size(bench):
    answer = hostile(bench, RAW + r"""
open_ones = [dial() for _ in range(100)]
# The server limits concurrent connections; the others wait.
for link, lines in open_ones:
    lines.close()
    link.close()
for number in range(300):
    assert mail(b"Subject: %d\r\n\r\nx" % number).startswith(b"250")
assert mail(b"x" * (2 << 20)).startswith(b"250")
link, lines = dial()
lines.readline()
for line in ("MAIL FROM:<a>\r\n", "RCPT TO:<b>\r\n", "DATA\r\n"):
    say(link, lines, line)
sent = 0
try:
    while sent < 1 << 30:
        sent += link.send(b"x" * 65536)
except OSError:
    pass
refused = 0
for number in range(20):
    try:
        refused += not mail(b"y" * (20 << 20)).startswith(b"250")
    except OSError:
        refused += 1
with open("bounded", "w") as file:
    file.write(f"{sent < 64 << 20} {refused > 5}\n")
""")
    answer.expect(0)
    directory = directory_of(answer)
    rows, end = log(directory)
    must(len(rows) == 200 and end["listed"] == 200 and end["received"] >= 301 and end["ended"], str(end))
    must("+True True\n" in patch_of(directory), patch_of(directory))
    must(any("mail capture was closed" in notice for notice in answer.result.get("notices", [])), str(answer.result.get("notices", [])))


def test_large_mail_is_truncated_and_marked(bench):
    answer = hostile(bench, RAW + r"""
for size in (2 << 20, 100):
    assert mail(b"Subject: large\r\n\r\n" + b"z" * size).startswith(b"250")
""")
    directory = directory_of(answer)
    rows, _ = log(directory)
    must(rows[0]["truncated"] is True and rows[0]["bytes"] > 2 << 20, str(rows[0]))
    must(900_000 < len(content(directory, rows[0])) <= 1 << 20, "the stored part of the mail has the wrong size")
    must("truncated" not in rows[1] and len(content(directory, rows[1])) == rows[1]["bytes"], str(rows[1]))


def test_unfinished_smtp_conversation_does_not_delay_other_mail(bench):
    answer = hostile(bench, RAW + r"""
def half(subject):
    link, lines = dial()
    lines.readline()
    for line in ("MAIL FROM:<half@x.test>\r\n", "RCPT TO:<b@x.test>\r\n", "DATA\r\n"):
        say(link, lines, line)
    link.sendall(b"Subject: " + subject + b"\r\n\r\nand")
    return link, lines

link, lines = half(b"half")
late, replies = half(b"late")
assert mail(b"Subject: whole\r\n\r\nx").startswith(b"250")
# The server served other clients before this idle connection timed out, so this one can continue.
assert say(late, replies, b" on\r\n.\r\n").startswith(b"250")
# The connection stays open until the guest ends.
subprocess.Popen(["sleep", "1000"], pass_fds=[link.fileno()], start_new_session=True)
""")
    answer.expect(0)
    rows, end = log(directory_of(answer))
    must([row["subject"] for row in rows] == ["whole", "late"] and end["received"] == 2, str(rows))


def test_mail_cannot_inject_terminal_escapes_or_file_names(bench):
    answer = hostile(bench, RAW + r"""
evil = "Subject: a\x1b[2Jb\u202ec\x00d\r\nContent-Disposition: attachment; filename=../../../x\r\nX: ../../y\r\n\r\nx"
assert mail(evil.encode(), to="../../z\x1b[2J@x").startswith(b"250")
assert mail(b"Subject: latin \xe4\r\n\r\n\xff").startswith(b"250")
""")
    answer.expect(0)
    directory = directory_of(answer)
    rows, _ = log(directory)
    must([row["kept"] for row in rows] == ["files/mail/0001.eml", "files/mail/0002.eml"], str(rows))
    must(sorted(os.listdir(os.path.join(directory, "files", "mail"))) == ["0001.eml", "0002.eml"], "other files")
    with open(os.path.join(directory, "files", "runtime-evidence", "mail.jsonl"), "rb") as file:
        must(b"\x1b" not in file.read(), "an escape in the list")
    must(content(directory, rows[1]).startswith(b"Subject: latin \xe4\r\n"), "bytes as they were received")
    must("\x1b" not in answer.stdout + answer.stderr, "an escape on the terminal")


def test_mail_with_a_secret_is_stored_redacted_or_withheld_if_not_utf8(bench):
    script = r"""
printf 'Subject: s hunter2-hunter2-hunter2\n\nkey hunter2-hunter2-hunter2 end\n' | sendmail one@example.org
printf 'Subject: t\n\n\344 hunter2-hunter2-hunter2 end\n' | sendmail one@example.org
"""
    run = SupervisorClient(bench, script, redact=[SECRET]).spawn().accepted()
    end = run.await_end()
    must(end["result"]["outcome"] == "no_op", str(end["result"]))
    directory = end["result"]["artifacts"]["path"]
    rows, _ = log(directory)
    text = content(directory, rows[0]).decode()
    must("key [REDACTED" in text and rows[0]["subject"].startswith("s [REDACTED"), text)
    must(rows[1]["kept"] is None and rows[1]["reason"] == "contains-secret", str(rows[1]))
    for base, _, names in os.walk(directory):
        for name in names:
            with open(os.path.join(base, name), "rb") as file:
                must(SECRET.encode() not in file.read(), name)


def test_mail_list_distinguishes_agent_and_check_phases(bench):
    answer = bench.agent(r"printf 'Subject: work\n\nx' | sendmail a@x.test",
                         "--check", "sh -c 'echo Subject: check | sendmail a@x.test'")
    answer.expect(0)
    rows, _ = log(directory_of(answer))
    must([(row["phase"], row["subject"]) for row in rows] == [("work", "work"), ("check", "check")], str(rows))


def test_guest_cannot_remove_captured_mail_or_bind_port_25(bench):
    """The guest has neither the listening socket nor the mail list."""
    answer = bench.agent(r"""
printf 'Subject: regretted\n\nx' | sendmail a@x.test
cat >/tmp/bind.py <<'PYTHON'
import socket
one = socket.socket()
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
one.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
try:
    one.bind(("127.0.0.1", 25))
    one.listen()
    print("bound", file=open("/workspace/plugin/bound", "w"))
except OSError:
    pass
# Control: binding another port works.
one = socket.socket()
one.bind(("127.0.0.1", 2525))
one.listen()
print("control", file=open("/workspace/plugin/control", "w"))
PYTHON
python3 /tmp/bind.py
find / -xdev -name '*.eml' -o -name 'mail.jsonl' 2>/dev/null >/workspace/plugin/found
printf 'Subject: second\n\nx' | sendmail a@x.test
""")
    answer.expect(0)
    directory = directory_of(answer)
    rows, _ = log(directory)
    must([row["subject"] for row in rows] == ["regretted", "second"], str(rows))
    patch = patch_of(directory)
    must("+control" in patch and "bound" not in patch and ".eml" not in patch, patch)


def mails(bench, run, *arguments):
    return bench.call("runs", "mail", run, *arguments, "--state", bench.state)


def test_runs_mail_command_lists_and_prints_the_mails_of_a_run(bench):
    answer = hostile(bench, RAW + r"""
assert mail(b"From: x\r\nSubject: =?UTF-8?B?w6Q=?= one\r\nContent-Transfer-Encoding: base64\r\n\r\naGVsbG8gw7w=\r\n").startswith(b"250")
assert mail(b"Subject: two\x1b[2J\r\n\r\nbody \xff").startswith(b"250")
""")
    run = os.path.basename(directory_of(answer))
    lines = mails(bench, run).expect(0).stdout.splitlines()
    must(lines[0].split() == ["NUMBER", "RECEIVED", "PHASE", "FROM", "TO", "SUBJECT"] and len(lines) == 3, str(lines))
    must(lines[1].endswith("a@x.test  b@x.test  ä one") and "\x1b" not in lines[2], str(lines))
    document = mails(bench, run, "--json").expect(0).json
    must(document["schema"] == "wp-codebox/run-mail/v1" and document["received"] == 2 and document["run_id"] == run, str(document))
    shown = mails(bench, run, "1").expect(0).stdout
    must("Subject: ä one\n" in shown and shown.endswith("\n\nhello ü\n"), shown)
    raw = mails(bench, run, "1", "--raw").expect(0).stdout
    must(raw.rstrip().endswith("\r\n\r\naGVsbG8gw7w=") and raw.startswith("From: x"), raw)
    must(mails(bench, run, "1", "--json").expect(0).json["content"].endswith("aGVsbG8gw7w=\r\n\r\n"), "the content")
    must("contentBase64" in mails(bench, run, "2", "--json").expect(0).json, "bytes that are not text")
    mails(bench, run, "3", "--json").expect(1, "wp_codebox_input_invalid")
    none = os.path.basename(directory_of(bench.agent("true")))
    must(mails(bench, none, "--json").expect(0).json["mails"] == [], "a run without mail lists mails")
    with open(os.path.join(directory_of(answer), "files", "runtime-evidence", "mail.jsonl"), "r+", encoding="utf-8") as file:
        file.truncate(20)
    must("restore the bundle from a backup" in str(mails(bench, run, "--json").expect(1, "wp_codebox_artifact_verification_failed")), "another error")


def test_runs_mail_command_prints_the_mails_of_a_held_sandbox(bench):
    place = [*bench.paths(), "--site", bench.site]
    source = bench.source("plugin-mail")
    run = bench.call("boot", *place, "--mount", f"{source}:/workspace/plugin", "--hold", "2m", "--json").expect(0).json["id"]
    try:
        for number in (1, 2):
            code = f"printf 'Subject: live {number}\\n\\nlive body\\n' | sendmail a@x.test"
            bench.call("exec", "--state", bench.state, run, "--", "sh", "-c", code).expect(0)
            document = mails(bench, run, "--json").expect(0).json
            must([row["subject"] for row in document["mails"]] == [f"live {n}" for n in range(1, number + 1)], str(document))
        must(mails(bench, run, "2").expect(0).stdout.endswith("\n\nlive body\n"), "the body")
        mails(bench, run, "3", "--json").expect(1, "wp_codebox_input_invalid")
    finally:
        bench.call("runs", "cancel", run, "--state", bench.state)
