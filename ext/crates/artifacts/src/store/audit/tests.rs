//! The chain holds, and each way of bending it shows.

use super::*;
use serde_json::json;

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
        let redactor = Redactor::new(&["hunter2-hunter2".to_owned()]);
        self.log
            .append(record.as_object().unwrap(), TIME, &redactor)
            .unwrap()
    }
    fn path(&self) -> std::path::PathBuf {
        self.dir.path().join("sites/site-1/audit.jsonl")
    }
    fn text(&self) -> String {
        std::fs::read_to_string(self.path()).unwrap()
    }
    fn broken_after(self, change: impl Fn(&str) -> String) -> Option<u64> {
        std::fs::write(self.path(), change(&self.text())).unwrap();
        let reading = self.log.read(AuditWindow::Newest(100)).unwrap();
        assert_eq!(reading.valid, reading.broken_at.is_none());
        reading.broken_at
    }
}

#[test]
fn chain_holds_and_is_redacted() {
    let log = Log::with(3);
    let entry =
        log.append(&json!({"by": "hunter2-hunter2", "seq": 99, "hash": "x", "previous": "y"}));
    assert_eq!(entry.0["seq"], 4);
    assert_eq!(entry.0["timestamp"], TIME);
    assert!(!log.text().contains("hunter2"));
    let reading = log.log.read(AuditWindow::Newest(2)).unwrap();
    assert!(reading.valid);
    assert_eq!(reading.entries.len(), 2);
    assert_eq!(reading.entries[1], entry);
    assert_eq!(entry.0["hash"], reading.head.as_str());
    let empty = Log::with(0).log.read(AuditWindow::Newest(2)).unwrap();
    assert_eq!((empty.valid, empty.entries.len()), (true, 0));
}

#[test]
fn every_change_shows() {
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
fn a_line_that_names_another_predecessor_shows() {
    let log = Log::with(1);
    let head = log.log.read(AuditWindow::Newest(1)).unwrap().head;
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
fn an_unfinished_line_is_taken_back_and_damage_is_not() {
    let log = Log::with(2);
    std::fs::write(log.path(), format!("{}{{\"half\":", log.text())).unwrap();
    assert_eq!(
        log.log.read(AuditWindow::Newest(9)).unwrap().broken_at,
        Some(3)
    );
    assert_eq!(log.append(&json!({"n": 3})).0["seq"], 3);
    assert!(log.log.read(AuditWindow::Newest(9)).unwrap().valid);
    std::fs::write(log.path(), format!("{}no record\n", log.text())).unwrap();
    let redactor = Redactor::new(&[]);
    assert!(matches!(
        log.log.append(&Map::new(), TIME, &redactor),
        Err(AuditError::Damaged)
    ));
}

#[test]
fn writers_are_serialised() {
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
                    log.append(record.as_object().unwrap(), TIME, &redactor)
                        .unwrap();
                }
            });
        }
    });
    let reading = log.log.read(AuditWindow::Newest(1000)).unwrap();
    assert!(reading.valid);
    assert_eq!(reading.entries.len(), 101);
}

#[test]
fn links_are_not_followed() {
    let log = Log::with(1);
    let elsewhere = log.dir.path().join("elsewhere");
    std::fs::rename(log.path(), &elsewhere).unwrap();
    std::os::unix::fs::symlink(&elsewhere, log.path()).unwrap();
    assert!(matches!(
        log.log.read(AuditWindow::Newest(1)),
        Err(AuditError::Io { .. })
    ));
    let redactor = Redactor::new(&[]);
    assert!(log.log.append(&Map::new(), TIME, &redactor).is_err());
}
