"""`wp-codebox ledger`: grants, balances, entries, verification, export and prices, without a sandbox."""

import csv
import hashlib
import io
import json
import os
import sqlite3
import subprocess

import pytest

from harness import must

PRICES = {"schema": "wp-codebox/meter-prices/v1", "unit": "EUR/1000000",
          "extensions": {"native": {"per_second": 3, "per_creation": 100, "gpu_per_second": 50, "key": "platform"}}}


@pytest.fixture
def ledger(bench, request):
    """Returns a function that calls a subcommand of `ledger` on a state directory of this case."""
    state = os.path.join(bench.directory, request.node.name)
    os.mkdir(state, 0o700)
    bench.own(state)

    def call(command, *arguments):
        return bench.call("ledger", command, *arguments, "--state", state, *([] if command == "export" else ["--json"]))

    call.state = state
    call.plain = lambda command, *arguments: bench.call("ledger", command, *arguments, "--state", state)
    return call


def grant(ledger, account, amount, reference, *arguments):
    return ledger("grant", account, str(amount), "--reference", reference, "--reason", f"grant {reference}", *arguments)


def test_granted_credits_are_in_balance_entries_and_verification(ledger):
    first = grant(ledger, "shop", 500, "invoice-1", "--actor", "adm:alice").expect(0).json
    must(first["schema"] == "wp-codebox/ledger-grant/v1" and first["recorded"] == "now" and first["entry"]["seq"] == 1, str(first))
    must(first["entry"]["actor"] == "adm:alice" and first["entry"]["kind"] == "grant", str(first))
    grant(ledger, "blog", 7, "invoice-2").expect(0)
    again = grant(ledger, "shop", 500, "invoice-1").expect(0).json
    must(again["recorded"] == "before" and again["entry"] == first["entry"], str(again))
    one = ledger("balance", "shop").expect(0).json
    must(one["accounts"] == [{"account": "shop", "granted": 500, "reserved": 0, "settled": 0, "available": 500}], str(one))
    every = ledger("balance").expect(0).json
    must([row["account"] for row in every["accounts"]] == ["blog", "shop"] and every["next"] is None, str(every))
    page = ledger("balance", "--limit", "1").expect(0).json
    must(page["next"] == "blog" and ledger("balance", "--after", "blog").json["accounts"] == one["accounts"], str(page))
    listed = ledger("entries", "--limit", "1").expect(0).json
    must(listed["length"] == 2 and listed["entries"] == [first["entry"]] and listed["next"] == 1, str(listed))
    rest = ledger("entries", "--after", "1").expect(0).json
    must([row["reference"] for row in rest["entries"]] == ["invoice-2"] and rest["next"] is None, str(rest))
    told = ledger("verify").expect(0).json
    must(told["valid"] and told["head"]["length"] == 2 and told["totals"]["granted"] == 507 and told["accounts"] == 2, str(told))


def test_ledger_output_without_json_option_is_a_table_or_a_sentence(ledger):
    text = ledger.plain("grant", "shop", "500", "--reference", "invoice-1", "--reason", "January").stdout
    must("entry 1" in text and "500 available" in text, text)
    balance = ledger.plain("balance")
    must(balance.exit == 0 and "AVAILABLE" in balance.stdout and "shop" in balance.stdout, str(balance))
    must("invoice-1: January (cli)" in ledger.plain("entries").stdout, "the entry is not shown")
    head = ledger("verify").json["head"]
    text = ledger.plain("verify").stdout
    must(f"valid, 1:{head['hash']}" in text, text)


def test_export_as_json_lines_has_the_hash_chain_of_the_entries_and_csv_has_the_same_entries(ledger):
    for number in range(1, 4):
        grant(ledger, "shop", number, f"i{number}").expect(0)
    answer = ledger("export").expect(0)
    entries = [json.loads(line) for line in answer.stdout.splitlines()]
    must([entry["amount"] for entry in entries] == [1, 2, 3], str(answer))
    for entry, line in zip(entries, answer.stdout.splitlines()):
        # The member `hash` is the last one; the hash covers the text without it.
        content = line[: line.index(',"hash":')] + "}"
        must(hashlib.sha256(f"{entry['previous']}\n{content}".encode()).hexdigest() == entry["hash"], line)
    must([entry["previous"] for entry in entries[1:]] == [entry["hash"] for entry in entries[:-1]], str(answer))
    rows = list(csv.DictReader(io.StringIO(ledger("export", "--format", "csv").expect(0).stdout)))
    must([(row["amount"], row["hash"]) for row in rows] == [(str(entry["amount"]), entry["hash"]) for entry in entries], str(rows))


def test_export_ends_without_an_error_if_the_pipe_is_closed_and_with_an_error_if_the_disk_is_full(ledger, bench):
    grant(ledger, "shop", 1, "i1").expect(0)
    command = f"'{bench.environment['CODEBOX']}' ledger export --state '{ledger.state}'"
    closed = subprocess.run(["bash", "-c", f"{command} | true; echo ${{PIPESTATUS[0]}}"], capture_output=True, text=True, timeout=60, check=False)
    must(closed.stdout.strip() == "0" and not closed.stderr, str(closed))
    full = subprocess.run(["bash", "-c", f"{command} >/dev/full"], capture_output=True, text=True, timeout=60, check=False)
    must(full.returncode == 1 and "cannot be written" in full.stderr, str(full))


@pytest.mark.parametrize("arguments", [
    ["a b", "1", "--reference", "i", "--reason", "r"],
    ["x" * 65, "1", "--reference", "i", "--reason", "r"],
    ["shop", "0", "--reference", "i", "--reason", "r"],
    ["shop", "9007199254740992", "--reference", "i", "--reason", "r"],
    ["shop", "1.5", "--reference", "i", "--reason", "r"],
    ["shop", "1", "--reference", "i/1", "--reason", "r"],
    ["shop", "1", "--reference", "i", "--reason", "two\nlines"],
    ["shop", "1", "--reference", "i", "--reason", "r" * 201],
    ["shop", "1", "--reason", "r"],
])
def test_malformed_grant_is_refused_and_creates_no_ledger(ledger, arguments):
    ledger("grant", *arguments).expect(1, "wp_codebox_input_invalid")
    ledger("balance").expect(125, "wp_codebox_ledger_unavailable")


def test_largest_grant_is_accepted_and_one_credit_more_is_refused(ledger):
    grant(ledger, "shop", 9007199254740991, "i1").expect(0)
    grant(ledger, "shop", 1, "i2").expect(1, "wp_codebox_input_invalid")
    grant(ledger, "blog", 1, "i2").expect(0)


def test_altered_entry_fails_verification_with_its_number(ledger):
    for number in range(1, 4):
        grant(ledger, "shop", number, f"i{number}").expect(0)
    ledger("verify").expect(0)
    with sqlite3.connect(os.path.join(ledger.state, "ledger", "ledger.sqlite")) as database:
        (trigger,) = database.execute("SELECT sql FROM sqlite_schema WHERE name = 'entries_same'").fetchone()
        database.execute("DROP TRIGGER entries_same")
        database.execute("UPDATE entries SET content = replace(content, '\"amount\":2', '\"amount\":9') WHERE seq = 2")
        database.execute(trigger)
    database.close()
    answer = ledger("verify")
    must(answer.exit == 1 and not answer.json["valid"] and not answer.json["success"], str(answer))
    must(answer.json["problems"][0]["seq"] == 2, str(answer))
    must("not valid" in ledger.plain("verify").stdout, "the plain output does not say so")


def test_older_copy_of_the_database_is_refused_and_the_newest_one_works(ledger):
    grant(ledger, "shop", 1, "i1").expect(0)
    path = os.path.join(ledger.state, "ledger", "ledger.sqlite")
    with open(path, "rb") as file:
        old = file.read()
    grant(ledger, "shop", 2, "i2").expect(0)
    with open(path, "rb") as file:
        new = file.read()
    with open(path, "wb") as file:
        file.write(old)
    answer = ledger("balance", "shop").expect(1, "wp_codebox_ledger_damaged")
    must("older copy" in answer.json["error"]["message"], str(answer))
    grant(ledger, "shop", 3, "i3").expect(1, "wp_codebox_ledger_damaged")
    with open(path, "wb") as file:
        file.write(new)
    must(ledger("balance", "shop").expect(0).json["accounts"][0]["available"] == 3, "the newest copy is refused")


def test_verification_against_an_earlier_head_fails_for_a_recreated_ledger(ledger):
    grant(ledger, "shop", 1, "i1").expect(0)
    head = ledger("verify").json["head"]
    known = f"{head['length']}:{head['hash']}"
    ledger("verify", "--known", known).expect(0)
    for name in ("ledger", "ledger-anchor"):
        directory = os.path.join(ledger.state, name)
        for file in os.listdir(directory):
            os.unlink(os.path.join(directory, file))
    grant(ledger, "shop", 1, "i1").expect(0)
    ledger("verify").expect(0)
    must(ledger("verify", "--known", known).exit == 1, "the new ledger has the old entry")
    ledger("verify", "--known", "1").expect(1, "wp_codebox_input_invalid")


def test_ledger_options_database_and_anchor_select_another_ledger(ledger, bench):
    directory = os.path.join(bench.directory, "other-disk")
    os.mkdir(directory, 0o700)
    bench.own(directory)
    places = ["--database", os.path.join(directory, "credits.db"), "--anchor", os.path.join(directory, "credits.json")]
    grant(ledger, "shop", 4, "i1", *places).expect(0)
    must(ledger("balance", *places).expect(0).json["accounts"][0]["granted"] == 4, "another ledger was read")
    ledger("balance").expect(125, "wp_codebox_ledger_unavailable")


def test_ledger_prices_prints_the_table_quotes_a_duration_and_refuses_an_invalid_table(ledger, bench):
    path = os.path.join(ledger.state, "meter-prices.json")
    with open(path, "w", encoding="utf-8") as file:
        json.dump(PRICES, file)
    must(ledger("prices").expect(0).json == PRICES, "the table is not shown")
    quote = ledger("prices", "--extension", "native", "--duration", "1500ms", "--gpu").expect(0).json
    must(quote["schema"] == "wp-codebox/meter-quote/v1" and quote["amount"] == 100 + 2 * 53 and quote["duration_ms"] == 1500, str(quote))
    must(ledger.plain("prices", "--extension", "native", "--duration", "1s").stdout == "103 EUR/1000000\n", "the plain price")
    must("PER SECOND" in ledger.plain("prices").stdout, "the plain table")
    ledger("prices", "--extension", "other", "--duration", "1s").expect(1, "wp_codebox_price_missing")
    ledger("prices", "--extension", "native", "--duration", "0s").expect(1, "wp_codebox_input_invalid")
    ledger("prices", "--extension", "native").expect(1, "wp_codebox_input_invalid")
    ledger("prices", "--prices", "/none").expect(1, "wp_codebox_prices_invalid")
    bad = os.path.join(bench.directory, "bad-prices.json")
    with open(bad, "w", encoding="utf-8") as file:
        json.dump({**PRICES, "unit": ""}, file)
    ledger("prices", "--prices", bad).expect(1, "wp_codebox_prices_invalid")
