//! Tests that an unmodified audit log verifies and that every kind of tampering is detected.

use super::*;
use serde_json::json;
use std::collections::BTreeSet;

const TIME: &str = "2026-01-01T00:00:00.000Z";

struct Log {
    dir: tempfile::TempDir,
    log: AuditLog,
}

impl Log {
    fn with(records: usize) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let state = Dir::open(dir.path()).unwrap();
        let log = AuditLog::open(&state, &SiteId::new("site-1").unwrap()).unwrap();
        let this = Self { dir, log };
        (0..records).for_each(|n| {
            this.append(&json!({"n": n, "what": "appliqué"}));
        });
        this
    }
    fn append(&self, record: &Value) -> AuditEntry {
        self.append_with(record, &Map::new()).entry
    }
    fn append_with(&self, record: &Value, kept: &Map<String, Value>) -> Appended {
        let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
        self.log
            .append(record.as_object().unwrap(), TIME, &redactor, kept)
            .unwrap()
    }
    fn read(&self, window: AuditWindow) -> Result<AuditReading, AuditError> {
        self.log.read(window, &Map::new())
    }
    fn problem(&self, kept: &Map<String, Value>) -> Option<String> {
        let reading = self.log.read(AuditWindow::Newest(100), kept).unwrap();
        assert_eq!(reading.valid, reading.problem.is_none());
        reading.problem
    }
    fn anchor(&self) -> std::path::PathBuf {
        self.dir.path().join("anchors/site-1.json")
    }
    /// Removes the last `count` records from the file.
    fn cut(&self, count: usize) {
        let text = self.text();
        let stay = text.lines().count() - count;
        let text: String = text.split_inclusive('\n').take(stay).collect();
        std::fs::write(self.path(), text).unwrap();
    }
    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("sites/site-1/audit.jsonl")
    }
    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }
    fn broken_after(self, change: impl Fn(&str) -> String) -> Option<u64> {
        std::fs::write(self.path(), change(&self.text())).unwrap();
        let reading = self.read(AuditWindow::Newest(100)).unwrap();
        assert_eq!(reading.valid, reading.broken_at.is_none());
        reading.broken_at
    }
}

/// Creates a log with this many records, all written at once, and its anchor.
fn long_log(records: u64) -> Log {
    let log = Log::with(0);
    let (mut tail, mut text) = (start(), String::new());
    for seq in 1..=records {
        let mut entry = json!({"seq": seq, "timestamp": TIME, "previous": tail.hash, "n": seq});
        let hash = link(
            &tail.hash,
            &canonical_value(&entry, OverLimit::Refuse).unwrap(),
        );
        entry["hash"] = json!(hash);
        text += &format!("{entry}\n");
        tail = Tail { seq, hash };
    }
    std::fs::write(log.path(), text).unwrap();
    let key = log.log.anchor.key().unwrap();
    log.log
        .anchor
        .write(&log.log.anchor.sign(&key, &tail, None))
        .unwrap();
    log
}

/// Returns a time at which every change made so far is older than [`SETTLED`].
fn later() -> SystemTime {
    SystemTime::now() + std::time::Duration::from_secs(60)
}

impl Log {
    fn again(&self, window: AuditWindow, verified: &mut VerifiedLog) -> AuditReading {
        let read = self.log.read_again(window, &Map::new(), verified, later());
        read.unwrap()
    }

    fn is_verified(&self, verified: &VerifiedLog) -> bool {
        let file = self.log.file(OFlags::RDONLY).unwrap();
        verified.fits(&file, &[]).unwrap()
    }
}

#[test]
fn page_of_an_already_verified_audit_log_equals_the_page_of_a_full_verification() {
    let log = long_log(1000);
    let mut verified = VerifiedLog::new();
    assert!(log.again(AuditWindow::Newest(1), &mut verified).valid);
    assert!(log.is_verified(&verified));
    let after = |seq, limit| AuditWindow::After { seq, limit };
    for window in [
        AuditWindow::Newest(0),
        AuditWindow::Newest(20),
        AuditWindow::Newest(2000),
        after(0, 20),
        after(255, 2),
        after(256, 300),
        after(990, 20),
        after(1000, 20),
        after(5000, 20),
        after(3, 0),
    ] {
        let page = log.again(window, &mut verified);
        assert_eq!(page, log.read(window).unwrap(), "{window:?}");
        assert!(page.valid && log.is_verified(&verified));
    }
    let numbers: Vec<_> = log.again(after(255, 2), &mut verified).entries;
    assert_eq!([&numbers[0].0["seq"], &numbers[1].0["seq"]], [256, 257]);
}

#[test]
fn change_of_a_verified_audit_log_is_detected_although_size_and_mtime_are_restored() {
    let log = long_log(600);
    let mut verified = VerifiedLog::new();
    assert!(log.again(AuditWindow::Newest(1), &mut verified).valid);
    let before = std::fs::metadata(log.path()).unwrap();
    let changed = log.text().replacen("\"n\":300", "\"n\":999", 1);
    assert_ne!(changed, log.text());
    // The ctime advances in steps: write until it differs from that of the verified contents.
    while log.is_verified(&verified) {
        std::fs::write(log.path(), &changed).unwrap();
        let file = std::fs::File::options()
            .write(true)
            .open(log.path())
            .unwrap();
        file.set_modified(before.modified().unwrap()).unwrap();
    }
    assert_eq!(std::fs::metadata(log.path()).unwrap().len(), before.len());
    let page = log.again(AuditWindow::Newest(1), &mut verified);
    assert_eq!((page.valid, page.broken_at), (false, Some(300)));
    // A log with a problem is verified each time.
    assert!(!log.is_verified(&verified));
    assert!(!log.again(AuditWindow::Newest(1), &mut verified).valid);
}

/// A result computed less than three seconds after a change is not kept: a second change within the
/// same step of the file system's clock would leave the ctime equal.
#[test]
fn verification_result_is_not_kept_for_a_just_changed_audit_log_and_not_used_for_another_log() {
    let log = long_log(3);
    let mut verified = VerifiedLog::new();
    let now = std::fs::metadata(log.path()).unwrap().modified().unwrap();
    let window = AuditWindow::Newest(1);
    log.log
        .read_again(window, &Map::new(), &mut verified, now)
        .unwrap();
    assert!(!log.is_verified(&verified));
    log.again(window, &mut verified);
    assert!(log.is_verified(&verified));
    assert!(!long_log(3).is_verified(&verified));
    log.append(&json!({"n": 4}));
    assert_eq!(log.again(window, &mut verified).total, 4);
}

/// An anchor is the signed record number and hash of a log's last record. The log directory has
/// one, and the caller stores others (`stored`).
#[test]
fn read_of_a_verified_audit_log_compares_it_with_the_stored_anchors() {
    let log = long_log(5);
    let newest = log.append_with(&json!({"n": 6}), &Map::new()).anchor;
    let stored = Map::from_iter([(
        json!(newest)["key_id"].as_str().unwrap().to_owned(),
        json!(newest),
    )]);
    log.cut(1);
    let key = log.log.anchor.key().unwrap();
    let last = log.read(AuditWindow::Newest(1)).unwrap();
    let tail = Tail {
        seq: 5,
        hash: last.head,
    };
    log.log
        .anchor
        .write(&log.log.anchor.sign(&key, &tail, None))
        .unwrap();
    let mut verified = VerifiedLog::new();
    assert!(log.again(AuditWindow::Newest(1), &mut verified).valid);
    let read = log
        .log
        .read_again(AuditWindow::Newest(1), &stored, &mut verified, later());
    let problem = read.unwrap().problem.unwrap();
    assert!(problem.contains("1 record was removed"), "{problem}");
}

#[test]
fn appended_audit_records_form_a_valid_chain_and_are_redacted() {
    let log = Log::with(3);
    let entry =
        log.append(&json!({"by": "hunter2-hunter2", "seq": 99, "hash": "x", "previous": "y"}));
    assert_eq!(entry.0["seq"], 4);
    assert_eq!(entry.0["timestamp"], TIME);
    assert!(!log.text().contains("hunter2"));
    let reading = log.read(AuditWindow::Newest(2)).unwrap();
    assert!(reading.valid);
    assert_eq!(reading.entries.len(), 2);
    assert_eq!(reading.entries[1], entry);
    assert_eq!(entry.0["hash"], reading.head.as_str());
    let empty = Log::with(0).read(AuditWindow::Newest(2)).unwrap();
    assert_eq!((empty.valid, empty.entries.len()), (true, 0));
}

#[test]
fn every_modification_of_the_audit_log_is_detected() {
    assert_eq!(Log::with(4).broken_after(str::to_owned), None);
    assert_eq!(
        Log::with(4).broken_after(|t| t.replace("\"n\":1", "\"n\":7")),
        Some(2)
    );
    assert_eq!(
        Log::with(4).broken_after(|t| t.lines().skip(1).map(|l| format!("{l}\n")).collect()),
        Some(1)
    );
    assert_eq!(
        Log::with(4).broken_after(|t| {
            let lines: Vec<&str> = t.lines().collect();
            format!("{}\n{}\n{}\n", lines[0], lines[2], lines[3])
        }),
        Some(2)
    );
    assert_eq!(
        Log::with(4).broken_after(|t| {
            let lines: Vec<&str> = t.lines().collect();
            format!("{}\n{}\n{}\n{}\n", lines[0], lines[2], lines[1], lines[3])
        }),
        Some(2)
    );
    assert_eq!(
        Log::with(2).broken_after(|t| format!("{t}garbage\n")),
        Some(3)
    );
    assert_eq!(
        Log::with(2).broken_after(|t| t.trim_end().to_owned()),
        Some(2)
    );
    assert_eq!(
        Log::with(2).broken_after(|t| t.replacen('{', "{\"n\":5,", 1)),
        Some(1)
    );
}

#[test]
fn audit_record_with_wrong_previous_hash_is_detected() {
    let log = Log::with(1);
    let head = log.read(AuditWindow::Newest(1)).unwrap().head;
    let line = |previous: &str| {
        let mut record = json!({"seq": 2, "timestamp": TIME, "previous": previous});
        let text = canonical_value(&record, OverLimit::Refuse).unwrap();
        record["hash"] = json!(link(&head, &text));
        format!("{record}\n")
    };
    let (honest, forged) = (line(head.as_str()), line(Sha256Hex::zero().as_str()));
    assert_eq!(log.broken_after(|t| format!("{t}{forged}")), Some(2));
    assert_eq!(Log::with(1).broken_after(|t| format!("{t}{honest}")), None);
}

#[test]
fn append_to_the_audit_log_removes_an_unfinished_last_line_and_fails_on_a_damaged_last_line() {
    let log = Log::with(2);
    std::fs::write(log.path(), format!("{}{{\"half\":", log.text())).unwrap();
    assert_eq!(log.read(AuditWindow::Newest(9)).unwrap().broken_at, Some(3));
    assert_eq!(log.append(&json!({"n": 3})).0["seq"], 3);
    assert!(log.read(AuditWindow::Newest(9)).unwrap().valid);
    std::fs::write(log.path(), format!("{}no record\n", log.text())).unwrap();
    let redactor = Redactor::new(&[]);
    assert!(matches!(
        log.log.append(&Map::new(), TIME, &redactor, &Map::new()),
        Err(AuditError::Damaged)
    ));
}

#[test]
fn concurrent_appends_to_the_audit_log_form_one_valid_hash_chain() {
    let log = Log::with(1);
    let path = log.dir.path().to_owned();
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let state = Dir::open(&path).unwrap();
                let log = AuditLog::open(&state, &SiteId::new("site-1").unwrap()).unwrap();
                for n in 0..25 {
                    let record = json!({"n": n});
                    let redactor = Redactor::new(&[]);
                    log.append(record.as_object().unwrap(), TIME, &redactor, &Map::new())
                        .unwrap();
                }
            });
        }
    });
    let reading = log.read(AuditWindow::Newest(1000)).unwrap();
    assert!(reading.valid);
    assert_eq!(reading.entries.len(), 101);
}

#[test]
fn audit_log_that_is_a_symbolic_link_is_neither_read_nor_written() {
    let log = Log::with(1);
    let elsewhere = log.dir.path().join("elsewhere");
    std::fs::rename(log.path(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, log.path()).unwrap();
    assert!(matches!(
        log.read(AuditWindow::Newest(1)),
        Err(AuditError::Io { .. })
    ));
    let redactor = Redactor::new(&[]);
    assert!(
        log.log
            .append(&Map::new(), TIME, &redactor, &Map::new())
            .is_err()
    );
}

/// Returns the anchor of an append, by key id, as a caller stores it.
fn kept(appended: &Appended) -> Map<String, Value> {
    let anchor = json!(appended.anchor);
    let id = anchor["key_id"].as_str().unwrap().to_owned();
    Map::from_iter([(id, anchor)])
}

/// `known` is the anchor (signed number and hash of the last record) that the caller stores
/// elsewhere.
#[test]
fn removal_of_the_last_audit_records_is_detected() {
    let none = Map::new();
    let log = Log::with(4);
    let known = kept(&log.append_with(&json!({"n": 4}), &none));
    assert_eq!((log.problem(&none), log.problem(&known)), (None, None));
    log.append(&json!({"n": 5}));
    assert_eq!(log.problem(&known), None, "an old anchor fits a longer log");

    let whole = log.text();
    log.cut(1);
    let one = "1 record was removed from the end of the audit log".to_owned();
    assert_eq!(log.problem(&none), Some(one.clone()));
    assert_eq!(log.problem(&known), Some(one));
    log.cut(2);
    let three = Some("3 records were removed from the end of the audit log".to_owned());
    assert_eq!(log.problem(&none), three);
    std::fs::write(log.path(), &whole).unwrap();
    assert_eq!(log.problem(&known), None, "the records are back");

    std::fs::remove_file(log.path()).unwrap();
    assert_eq!(
        log.problem(&none).unwrap(),
        "6 records were removed from the end of the audit log"
    );
    std::fs::remove_file(log.anchor()).unwrap();
    assert_eq!(log.problem(&none), None, "nothing is left to compare with");
    assert_eq!(
        log.problem(&known).unwrap(),
        "5 records were removed from the end of the audit log"
    );
    // Later records do not hide the removal, whatever anchors the caller stores from now on.
    let after = log.append_with(&json!({"n": 6}), &known);
    for known in [&none, &known, &kept(&after)] {
        let problem = log.problem(known).unwrap();
        assert_eq!(
            problem,
            "5 records were removed from the end of the audit log"
        );
    }
    log.append(&json!({"n": 7}));
    assert!(log.problem(&none).is_some());
}

#[test]
fn append_to_a_truncated_audit_log_does_not_hide_the_truncation() {
    let log = Log::with(4);
    log.cut(2);
    assert_eq!(log.append(&json!({"n": 9})).0["seq"], 3);
    log.append(&json!({"n": 10}));
    log.append(&json!({"n": 11}));
    assert_eq!(
        log.problem(&Map::new()).unwrap(),
        "2 records were removed from the end of the audit log"
    );
}

#[test]
fn audit_records_that_replace_removed_records_are_detected() {
    let none = Map::new();
    let log = Log::with(2);
    let older = std::fs::read(log.anchor()).unwrap();
    log.append(&json!({"n": 2}));
    let known = kept(&log.append_with(&json!({"n": 3}), &none));
    let newer = std::fs::read(log.anchor()).unwrap();
    log.cut(2);
    std::fs::write(log.anchor(), older).unwrap();
    log.append(&json!({"n": 8}));
    log.append(&json!({"n": 9}));
    assert_eq!(log.problem(&none), None, "control: the chain itself holds");

    let replaced = Some(
        "record 4 of the audit log was changed: its hash is not the one in the log's signed anchor in anchors/ of the state directory"
            .to_owned(),
    );
    assert_eq!(log.problem(&known), replaced);
    std::fs::write(log.anchor(), newer).unwrap();
    assert_eq!(log.problem(&none), replaced);
    log.append(&json!({"n": 10}));
    assert_eq!(log.problem(&none), replaced, "an append does not hide it");
}

#[test]
fn invalid_sequence_number_in_the_audit_log_is_reported_as_damage() {
    let log = Log::with(1);
    let redactor = Redactor::new(&[]);
    for seq in ["1e300", "18446744073709551615", "0", "-1"] {
        let line = log
            .text()
            .replacen("\"seq\":1", &format!("\"seq\":{seq}"), 1);
        let bent = Log::with(1);
        std::fs::write(bent.path(), line).unwrap();
        let appended = bent.log.append(&Map::new(), TIME, &redactor, &Map::new());
        assert!(matches!(appended, Err(AuditError::Damaged)), "{seq}");
        assert_eq!(
            bent.read(AuditWindow::Newest(9)).unwrap().broken_at,
            Some(1)
        );
    }
}

#[test]
fn modified_or_removed_anchor_of_the_audit_log_is_detected() {
    let none = Map::new();
    let log = Log::with(4);
    let old = std::fs::read_to_string(log.anchor()).unwrap();
    let text = log.text();
    let head = |line: usize| {
        let line: Value = serde_json::from_str(text.lines().nth(line).unwrap()).unwrap();
        line["hash"].as_str().unwrap().to_owned()
    };
    // Forged anchor of an attacker without the key, made to hide the removal of two records.
    log.cut(2);
    let shorter = old
        .replace("\"seq\":4", "\"seq\":2")
        .replace(&head(3), &head(1));
    let unsigned = "the anchor (number and hash of the last record) of the audit log has no valid signature of this host";
    for bent in [shorter.as_str(), "{}", "", "[1]"] {
        std::fs::write(log.anchor(), bent).unwrap();
        assert_eq!(log.problem(&none).unwrap(), unsigned, "{bent}");
    }
    std::fs::remove_file(log.anchor()).unwrap();
    assert_eq!(
        log.problem(&none).unwrap(),
        "the signed anchor (number and hash of the last record) of the audit log is missing in anchors/ of the state directory"
    );
    std::fs::write(log.path(), &text).unwrap();
    std::fs::write(log.anchor(), &old).unwrap();
    assert_eq!(log.problem(&none), None, "positive control");

    // A validly signed anchor of another site is a problem; an anchor of another host is ignored.
    let state = Dir::open(log.dir.path()).unwrap();
    let other = AuditLog::open(&state, &SiteId::new("site-2").unwrap()).unwrap();
    let redactor = Redactor::new(&[]);
    let appended = other.append(&none, TIME, &redactor, &none).unwrap();
    assert_eq!(log.problem(&kept(&appended)).unwrap(), unsigned);
    let foreign = Log::with(8);
    let appended = foreign.append_with(&json!({}), &none);
    assert_eq!(log.problem(&kept(&appended)), None, "of another host's log");
}

#[test]
fn audit_log_one_record_ahead_of_its_anchor_is_valid_and_two_records_ahead_is_a_problem() {
    let none = Map::new();
    for records in [0, 3] {
        let log = Log::with(records);
        let old = std::fs::read(log.anchor());
        log.append(&json!({"n": 9}));
        match old {
            Ok(bytes) => std::fs::write(log.anchor(), bytes).unwrap(),
            Err(_) => std::fs::remove_file(log.anchor()).unwrap(),
        }
        std::fs::write(log.dir.path().join("anchors/.site-1.json"), "half").unwrap();
        assert_eq!(log.problem(&none), None);
        log.append(&json!({"n": 10}));
        assert_eq!(log.problem(&none), None);
        assert_eq!(
            std::fs::read_dir(log.dir.path().join("anchors"))
                .unwrap()
                .count(),
            1
        );
    }
    // Two records that are newer than the anchor: the test restores the old anchor file.
    let log = Log::with(3);
    let old = std::fs::read(log.anchor()).unwrap();
    log.append(&json!({"n": 9}));
    log.append(&json!({"n": 10}));
    std::fs::write(log.anchor(), old).unwrap();
    let more = "the last 2 records of the audit log are newer than the signed anchor (record number and hash) in anchors/: another program wrote the records, or replaced the anchor";
    assert_eq!(log.problem(&none).unwrap(), more);
}

#[test]
fn audit_record_is_removed_when_its_anchor_cannot_be_written() {
    let log = Log::with(2);
    let text = log.text();
    std::fs::remove_file(log.anchor()).unwrap();
    std::fs::create_dir(log.anchor()).unwrap();
    let redactor = Redactor::new(&[]);
    let appended = log.log.append(&Map::new(), TIME, &redactor, &Map::new());
    assert!(matches!(appended, Err(AuditError::Io { .. })));
    assert_eq!(log.text(), text);
}

fn numbers(excerpt: &AuditExcerpt) -> Vec<u64> {
    let seq = |entry: &AuditEntry| entry.0["seq"].as_u64().unwrap();
    excerpt.entries.iter().map(seq).collect()
}

#[test]
fn only_audit_records_with_the_run_in_run_id_or_artifact_id_are_found() {
    let log = Log::with(1);
    let runs = |names: &[&str]| names.iter().map(|n| (*n).to_owned()).collect();
    assert_eq!(log.log.about(&runs(&["run_a"]), 9).unwrap().entries, []);
    log.append(&json!({"event": "apply", "run_id": "run_a"}));
    log.append(&json!({"event": "apply", "run_id": "run_ab"}));
    log.append(&json!({"event": "apply", "artifact_id": "run_a"}));
    log.append(&json!({"event": "apply", "run_id": "run_b", "result": {"run_id": "run_a"}}));
    log.append(&json!({"event": "apply", "note": "\"run_id\":\"run_a\""}));
    let found = log.log.about(&runs(&["run_a", "run_c"]), 9).unwrap();
    assert_eq!((numbers(&found), found.complete), (vec![2, 4], true));
    let both = log.log.about(&runs(&["run_a", "run_b"]), 9).unwrap();
    assert_eq!(numbers(&both), [2, 4, 5]);
}

#[test]
fn audit_search_that_omits_older_records_is_reported_as_incomplete() {
    let log = Log::with(0);
    let runs = BTreeSet::from(["run_a".to_owned()]);
    for _ in 0..4 {
        log.append(&json!({"run_id": "run_a"}));
    }
    let line = log.text().lines().next().unwrap().len() as u64 + 1;
    let found = log.log.about_within(&runs, 9, 2 * line + 5).unwrap();
    assert_eq!((numbers(&found), found.complete), (vec![3, 4], false));
    assert_eq!(found.since.as_deref(), Some(TIME));
    let newest = log.log.about(&runs, 1).unwrap();
    assert_eq!((numbers(&newest), newest.complete), (vec![4], false));
    assert_eq!(newest.since.as_deref(), Some(TIME));
    // An unfinished last line is not a record: its writer has not reported success.
    std::fs::write(log.path(), log.text() + "{\"run_id\":\"run_a\"").unwrap();
    let whole = log.log.about(&runs, 9).unwrap();
    assert_eq!((numbers(&whole), whole.complete), (vec![1, 2, 3, 4], true));
    assert_eq!(whole.since, None);
}

#[test]
fn operations_are_listed_newest_page_first_and_without_the_starts_of_ended_operations() {
    let log = Log::with(1);
    let operations: AuditOperations = [("begun", "apply"), ("apply", "apply"), ("undo", "undo")]
        .map(|(event, operation)| (event.to_owned(), operation.to_owned()))
        .into();
    let listed = |before, most| {
        let found = log.log.of_operations(&operations, before, most).unwrap();
        (numbers(&found), found.complete)
    };
    let start = |event: &str, run: &str| {
        log.append(&json!({"event": event, "run_id": run, "status": "started"}))
    };
    let end = |event: &str, run: &str| {
        log.append(&json!({"event": event, "run_id": run, "status": "success"}))
    };
    assert_eq!(listed(u64::MAX, 9), (vec![], true));
    start("begun", "run_a"); // 2
    start("begun", "run_b"); // 3
    end("export", "run_a"); // 4
    end("apply", "run_a"); // 5
    start("undo", "run_a"); // 6
    assert_eq!(listed(u64::MAX, 9), (vec![3, 5, 6], true));
    end("undo", "run_a"); // 7
    assert_eq!(listed(u64::MAX, 9), (vec![3, 5, 7], true));
    assert_eq!(listed(u64::MAX, 1), (vec![7], false));
    // The start of the undo is left out here too, although its end is not on this page.
    assert_eq!(listed(7, 9), (vec![3, 5], true));
    assert_eq!(listed(5, 9), (vec![3], true));
}

#[test]
fn rotation_of_the_host_key_keeps_the_log_valid_and_a_cut_of_it_known() {
    let key_id = |anchor: &AuditAnchor| {
        let anchor = serde_json::to_value(anchor).unwrap();
        anchor["key_id"].as_str().unwrap().to_owned()
    };
    let log = Log::with(2);
    let state = Dir::open(log.dir.path()).unwrap();
    let first = log.append_with(&json!({"n": 3}), &Map::new()).anchor;
    let kept = Map::from_iter([(key_id(&first), serde_json::to_value(&first).unwrap())]);
    let old = crate::attestation::HostKey::rotate(&state).unwrap().old;
    let retired = log.dir.path().join(format!("keys/{}.pub", old.key_id()));
    // The old anchor counts because the old public key is still there, and only then.
    assert_eq!(log.problem(&kept), None);
    let public = std::fs::read(&retired).unwrap();
    std::fs::remove_file(&retired).unwrap();
    assert!(log.problem(&kept).unwrap().contains("no valid signature"));
    std::fs::write(&retired, public).unwrap();
    log.log.sign_anchor_again().unwrap();
    let text = std::fs::read_to_string(log.anchor()).unwrap();
    assert!(!text.contains(old.key_id().as_str()), "{text}");
    assert_eq!(log.problem(&kept), None);
    // The anchor that the caller stored under the old key still shows removed records.
    let whole = log.text();
    log.cut(1);
    std::fs::remove_file(log.anchor()).unwrap();
    assert!(log.problem(&kept).unwrap().contains("missing"));
    std::fs::write(log.path(), whole).unwrap();
    let next = log.append_with(&json!({"n": 4}), &kept).anchor;
    assert_ne!(key_id(&next), key_id(&first));
}

#[test]
fn anchor_that_a_cut_log_contradicts_still_does_after_it_was_signed_again() {
    let log = Log::with(3);
    let state = Dir::open(log.dir.path()).unwrap();
    crate::attestation::HostKey::rotate(&state).unwrap();
    log.cut(1);
    log.log.sign_anchor_again().unwrap();
    let problem = log.problem(&Map::new()).unwrap();
    assert!(problem.contains("1 record was removed"), "{problem}");
    // An anchor with a wrong signature is not signed.
    let text = std::fs::read_to_string(log.anchor()).unwrap();
    std::fs::write(log.anchor(), text.replace("\"seq\":3", "\"seq\":2")).unwrap();
    log.log.sign_anchor_again().unwrap();
    let problem = log.problem(&Map::new()).unwrap();
    assert!(problem.contains("no valid signature"), "{problem}");
}
