//! `sites/<site>/spend/<year>-<month>/spend.json`: model cost of a site in a calendar month (UTC), by
//! requester.
//!
//! A run reserves money before it starts and settles what it used at its end, both under a lock on
//! the directory, so that runs that start at the same time cannot exceed a cap together. The
//! reservation of a run that never settles, because its supervisor died, counts as used. A record
//! that cannot be read refuses every run that has a cap.

use crate::document::{DocumentError, parse, read_document, replace_file};
use crate::markers::lock_directory;
use crate::{StateDir, StateDirError, now_rfc3339};
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use wp_codebox_artifacts::Durability;
use wp_codebox_contracts::{CodedError, ErrorBody, Requester, RequesterShare, RunId, SiteId};

/// Directory below `sites/<site>/`.
const DIRECTORY: &str = "spend";
/// File name of the record.
const FILE: &str = "spend.json";
/// Version of the records that this program writes.
const VERSION: u64 = 1;
/// Maximum size of a record in bytes.
const LARGEST: u64 = 16 * 1024 * 1024;
/// A run without a budget of its own may use this part of the lowest cap.
const DEFAULT_PART: u64 = 10;

/// Reason why a run may not spend money on its model.
#[derive(Debug, thiserror::Error, CodedError)]
#[non_exhaustive]
#[code(detail = Self::detail)]
pub enum SpendError {
    /// The state directory cannot be used.
    #[error(transparent)]
    #[code(transparent)]
    State(#[from] StateDirError),
    /// A cap of this month is used up.
    #[error(
        "the model cost of {who} in {month} (UTC) has reached the cap: {used} of {cap} millionths of a dollar are used, or reserved by runs that have not ended"
    )]
    #[code(
        BudgetExhausted,
        hint = "wait for the end of a run or of the month, or ask an administrator to raise \"Model cost in a month\" in the settings of Codebox"
    )]
    Reached {
        /// Whose cap it is: the site, or the requester.
        who: &'static str,
        /// Year and month.
        month: String,
        /// Millionths of a dollar that are used or reserved.
        used: u64,
        /// The cap in millionths of a dollar.
        cap: u64,
    },
    /// The record exists and cannot be used.
    #[error("{source}, so the cap cannot be checked and no run that needs a model may start")]
    #[code(
        StateDirInvalid,
        hint = "restore the file in the directory `spend` of the site from a backup"
    )]
    Record {
        /// Why the record cannot be used.
        source: DocumentError,
    },
    /// The record cannot be locked or written.
    #[error("the model cost of this month cannot be recorded: {source}")]
    #[code(
        StateDirInvalid,
        hint = "check free space and permissions of the state directory"
    )]
    Io {
        /// I/O error of the failed operation.
        #[from]
        source: io::Error,
    },
}

impl SpendError {
    fn detail(&self, body: ErrorBody) -> ErrorBody {
        match self {
            Self::Reached { who, used, cap, .. } => body
                .with("budget", json!("month"))
                .with("of", *who)
                .with("used_microusd", *used)
                .with("cap_microusd", *cap),
            Self::State(_) | Self::Record { .. } | Self::Io { .. } => body,
        }
    }
}

/// Content of the record of a month.
#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Month {
    version: u64,
    /// Cost of settled runs in millionths of a dollar, by requester.
    used_microusd: BTreeMap<String, u64>,
    /// Reservations of runs that have not settled.
    reserved: BTreeMap<RunId, Reserved>,
}

#[derive(Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Reserved {
    requester: Requester,
    microusd: u64,
}

impl Month {
    fn used(&self, of: Option<Requester>) -> u64 {
        let counts = |requester: &str| of.is_none_or(|of| of.to_string() == requester);
        let settled = self.used_microusd.iter();
        let settled = settled.filter(|(requester, _)| counts(requester));
        let reserved = self.reserved.values();
        let reserved = reserved.filter(|reserved| counts(&reserved.requester.to_string()));
        settled
            .map(|(_, microusd)| *microusd)
            .chain(reserved.map(|reserved| reserved.microusd))
            .fold(0, u64::saturating_add)
    }
}

/// Money that a run may spend on its model.
#[derive(Debug)]
pub struct SpendReservation {
    directory: PathBuf,
    run_id: RunId,
    requester: Requester,
    microusd: u64,
}

impl SpendReservation {
    /// Reserves money for a run: `wanted`, or a tenth of the lowest cap, and at most what is left of
    /// the caps. Returns `None` if the share has no cap.
    ///
    /// # Errors
    /// When a cap is used up, or the record of the month cannot be read or written.
    pub fn make(
        state: &StateDir,
        site: &SiteId,
        run_id: &RunId,
        share: &RequesterShare,
        wanted: Option<u64>,
    ) -> Result<Option<Self>, SpendError> {
        let caps = [
            ("this site", None, share.spend.site_microusd),
            (
                "this requester",
                Some(share.requester),
                share.spend.requester_microusd,
            ),
        ];
        let caps = caps
            .into_iter()
            .filter_map(|(who, of, cap)| Some((who, of, cap?)));
        let caps: Vec<_> = caps.collect();
        let Some(lowest) = caps.iter().map(|(_, _, cap)| *cap).min() else {
            return Ok(None);
        };
        let mut microusd = wanted.unwrap_or((lowest / DEFAULT_PART).max(1));
        let now = now_rfc3339();
        let month = now.get(..7).unwrap_or(&now);
        let reservation = Self {
            directory: state.ensure(&["sites", site.as_str(), DIRECTORY, month])?,
            run_id: run_id.clone(),
            requester: share.requester,
            microusd: 0,
        };
        reservation.change(|record| {
            for (who, of, cap) in caps {
                let used = record.used(of);
                let left = cap.saturating_sub(used);
                if left == 0 {
                    return Err(SpendError::Reached {
                        who,
                        month: month.to_owned(),
                        used,
                        cap,
                    });
                }
                microusd = microusd.min(left);
            }
            let reserved = Reserved {
                requester: share.requester,
                microusd,
            };
            record.reserved.insert(run_id.clone(), reserved);
            Ok(())
        })?;
        Ok(Some(Self {
            microusd,
            ..reservation
        }))
    }

    /// Returns the money that the run may spend, in millionths of a dollar.
    #[must_use]
    pub fn microusd(&self) -> u64 {
        self.microusd
    }

    /// Replaces the reservation by what the run used, in millionths of a dollar.
    ///
    /// # Errors
    /// When the record cannot be read or written; the reservation then stays.
    pub fn settle(self, used: u64) -> Result<(), SpendError> {
        self.change(|month| {
            month.reserved.remove(&self.run_id);
            let sum = month
                .used_microusd
                .entry(self.requester.to_string())
                .or_default();
            *sum = sum.saturating_add(used);
            Ok(())
        })
    }

    /// Changes the record of the month under the lock of its directory.
    fn change(
        &self,
        change: impl FnOnce(&mut Month) -> Result<(), SpendError>,
    ) -> Result<(), SpendError> {
        let _turn = lock_directory(&self.directory)?;
        let mut month = match read_document(&self.directory, FILE, LARGEST)? {
            Some(bytes) => read(&bytes)?,
            None => Month {
                version: VERSION,
                used_microusd: BTreeMap::new(),
                reserved: BTreeMap::new(),
            },
        };
        change(&mut month)?;
        let bytes = serde_json::to_vec(&month).map_err(io::Error::from)?;
        Ok(replace_file(
            &self.directory,
            FILE,
            &bytes,
            Durability::Synced,
        )?)
    }
}

impl From<DocumentError> for SpendError {
    fn from(source: DocumentError) -> Self {
        Self::Record { source }
    }
}

fn read(bytes: &[u8]) -> Result<Month, DocumentError> {
    #[derive(Deserialize)]
    struct Versioned {
        version: u64,
    }
    let Versioned { version } = parse(FILE, bytes)?;
    if version > VERSION {
        return Err(DocumentError::Newer {
            name: FILE,
            found: version,
            newest: VERSION,
        });
    }
    parse(FILE, bytes)
}

#[cfg(test)]
mod tests;
