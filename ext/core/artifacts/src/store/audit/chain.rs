//! Computes the hash that links a record of the audit log to the record before it.

use crate::digest::sha256;
use crate::json::Json;
use wp_codebox_contracts::Sha256Hex;

/// Largest accepted sequence number, 2^53 - 1. Above it, a double cannot represent every integer,
/// and the next number could overflow.
const LARGEST_SEQ: f64 = 9_007_199_254_740_991.0;

/// Number and hash of the last record in the chain.
pub(super) struct Tail {
    pub(super) seq: u64,
    pub(super) hash: Sha256Hex,
}

pub(super) fn start() -> Tail {
    Tail {
        seq: 0,
        hash: Sha256Hex::zero(),
    }
}

pub(super) fn link(previous: &Sha256Hex, canonical: &str) -> Sha256Hex {
    sha256(format!("{previous}\n{canonical}").as_bytes())
}

pub(super) fn claim(record: &Json) -> Option<Tail> {
    let hash = Sha256Hex::new(record.get("hash")?.as_str()?).ok()?;
    let seq = record.get("seq")?.as_f64();
    let seq = seq.filter(|seq| (1.0..=LARGEST_SEQ).contains(seq))?;
    Some(Tail {
        seq: seq as u64,
        hash,
    })
}
