//! A ledger in a temporary directory, and small values for the tests.
#![allow(dead_code)] // Each test binary uses only some of the functions.
#![allow(clippy::unwrap_used)] // A panic in a helper function fails the test.

use std::path::Path;
use wp_codebox_ledger::{
    AccountId, Actuals, Amount, Entry, Event, Gpu, Grant, GrantReference, Ledger, LedgerError,
    LedgerFiles, Note, Prices, Quote, Recorded, SandboxKey, UnixMillis, Usage,
};

/// 100 for a creation, 1 for a second.
const PRICES: &str = r#"{"schema": "wp-codebox/meter-prices/v1", "unit": "credit", "extensions": {
    "ext.native": {"per_second": 1, "per_creation": 100, "gpu_per_second": 5, "key": "platform"},
    "ext.free": {"per_second": 0, "per_creation": 0, "gpu_per_second": 0, "key": "own"}}}"#;

/// 2026-01-01T00:00:00Z.
pub const NOW: UnixMillis = UnixMillis(1_767_225_600_000);

pub fn later(milliseconds: u64) -> UnixMillis {
    UnixMillis(NOW.0 + milliseconds)
}

pub fn amount(credits: u64) -> Amount {
    Amount::new(credits).unwrap()
}

pub fn account(name: &str) -> AccountId {
    AccountId::new(name).unwrap()
}

pub fn sandbox(name: &str) -> SandboxKey {
    SandboxKey::new(name).unwrap()
}

pub fn note(text: &str) -> Note {
    Note::new(text).unwrap()
}

pub fn quote(seconds: u64) -> Quote {
    quote_of("ext.native", seconds)
}

pub fn quote_of(extension: &str, seconds: u64) -> Quote {
    let prices = Prices::parse(PRICES.as_bytes()).unwrap();
    prices
        .quote(extension, seconds * 1000, Gpu::Absent)
        .unwrap()
}

pub fn grant_of(name: &str, reference: &str, credits: u64) -> Grant {
    Grant {
        account: account(name),
        amount: amount(credits),
        reference: GrantReference::new(reference).unwrap(),
        actor: note("adm:test"),
        reason: note("for the test"),
    }
}

/// Returns a directory in memory, if the host has one: killing a process loses nothing of what it
/// wrote, so the tests need no disk.
pub fn directory() -> tempfile::TempDir {
    let memory = Path::new("/dev/shm");
    match memory.is_dir() {
        true => tempfile::tempdir_in(memory).unwrap(),
        false => tempfile::tempdir().unwrap(),
    }
}

pub struct Bench {
    pub directory: tempfile::TempDir,
    pub files: LedgerFiles,
}

impl Bench {
    pub fn new() -> Self {
        let directory = directory();
        let files = LedgerFiles::in_state(directory.path());
        Self { directory, files }
    }

    pub fn open(&self) -> Ledger {
        Ledger::open(&self.files).unwrap()
    }

    pub fn refusal(&self) -> LedgerError {
        Ledger::open(&self.files).unwrap_err()
    }

    /// Creates a ledger in which `shop` has 1000 credits.
    pub fn funded() -> (Self, Ledger) {
        let bench = Self::new();
        let ledger = bench.open();
        let granted = ledger.grant(&grant_of("shop", "g1", 1000), NOW).unwrap();
        assert!(matches!(granted, Recorded::Now(_)));
        (bench, ledger)
    }
}

/// Returns granted, reserved, settled, available.
pub fn balance(ledger: &Ledger, name: &str) -> [u64; 4] {
    let balance = ledger.balance(&account(name)).unwrap();
    [
        balance.granted.get(),
        balance.reserved.get(),
        balance.settled.get(),
        balance.available.get(),
    ]
}

pub fn all(ledger: &Ledger) -> Vec<Entry> {
    ledger.entries(0, usize::MAX).unwrap()
}

/// Computes the sums of an account from the entries alone: granted, reserved, settled.
pub fn sums(entries: &[Entry], name: &str) -> [u64; 3] {
    let [mut granted, mut reserved, mut settled] = [0, 0, 0];
    for entry in entries
        .iter()
        .filter(|e| e.content.account.as_str() == name)
    {
        match &entry.content.event {
            Event::Grant { amount, .. } => granted += amount.get(),
            Event::Reserve { amount, .. } | Event::Extend { amount, .. } => {
                reserved += amount.get();
            }
            Event::Release { amount, .. } => reserved -= amount.get(),
            Event::Settle {
                amount,
                reserved: whole,
                ..
            } => {
                reserved -= whole.get();
                settled += amount.get();
            }
        }
        assert!(reserved + settled <= granted, "{entry:?}");
    }
    [granted, reserved, settled]
}

/// Checks everything that must be true of any ledger at any time.
pub fn check(ledger: &Ledger, names: &[&str]) {
    let verification = ledger.verify(&[]).unwrap();
    assert!(verification.valid, "{verification:#?}");
    let entries = all(ledger);
    assert_eq!(verification.head.length, entries.len() as u64);
    let mut settled = std::collections::BTreeSet::new();
    for entry in &entries {
        if let Event::Settle { sandbox, .. } = &entry.content.event {
            assert!(settled.insert(sandbox.clone()), "settled twice: {sandbox}");
        }
    }
    let mut totals = [0; 3];
    for name in names {
        let [granted, reserved, spent] = sums(&entries, name);
        let available = granted - spent - reserved;
        assert_eq!(
            balance(ledger, name),
            [granted, reserved, spent, available],
            "{name}"
        );
        for (total, one) in totals.iter_mut().zip([granted, reserved, spent]) {
            *total += one;
        }
    }
    let told = verification.totals.unwrap();
    assert_eq!(
        [told.granted.get(), told.reserved.get(), told.settled.get()],
        totals
    );
}

/// SplitMix64: a small, seedable generator with equal results on every platform.
pub struct Random(pub u64);

impl Random {
    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }
    pub fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}

pub const ACCOUNTS: [&str; 3] = ["shop", "blog", "lab"];

/// Does one random operation. `name` makes the sandboxes and references of this caller unique, and
/// there are few of them, so that operations meet sandboxes in every state.
pub fn step(
    ledger: &Ledger,
    random: &mut Random,
    name: &str,
    round: u64,
) -> Result<Recorded, LedgerError> {
    let who = ACCOUNTS[random.below(3) as usize];
    let key = sandbox(&format!("{name}.{}.{}", round / 50, random.below(12)));
    let now = later(round * 1000);
    match random.below(10) {
        0 => {
            let reference = format!("{name}.{round}");
            ledger.grant(&grant_of(who, &reference, 1 + random.below(2000)), now)
        }
        1..=4 => ledger.reserve(&account(who), &key, &quote(random.below(500)), now),
        5 => ledger.extend(&key, random.below(900) * 1000, now),
        6 => ledger.release(&key, &note("it did not start"), now),
        7 => ledger.settle(&key, Actuals::WallClock, now),
        _ => {
            let usage = Usage::alive(random.below(700_000));
            ledger.settle(&key, Actuals::Used(&usage), now)
        }
    }
}
