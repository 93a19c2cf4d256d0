//! Measures the operations of a ledger on a disk: `ledger_speed DIRECTORY`. Prints one line for each
//! size of the ledger: microseconds of reserve, settle and balance (medians), and the size of the file.
//! A ledger is filled in memory first and then copied to the disk, so that filling takes seconds.
//!
//! `cargo run -p wp-codebox-ledger --example ledger_speed -- /var/tmp`

#![allow(clippy::unwrap_used)] // A failed measurement ends the program.

use std::fs;
use std::path::Path;
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

/// A ledger with one rich account, and the number of its sandboxes.
struct Bench {
    files: LedgerFiles,
    ledger: Ledger,
    sandboxes: u64,
}

impl Bench {
    fn open(directory: &Path, sandboxes: u64) -> Self {
        let files = LedgerFiles::in_state(directory);
        let ledger = Ledger::open(&files).unwrap();
        Self {
            files,
            ledger,
            sandboxes,
        }
    }

    /// Reserves and settles a sandbox, and returns the microseconds of both.
    fn pair(&mut self) -> [u128; 2] {
        self.sandboxes += 1;
        let prices = Prices::parse(PRICES.as_bytes()).unwrap();
        let quote = prices.quote("ext.native", 60_000, Gpu::Absent).unwrap();
        let sandbox = SandboxKey::new(format!("run_{:032x}", self.sandboxes)).unwrap();
        let begin = Instant::now();
        let reserved = self.ledger.reserve(&account(), &sandbox, &quote, NOW);
        let between = Instant::now();
        let usage = Usage::alive(30_000);
        let settled = self.ledger.settle(&sandbox, Actuals::Used(&usage), NOW);
        let end = Instant::now();
        drop((reserved.unwrap(), settled.unwrap()));
        [between - begin, end - between].map(|time| time.as_micros())
    }
}

const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

fn account() -> AccountId {
    AccountId::new("shop").unwrap()
}

fn median(times: impl Iterator<Item = u128>) -> u128 {
    let mut times: Vec<u128> = times.collect();
    times.sort_unstable();
    times[times.len() / 2]
}

fn main() {
    let disk = std::env::args().nth(1).unwrap_or_else(|| ".".to_owned());
    let memory = tempfile::tempdir_in("/dev/shm").unwrap();
    let mut filled = Bench::open(memory.path(), 0);
    let grant = Grant {
        account: account(),
        amount: Amount::MAX,
        reference: GrantReference::new("g").unwrap(),
        actor: Note::new("adm:bench").unwrap(),
        reason: Note::new("measurement").unwrap(),
    };
    drop(filled.ledger.grant(&grant, NOW).unwrap());
    for size in SIZES {
        while filled.ledger.head().unwrap().length + 1 < size {
            filled.pair();
        }
        let sandboxes = filled.sandboxes;
        // A closed ledger is one file and its anchor.
        drop(filled);
        let directory = tempfile::tempdir_in(&disk).unwrap();
        let copied = LedgerFiles::in_state(directory.path());
        let from = LedgerFiles::in_state(memory.path());
        for (from, to) in [
            (from.database, copied.database),
            (from.anchor, copied.anchor),
        ] {
            fs::create_dir(to.parent().unwrap()).unwrap();
            fs::copy(from, to).unwrap();
        }
        measure(Bench::open(directory.path(), sandboxes));
        filled = Bench::open(memory.path(), sandboxes);
    }
}

fn measure(mut bench: Bench) {
    let length = bench.ledger.head().unwrap().length;
    let begin = Instant::now();
    let pairs: Vec<[u128; 2]> = (0..SAMPLES).map(|_| bench.pair()).collect();
    let rate = (2 * SAMPLES) as f64 / begin.elapsed().as_secs_f64();
    let time = |work: &dyn Fn()| {
        let begin = Instant::now();
        work();
        begin.elapsed().as_micros()
    };
    let ledger = &bench.ledger;
    let balance = || assert!(ledger.balance(&account()).is_ok());
    let balances = median((0..SAMPLES).map(|_| time(&balance)));
    let verify = time(&|| assert!(ledger.verify(&[]).unwrap().valid)) / 1000;
    let open = || drop(Ledger::open(&bench.files).unwrap());
    let opens = median((0..SAMPLES).map(|_| time(&open)));
    println!(
        "{length} entries: reserve {} us, settle {} us, {rate:.0} operations/s, balance {balances} us, open {opens} us, verify {verify} ms, database {} KiB",
        median(pairs.iter().map(|pair| pair[0])),
        median(pairs.iter().map(|pair| pair[1])),
        fs::metadata(&bench.files.database).unwrap().len() / 1024,
    );
}
