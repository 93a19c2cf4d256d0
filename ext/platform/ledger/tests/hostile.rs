//! Altered, removed and replaced files: each is refused or reported, and the same call on the
//! unchanged ledger succeeds.
#![allow(clippy::unwrap_used)]

mod bench;

use bench::*;
use rusqlite::Connection;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use wp_codebox_contracts::{CodedError, ErrorCode};
use wp_codebox_ledger::{Actuals, Ledger, LedgerError, LedgerFiles, Usage};

/// Creates a ledger with six entries: two grants, two sandboxes of `shop`.
fn six() -> Bench {
    let (bench, ledger) = Bench::funded();
    let _ = ledger.grant(&grant_of("blog", "g2", 50), NOW).unwrap();
    for name in ["run_1", "run_2"] {
        let _ = ledger
            .reserve(&account("shop"), &sandbox(name), &quote(60), NOW)
            .unwrap();
    }
    for name in ["run_1", "run_2"] {
        let usage = Usage::alive(1000);
        let _ = ledger
            .settle(&sandbox(name), Actuals::Used(&usage), later(1000))
            .unwrap();
    }
    assert!(ledger.verify(&[]).unwrap().valid);
    bench
}

/// Changes the database without the ledger: drops the triggers that refuse changes, then restores
/// them.
fn tamper(bench: &Bench, change: &str) {
    let connection = Connection::open(&bench.files.database).unwrap();
    let triggers: Vec<(String, String)> = connection
        .prepare("SELECT name, sql FROM sqlite_schema WHERE type = 'trigger'")
        .unwrap()
        .query_map([], |row| Ok((row.get(0)?, row.get(1)?)))
        .unwrap()
        .map(Result::unwrap)
        .collect();
    assert_eq!(triggers.len(), 2);
    for (name, _) in &triggers {
        connection
            .execute(&format!("DROP TRIGGER {name}"), [])
            .unwrap();
    }
    assert!(connection.execute(change, []).unwrap() > 0, "{change}");
    for (_, sql) in &triggers {
        connection.execute(sql, []).unwrap();
    }
}

/// Returns the numbers of the entries that a verification names.
fn named(ledger: &Ledger) -> Vec<u64> {
    let verification = ledger.verify(&[]).unwrap();
    assert!(!verification.valid);
    verification.problems.iter().filter_map(|p| p.seq).collect()
}

#[test]
fn altered_entry_is_found_by_verification_and_operations_on_its_account_fail() {
    let bench = six();
    tamper(
        &bench,
        "UPDATE entries SET content = replace(content, '\"granted\":50,', '\"granted\":99,') WHERE seq = 2",
    );
    let ledger = bench.open();
    assert_eq!(named(&ledger)[0], 2);
    let balance = ledger.balance(&account("blog")).unwrap_err();
    assert_eq!(balance.code(), ErrorCode::LedgerDamaged);
    let reserve = ledger.reserve(&account("blog"), &sandbox("x"), &quote(0), NOW);
    assert_eq!(reserve.unwrap_err().code(), ErrorCode::LedgerDamaged);
    // Other accounts are not concerned.
    assert!(ledger.balance(&account("shop")).is_ok());
}

#[test]
fn altered_columns_hashes_and_order_are_found_by_verification() {
    for (change, first) in [
        ("UPDATE entries SET account = 'shop' WHERE seq = 2", 2),
        (
            "UPDATE entries SET subject = 'sandbox/other' WHERE seq = 3",
            3,
        ),
        ("UPDATE entries SET kind = 'extend' WHERE seq = 3", 3),
        (
            "UPDATE entries SET hash = replace(hash, substr(hash, 1, 1), 'x') WHERE seq = 3",
            3,
        ),
        (
            "UPDATE entries SET content = content || ' ' WHERE seq = 4",
            4,
        ),
        ("DELETE FROM entries WHERE seq = 4", 5),
        ("DELETE FROM entries WHERE seq = 1", 2),
        ("UPDATE entries SET seq = -3 WHERE seq = 3", 4),
    ] {
        let bench = six();
        tamper(&bench, change);
        assert_eq!(named(&bench.open())[0], first, "{change}");
    }
}

#[test]
fn entry_altered_together_with_its_hash_breaks_the_chain_at_the_next_entry() {
    use sha2::{Digest as _, Sha256};
    let bench = six();
    let ledger = bench.open();
    let entry = serde_json::to_value(&all(&ledger)[1]).unwrap();
    drop(ledger);
    let mut content = entry.clone();
    content.as_object_mut().unwrap().shift_remove("hash");
    let text = content.to_string().replace(":50", ":90");
    let previous = entry["previous"].as_str().unwrap();
    let digest = Sha256::digest(format!("{previous}\n{text}"));
    let hash: String = digest.iter().map(|byte| format!("{byte:02x}")).collect();
    tamper(
        &bench,
        &format!("UPDATE entries SET content = '{text}', hash = '{hash}' WHERE seq = 2"),
    );
    let ledger = bench.open();
    // The forged entry itself is consistent: its account has more credits now.
    assert_eq!(balance(&ledger, "blog"), [90, 0, 0, 90]);
    assert_eq!(named(&ledger), [3]);
}

#[test]
fn ledger_that_lacks_its_last_entries_is_refused_at_open() {
    for count in 1..=6 {
        let bench = six();
        tamper(
            &bench,
            &format!("DELETE FROM entries WHERE seq > {}", 6 - count),
        );
        let error = bench.refusal();
        assert_eq!(error.code(), ErrorCode::LedgerDamaged);
        let text = format!("lacks its last {count} entries");
        assert!(error.to_string().contains(&text), "{error}");
    }
    drop(six().open());
}

/// Copies the database as an operator would, with no process using it.
fn copy(bench: &Bench, name: &str) -> PathBuf {
    let to = bench.directory.path().join(name);
    for suffix in ["-wal", "-shm"] {
        let side = PathBuf::from(format!("{}{suffix}", bench.files.database.display()));
        assert!(!side.exists(), "a closed ledger is one file");
    }
    fs::copy(&bench.files.database, &to).unwrap();
    to
}

#[test]
fn older_copy_of_the_database_is_refused_and_the_newest_is_accepted() {
    let bench = six();
    let old = copy(&bench, "old");
    let ledger = bench.open();
    let _ = ledger.grant(&grant_of("shop", "g3", 5), NOW).unwrap();
    drop(ledger);
    let new = copy(&bench, "new");
    fs::copy(&old, &bench.files.database).unwrap();
    let error = bench.refusal();
    assert_eq!(error.code(), ErrorCode::LedgerDamaged);
    assert!(error.to_string().contains("older copy"), "{error}");
    fs::copy(&new, &bench.files.database).unwrap();
    assert_eq!(balance(&bench.open(), "shop")[0], 1005);
    fs::remove_file(&bench.files.database).unwrap();
    let gone = bench.refusal();
    assert_eq!(gone.code(), ErrorCode::LedgerDamaged);
    assert!(
        !bench.files.database.exists(),
        "no new ledger replaces a lost one"
    );
}

/// A head is the number of entries and the hash of the last one. The anchor file has the newest
/// head.
#[test]
fn older_copy_of_database_and_anchor_together_is_revealed_by_a_head_known_from_elsewhere() {
    let bench = six();
    let (old, anchor) = (copy(&bench, "old"), bench.directory.path().join("anchor"));
    fs::copy(&bench.files.anchor, &anchor).unwrap();
    let ledger = bench.open();
    let early = ledger.head().unwrap();
    let _ = ledger.grant(&grant_of("shop", "g3", 5), NOW).unwrap();
    let late = ledger.head().unwrap();
    assert!(ledger.verify(&[early.clone(), late.clone()]).unwrap().valid);
    drop(ledger);
    fs::copy(&old, &bench.files.database).unwrap();
    fs::copy(&anchor, &bench.files.anchor).unwrap();
    let ledger = bench.open();
    assert!(ledger.verify(std::slice::from_ref(&early)).unwrap().valid);
    let verification = ledger.verify(&[early, late]).unwrap();
    assert!(!verification.valid);
    assert_eq!(verification.problems[0].seq, Some(7));
}

/// The anchor is a file beside the database with the id, the length and the last hash of the
/// ledger.
#[test]
fn anchor_that_is_missing_older_foreign_or_malformed_is_refused() {
    let bench = six();
    let good = fs::read_to_string(&bench.files.anchor).unwrap();
    let other = fs::read_to_string(six().files.anchor).unwrap();
    fs::remove_file(&bench.files.anchor).unwrap();
    let missing = bench.refusal();
    assert!(missing.to_string().contains("6 entries"), "{missing}");
    let ledger_id: serde_json::Value = serde_json::from_str(&good).unwrap();
    let old = format!(
        r#"{{"ledger":{},"head":{{"length":0,"hash":{0}}}}}"#,
        ledger_id["ledger"]
    );
    for (text, part) in [
        (other.as_str(), "another ledger"),
        (old.as_str(), "last 6 entries"),
        ("", "is not the anchor file"),
        ("{}", "is not the anchor file"),
        (
            &good.replace("\"head\"", "\"x\":1,\"head\""),
            "is not the anchor file",
        ),
        (&good.replace("\"length\":6", "\"length\":7"), "older copy"),
        (&good.replace("\"length\":6", "\"length\":5"), "entry 5"),
        (&"x".repeat(100_000), "is not the anchor file"),
    ] {
        fs::write(&bench.files.anchor, text).unwrap();
        let error = bench.refusal();
        assert_eq!(error.code(), ErrorCode::LedgerDamaged, "{error}");
        assert!(error.to_string().contains(part), "{part}: {error}");
    }
    fs::write(&bench.files.anchor, &good).unwrap();
    assert!(bench.open().verify(&[]).unwrap().valid);
}

#[test]
fn anchor_that_cannot_be_written_is_reported_and_the_repeated_operation_repairs_it() {
    let (bench, ledger) = Bench::funded();
    let blocker = bench.files.anchor.with_file_name(".anchor.json.new");
    fs::create_dir(&blocker).unwrap();
    let (shop, one) = (account("shop"), sandbox("run_1"));
    let error = ledger.reserve(&shop, &one, &quote(60), NOW).unwrap_err();
    assert!(
        matches!(error, LedgerError::Unanchored { seq: 2, .. }),
        "{error}"
    );
    assert_eq!(error.code(), ErrorCode::LedgerUnavailable);
    // Nothing more is written until the anchor is.
    let second = ledger.grant(&grant_of("shop", "g2", 1), NOW).unwrap_err();
    assert_eq!(second.code(), ErrorCode::LedgerUnavailable);
    fs::remove_dir(&blocker).unwrap();
    let repeated = ledger.reserve(&shop, &one, &quote(60), NOW).unwrap();
    assert_eq!(repeated.entry().content.seq, 2);
    assert_eq!(all(&ledger).len(), 2);
    check(&ledger, &["shop"]);
}

/// Puts something at a path of a ledger that does not exist yet, and returns the error of opening.
fn refused_with(at: fn(&LedgerFiles) -> PathBuf, put: impl FnOnce(&Path)) -> LedgerError {
    let bench = Bench::new();
    for directory in [&bench.files.database, &bench.files.anchor] {
        fs::create_dir(directory.parent().unwrap()).unwrap();
        let mode = fs::Permissions::from_mode(0o700);
        fs::set_permissions(directory.parent().unwrap(), mode).unwrap();
    }
    put(&at(&bench.files));
    bench.refusal()
}

fn fifo(path: &Path) {
    rustix::fs::mknodat(
        rustix::fs::CWD,
        path,
        rustix::fs::FileType::Fifo,
        rustix::fs::Mode::from_raw_mode(0o600),
        0,
    )
    .unwrap();
}

#[test]
fn links_fifos_and_directories_in_place_of_a_file_are_refused() {
    let paths: [fn(&LedgerFiles) -> PathBuf; 5] = [
        |files| files.database.clone(),
        |files| files.anchor.clone(),
        |files| files.database.with_file_name("ledger.sqlite.lock"),
        |files| files.database.with_file_name("ledger.sqlite-wal"),
        |files| files.database.with_file_name("ledger.sqlite-journal"),
    ];
    let elsewhere = directory();
    for at in paths {
        let target = elsewhere.path().join("target");
        for put in [
            (|path: &Path, target: &Path| symlink(target, path).unwrap()) as fn(&Path, &Path),
            |path, target| {
                fs::write(target, "").unwrap();
                symlink(target, path).unwrap();
            },
            |path, target| fs::hard_link(target, path).unwrap(),
            |path, _| fifo(path),
            |path, _| fs::create_dir(path).unwrap(),
        ] {
            let error = refused_with(at, |path| put(path, &target));
            assert_eq!(error.code(), ErrorCode::LedgerDamaged, "{error}");
            assert!(error.to_string().contains("not a regular file"), "{error}");
        }
        assert_eq!(
            fs::metadata(&target).unwrap().len(),
            0,
            "nothing was written elsewhere"
        );
    }
    // Positive control: empty directories.
    drop(Bench::new().open());
}

#[test]
fn directory_or_file_that_another_user_may_write_is_refused_and_a_private_one_is_used() {
    let bench = six();
    let directory = bench.files.database.parent().unwrap();
    for path in [directory, &bench.files.database, &bench.files.anchor] {
        let mode = fs::metadata(path).unwrap().mode();
        fs::set_permissions(path, fs::Permissions::from_mode(mode | 0o020)).unwrap();
        let error = bench.refusal();
        assert!(
            error.to_string().contains("another user can write to"),
            "{error}"
        );
        fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        drop(bench.open());
    }
    let mode = |path: &Path| fs::metadata(path).unwrap().mode() & 0o777;
    assert_eq!(mode(directory), 0o700);
    assert_eq!(mode(&bench.files.database), 0o600);
    assert_eq!(mode(&bench.files.anchor), 0o600);
}

#[test]
fn database_that_is_not_sqlite_or_has_another_schema_is_refused() {
    let text = refused_with(
        |files| files.database.clone(),
        |path| {
            fs::write(path, "account,credits\nshop,1000\n".repeat(100)).unwrap();
            fs::set_permissions(path, fs::Permissions::from_mode(0o600)).unwrap();
        },
    );
    assert_eq!(text.code(), ErrorCode::LedgerDamaged, "{text}");
    let other = refused_with(
        |files| files.database.clone(),
        |path| {
            let connection = Connection::open(path).unwrap();
            connection
                .execute("CREATE TABLE users (name TEXT)", [])
                .unwrap();
        },
    );
    assert!(other.to_string().contains("another program"), "{other}");
    for change in [
        "PRAGMA user_version = 0",
        "CREATE TRIGGER more AFTER INSERT ON entries BEGIN DELETE FROM ledger; END",
        "CREATE VIEW more AS SELECT * FROM entries",
        "DROP INDEX entries_once",
    ] {
        let bench = six();
        let connection = Connection::open(&bench.files.database).unwrap();
        connection.execute_batch(change).unwrap();
        drop(connection);
        let error = bench.refusal();
        assert!(
            matches!(error, LedgerError::NotLedger { .. }),
            "{change}: {error}"
        );
    }
    let bench = six();
    let connection = Connection::open(&bench.files.database).unwrap();
    connection.execute_batch("PRAGMA user_version = 2").unwrap();
    drop(connection);
    let newer = bench.refusal();
    assert_eq!(newer.code(), ErrorCode::LedgerUnavailable, "{newer}");
    assert!(
        newer.to_string().contains("use the newer wp-codebox"),
        "{newer}"
    );
}

#[test]
fn missing_ledger_is_created_only_on_request() {
    let bench = Bench::new();
    let error = Ledger::open_existing(&bench.files).unwrap_err();
    assert_eq!(error.code(), ErrorCode::LedgerUnavailable);
    assert_eq!(fs::read_dir(bench.directory.path()).unwrap().count(), 0);
    drop(bench.open());
    drop(Ledger::open_existing(&bench.files).unwrap());
}

#[test]
fn sql_statements_that_change_or_delete_entries_fail() {
    let bench = six();
    let connection = Connection::open(&bench.files.database).unwrap();
    for statement in ["DELETE FROM entries", "UPDATE entries SET account = 'x'"] {
        let error = connection.execute(statement, []).unwrap_err();
        assert!(error.to_string().contains("entries are never"), "{error}");
    }
}
