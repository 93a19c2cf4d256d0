//! Measures the operations of a ledger on a disk: `ledger_speed DIRECTORY`. Prints one line for each
//! size of the ledger: microseconds of reserve, settle and balance (medians), and the size of the file.
//!
//! `cargo run -p wp-codebox-ledger --example ledger_speed -- /var/tmp`

#![allow(clippy::unwrap_used)] // A failed measurement ends the program.

use std::time::Instant;
use wp_codebox_ledger::{
    AccountId, Actuals, Amount, Gpu, Grant, GrantReference, Ledger, LedgerFiles, Note, Prices,
    SandboxKey, UnixMillis, Usage,
};

/// Sizes at which the operations are measured, in entries.
const SIZES: [u64; 3] = [10, 1_000, 60_000];
/// Number of measured operations at each size.
const SAMPLES: usize = 50;

const PRICES: &str = r#"{"schema": "wp-codebox/meter-prices/v1", "unit": "credit", "extensions": {
    "ext.native": {"per_second": 1, "per_creation": 100, "gpu_per_second": 0, "key": "platform"}}}"#;

fn main() {
    let parent = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let directory = tempfile::tempdir_in(parent).unwrap();
    let files = LedgerFiles::in_state(directory.path());
    let ledger = Ledger::open(&files).unwrap();
    let prices = Prices::parse(PRICES.as_bytes()).unwrap();
    let quote = prices.quote("ext.native", 60_000, Gpu::Absent).unwrap();
    let (account, now) = (
        AccountId::new("shop").unwrap(),
        UnixMillis(1_767_225_600_000),
    );
    let _ = ledger
        .grant(
            &Grant {
                account: account.clone(),
                amount: Amount::MAX,
                reference: GrantReference::new("g").unwrap(),
                actor: Note::new("adm:bench").unwrap(),
                reason: Note::new("measurement").unwrap(),
            },
            now,
        )
        .unwrap();
    let usage = Usage::alive(30_000);
    let mut number = 0;
    let mut pair = |times: &mut [Vec<u128>; 2]| {
        number += 1;
        let sandbox = SandboxKey::new(format!("run_{number:032x}")).unwrap();
        let begin = Instant::now();
        let _ = ledger.reserve(&account, &sandbox, &quote, now).unwrap();
        times[0].push(begin.elapsed().as_micros());
        let begin = Instant::now();
        let _ = ledger.settle(&sandbox, Actuals::Used(&usage), now).unwrap();
        times[1].push(begin.elapsed().as_micros());
    };
    let median = |times: &mut Vec<u128>| {
        times.sort_unstable();
        times[times.len() / 2]
    };
    let begin = Instant::now();
    for size in SIZES {
        while ledger.head().unwrap().length + 1 < size {
            pair(&mut [Vec::new(), Vec::new()]);
        }
        let length = ledger.head().unwrap().length;
        let filled = begin.elapsed().as_secs_f64();
        let mut times = [Vec::new(), Vec::new()];
        let measured = Instant::now();
        for _ in 0..SAMPLES {
            pair(&mut times);
        }
        let rate = (2 * SAMPLES) as f64 / measured.elapsed().as_secs_f64();
        let mut balances: Vec<u128> = (0..SAMPLES)
            .map(|_| {
                let begin = Instant::now();
                ledger.balance(&account).unwrap();
                begin.elapsed().as_micros()
            })
            .collect();
        let verify = Instant::now();
        assert!(ledger.verify(&[]).unwrap().valid);
        let verify = verify.elapsed().as_millis();
        let open = Instant::now();
        drop(Ledger::open(&files).unwrap());
        let open = open.elapsed().as_micros();
        let [reserve, settle] = &mut times;
        println!(
            "{length} entries ({filled:.1} s): reserve {} us, settle {} us, {rate:.0} operations/s, balance {} us, open {open} us, verify {verify} ms, database {} KiB",
            median(reserve),
            median(settle),
            median(&mut balances),
            std::fs::metadata(&files.database).unwrap().len() / 1024,
        );
    }
}
