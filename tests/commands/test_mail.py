"""Mail commands as steps of a run."""

import json

import pytest
from steps import Group, Step, cases, equal, refused

from harness import must

INSPECT = "host/smtp.inspect"
RESET = "host/smtp.reset"
PHP = "wordpress.run-php"
INVALID = "wp_codebox_input_invalid"
# PHP code of a minimal SMTP client for the guest.
SMTP = """
function mail_by_smtp( $to, $content ) {
    $link = fsockopen( '127.0.0.1', 25 );
    $ask  = function ( $text ) use ( $link ) { fwrite( $link, $text ); return fgets( $link ); };
    fgets( $link );
    foreach ( array( 'HELO x', 'MAIL FROM:<raw@x.test>', "RCPT TO:<$to>", 'DATA' ) as $line ) { $ask( "$line\r\n" ); }
    return $ask( $content . "\r\n.\r\n" );
}
"""


def mails(*subjects, matched=None, received=None):
    def check(document):
        equal([row["subject"] for row in document["messages"]], list(subjects), "subjects")
        equal(document["service"], "mail")
        equal(document["matched"], len(subjects) if matched is None else matched, "matched")
        if received is not None:
            equal(document["received"], received, "received")
    return check


def both(*checks):
    return lambda document: [check(document) for check in checks]


def links(*wanted):
    return lambda document: equal([row["links"] for row in document["messages"]], [list(wanted)], "links")


def inspect(name, expect, **args):
    return Step(INSPECT, {"service": "mail", **{key.replace("_", "-"): value for key, value in args.items()}}, expect, name=name)


def labelled(document):
    equal(document["messages"][0]["to"], ["buyer", "two@example.org"])
    equal(document["messages"][0]["schema"], "wp-codebox/mail-message/v1")
    equal(document["messages"][0]["kept"], "files/mail/0001.eml")


def bounded(document):
    equal((len(document["messages"]), document["matched"]), (100, 197))
    # The list has the newest 100 stored mails; earlier and dropped mails are only counted.
    equal([document["messages"][at]["subject"] for at in (0, -1)], ["flood 95", "flood 194"])
    must(document["received"] > 250 and len(json.dumps(document)) < 300_000, f"{document['received']} {len(json.dumps(document))}")


def everything_is_in_the_bundle(bench, result):
    with open(f"{result['artifacts']['path']}/files/runtime-evidence/mail.jsonl", encoding="utf-8") as file:
        rows = [json.loads(line) for line in file]
    equal([row["subject"] for row in rows[:3]], ["Your order", "by hand", "by smtp"])
    must(rows[-1]["listed"] == 200 and rows[-1]["received"] > 250, str(rows[-1]))


GROUPS = [Group("mail", [
    inspect("the mail list is empty at first", mails(received=0)),
    Step(PHP, {"code": "echo json_encode( wp_mail( array( 'Buyer@example.org', 'two@example.org' ), 'Your order', \"See http://localhost/order?key=1&x=2.\\nOr <https://elsewhere.test/>\" ) );"},
         lambda document: equal(document, True), name="wp_mail sends a mail"),
    Step(PHP, {"code": "exec( \"printf 'Subject: by hand\\n\\nno link' | sendmail one@example.org\", $out, $exit ); echo json_encode( $exit );"},
         lambda document: equal(document, 0), name="sendmail sends a mail"),
    Step(PHP, {"code": SMTP + "echo json_encode( substr( mail_by_smtp( 'one@example.org', \"Subject: by smtp\\r\\n\\r\\nhttp://localhost/second\" ), 0, 3 ) );"},
         lambda document: equal(document, "250"), name="an SMTP client sends a mail"),
    inspect("all captured mails are listed", both(mails("Your order", "by hand", "by smtp", received=3))),
    inspect("limit 1 returns the newest mail", mails("by smtp", matched=3), limit="1"),
    inspect("mails are selected by recipient", both(mails("Your order", received=3), labelled), recipient="buyer@example.org", recipient_label="buyer"),
    inspect("mails are selected by subject", mails("by hand", "by smtp"), subject_marker="by "),
    inspect("mails are selected by link", both(mails("Your order"), links("http://localhost/order?key=1&x=2")), link_marker="/order?"),
    inspect("two selectors that match different mails return no mail", mails(), subject_marker="by ", link_marker="/order?"),
    Step(RESET, {"service": "mail"}, lambda document: equal(document, {"removed": 3})),
    inspect("the mail list is empty after a reset", mails(received=0)),
    Step(RESET, {"service": "mail"}, lambda document: equal(document, {"removed": 0}), name="a reset of an empty mail list removes nothing"),
    Step(PHP, {"code": "wp_mail( 'one@example.org', 'after', 'x' );"}, name="setup: send a mail after the reset"),
    inspect("only the mail sent after the reset is listed", mails("after", received=1)),
    Step(INSPECT, {"service": "mail", "recipient-label": "x"}, fails=INVALID, says="recipient=", name="recipient-label without recipient is refused"),
    Step(PHP, {"code": SMTP + r"""
mail_by_smtp( 'one@example.org', "Subject: huge\r\n\r\n" . str_repeat( 'http://localhost/x ', 1 << 18 ) );
for ( $number = 0; $number < 260; $number++ ) {
    $content = "Subject: flood $number\r\n\r\n" . str_repeat( "http://localhost/$number/" . str_repeat( 'y', 60 ) . ' ', 2000 );
    mail_by_smtp( 'one@example.org', $content );
}
echo json_encode( 1 );
"""}, lambda document: equal(document, 1), name="setup: send many and huge mails"),
    inspect("the listed mails and their sizes stay within the limits", bounded, limit="100"),
    Step(RESET, {"service": "mail"}, lambda document: equal(document, {"removed": 262}), name="a reset also removes mails beyond the list limit"),
], after=everything_is_in_the_bundle)]


def call(command, *args):
    return {"command": command, "args": list(args)}


CASES = [
    ("an unknown service is refused", refused(call(INSPECT, "service=other"), INVALID, "one of mail")),
    ("a reset without a service is refused", refused(call(RESET), INVALID, "required")),
    ("an unknown argument of inspect is refused", refused(call(INSPECT, "service=mail", "subject=x"), INVALID, "subject-marker")),
    ("an argument of inspect is refused by reset", refused(call(RESET, "service=mail", "limit=1"), INVALID, "accepted are")),
    ("a limit above 100 is refused", refused(call(INSPECT, "service=mail", "limit=101"), INVALID, "1 to 100")),
    ("a recipient-label with a space is refused", refused(call(INSPECT, "service=mail", "recipient=a@x", "recipient-label=a b"), INVALID, "letters")),
]


@pytest.mark.parametrize("case", cases(GROUPS, CASES))
def test_mail_command_prints_the_expected_document_or_fails_with_the_expected_code(bench, case):
    case(bench)
