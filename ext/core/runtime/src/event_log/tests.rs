use super::*;
use crate::Journal;
use serde_json::{Map, Value};
use std::fs::OpenOptions;
use std::io::Write;
use wp_codebox_contracts::EventType;

const WHOLE: PageLimits = PageLimits {
    count: 1000,
    bytes: 1 << 30,
};

fn journal(directory: &Path, count: u64, size: usize) -> Journal {
    let mut journal = Journal::create(directory).unwrap();
    for n in 0..count {
        let mut data = Map::new();
        data.insert("text".to_owned(), Value::from("x".repeat(size)));
        data.insert("n".to_owned(), Value::from(n));
        journal
            .append(EventType::CommandOutput, None, data)
            .unwrap();
    }
    journal
}

fn sequences(page: &EventPage) -> Vec<u64> {
    page.events.iter().map(|event| event.seq).collect()
}

fn add(directory: &Path, text: &[u8]) {
    let path = directory.join("events.jsonl");
    let mut file = OpenOptions::new().append(true).open(path).unwrap();
    file.write_all(text).unwrap();
}

#[test]
fn next_event_page_starts_after_the_cursor_of_the_previous_page() {
    let temp = tempfile::tempdir().unwrap();
    let nothing = read_events(temp.path(), 7, WHOLE).unwrap();
    assert_eq!(
        (nothing.events.len(), nothing.cursor, nothing.more),
        (0, 7, false)
    );
    drop(journal(temp.path(), 10, 5));
    let page = |after, count| {
        let limits = PageLimits { count, ..WHOLE };
        read_events(temp.path(), after, limits).unwrap()
    };
    let first = page(0, 4);
    assert_eq!(
        (sequences(&first), first.cursor, first.more),
        (vec![1, 2, 3, 4], 4, true)
    );
    let second = page(first.cursor, 6);
    assert_eq!(sequences(&second), [5, 6, 7, 8, 9, 10]);
    assert!(!second.more, "exactly the rest");
    let after = page(10, 4);
    assert_eq!(
        (after.events.len(), after.cursor, after.more),
        (0, 10, false)
    );
    assert_eq!(page(99, 4).cursor, 99, "a cursor never goes back");
    assert_eq!(last_event(temp.path()).unwrap(), 10);
}

#[test]
fn event_page_respects_its_byte_limit_but_has_at_least_one_event() {
    let temp = tempfile::tempdir().unwrap();
    drop(journal(temp.path(), 6, 1000));
    let page = |bytes| read_events(temp.path(), 0, PageLimits { bytes, ..WHOLE }).unwrap();
    assert_eq!(sequences(&page(10)), [1]);
    let some = page(3000);
    assert_eq!((sequences(&some), some.more), (vec![1, 2], true));
}

/// Also checks that a complete line that is not a valid event is skipped.
#[test]
fn incomplete_last_journal_line_is_not_returned_as_an_event() {
    let temp = tempfile::tempdir().unwrap();
    drop(journal(temp.path(), 3, 5));
    add(temp.path(), br#"{"id":"evt-4","seq":4,"type":"runtime.de"#);
    let page = read_events(temp.path(), 0, WHOLE).unwrap();
    assert_eq!((sequences(&page), page.more), (vec![1, 2, 3], false));
    assert_eq!(last_event(temp.path()).unwrap(), 3);
    // The JSON is complete but its line feed is missing: the writer may still remove the line after
    // a failed write, so the line is not an event yet.
    add(temp.path(), b"stroyed\",\"timestamp\":\"t\"}");
    assert_eq!(read_events(temp.path(), 3, WHOLE).unwrap().cursor, 3);
    assert_eq!(last_event(temp.path()).unwrap(), 3);
    add(temp.path(), b"\n");
    let page = read_events(temp.path(), 3, WHOLE).unwrap();
    assert_eq!(sequences(&page), [4], "and is one when it is whole");
    add(temp.path(), b"\n\xff garbage\n[]\n{\"seq\":99}\n");
    add(
        temp.path(),
        b"{\"id\":\"evt-5\",\"seq\":5,\"type\":\"runtime.destroyed\",\"timestamp\":\"t\"}\n",
    );
    let page = read_events(temp.path(), 3, WHOLE).unwrap();
    assert_eq!(sequences(&page), [4, 5]);
}

/// In a journal of 100 MiB, the binary search returns a position at most a few events before the
/// requested one, so a read loads only a small part of the file.
#[test]
fn event_page_of_a_large_journal_is_read_from_a_position_near_its_first_event() {
    let temp = tempfile::tempdir().unwrap();
    drop(journal(temp.path(), 1700, 64 * 1024));
    assert!(
        std::fs::metadata(temp.path().join("events.jsonl"))
            .unwrap()
            .len()
            > 100 << 20
    );
    let limits = PageLimits {
        count: 2,
        bytes: 1 << 30,
    };
    for after in [0, 1, 2, 849, 1697, 1698] {
        let mut log = Log::open(temp.path()).unwrap().unwrap();
        let start = log.first_after(after).unwrap();
        let line = log.line_from(start).unwrap().unwrap();
        assert!(
            line.sequence().unwrap() + 3 > after,
            "near: {after} starts at {:?}",
            line.sequence()
        );
        let page = read_events(temp.path(), after, limits).unwrap();
        assert_eq!(sequences(&page), [after + 1, after + 2]);
    }
    assert_eq!(last_event(temp.path()).unwrap(), 1700);
}

/// For every cursor in a journal with very different line lengths, compares the binary search
/// with a sequential read.
#[test]
fn binary_search_in_the_journal_finds_the_same_events_as_a_sequential_read() {
    let temp = tempfile::tempdir().unwrap();
    let mut journal = Journal::create(temp.path()).unwrap();
    for n in 0..400_usize {
        let mut data = Map::new();
        let size = if n % 37 == 0 { 200_000 } else { n * 7 % 900 };
        data.insert("text".to_owned(), Value::from("y".repeat(size)));
        journal
            .append(EventType::CommandOutput, None, data)
            .unwrap();
    }
    let one = PageLimits {
        count: 1,
        bytes: 1 << 30,
    };
    for after in 0..400 {
        let page = read_events(temp.path(), after, one).unwrap();
        assert_eq!(
            (sequences(&page), page.more),
            (vec![after + 1], after < 399)
        );
    }
}
