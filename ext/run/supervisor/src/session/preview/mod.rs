//! Preview of a held sandbox: the guest's site on an address of the host.
//!
//! The run request or a later request opens the preview while the sandbox is held; it closes before
//! the guest ends. Visitors act inside the guest: their changes in captured mounts are part of the
//! run's change, their changes in the database never are. Each preview has a record with address,
//! times, number of requests and end, but without its token.

mod output;
mod requests;
mod server;
mod site;
mod visitors;

pub(crate) use output::SiteOutput;
pub(crate) use server::{SITE_PORT, SiteServer};

use serde_json::{Map, Value, json};
use std::time::Duration;
use visitors::Visitors;
use wp_codebox_contracts::schema_id;
use wp_codebox_proxy::preview::{
    Counts, Forwarder, LOGIN_PARAMETER, ListenAddress, Logins, PARAMETER, Reservation, Token,
};

/// Kind of web server that serves the site, for the preview's record.
const SERVER: &str = "php-built-in";

/// How a preview ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum PreviewEnd {
    /// The preview was closed before its deadline, by a client or because its sandbox ended.
    Closed,
    /// The deadline of the preview passed.
    Expired,
}

impl PreviewEnd {
    const fn name(self) -> &'static str {
        match self {
            Self::Closed => "closed",
            Self::Expired => "expired",
        }
    }
}

/// Previews of a session, of which at most one is open.
#[derive(Default)]
pub(crate) struct Previews {
    visitors: Visitors,
    open: Option<Open>,
    /// Token of the last preview that had one. A preview that is opened again needs it too.
    token: Option<Token>,
    records: Vec<Value>,
}

/// The preview that is currently open.
struct Open {
    forwarder: Forwarder,
    _reservation: Option<Reservation>,
    place: ListenAddress,
    url: String,
    local: String,
    public: Option<String>,
    token: Option<Token>,
    opened_at: String,
    expires_at: String,
    ttl: Option<Duration>,
    logins: Logins,
}

impl Open {
    /// Returns the record of the preview. `state` is `open`, `closed` or `expired`.
    fn record(&self, state: &str, counts: Counts) -> Map<String, Value> {
        let mut record = Map::new();
        record.insert("schema".to_owned(), json!(schema_id::PREVIEW));
        record.insert("status".to_owned(), json!(state));
        record.insert("url".to_owned(), json!(self.url));
        record.insert("localUrl".to_owned(), json!(self.local));
        if let Some(public) = &self.public {
            record.insert("publicUrl".to_owned(), json!(public));
        }
        let access = if self.token.is_some() {
            "token"
        } else {
            "open"
        };
        record.insert("access".to_owned(), json!(access));
        record.insert("openedAt".to_owned(), json!(self.opened_at));
        record.insert("expiresAt".to_owned(), json!(self.expires_at));
        record.insert(
            "requests".to_owned(),
            json!({
                "served": counts.served, "refused": counts.refused,
                "failed": counts.failed, "turnedAway": counts.turned_away,
            }),
        );
        record.insert("server".to_owned(), json!(SERVER));
        record
    }

    /// Returns the preview's record for a client, with a link that logs a visitor in. The stored
    /// record does not contain the link.
    fn offer_login(&self, login: Option<(Token, String)>) -> Value {
        let mut answer = self.answer();
        if let Some((key, user)) = login {
            let base = answer["accessUrl"].as_str().map(str::to_owned);
            let base = base.map_or(format!("{}/?", self.url), |link| format!("{link}&"));
            answer["loginUrl"] = json!(format!("{base}{LOGIN_PARAMETER}={}", key.reveal()));
            self.logins.offer(key, user);
        }
        answer
    }

    /// Returns the preview's record for a client, with the link that contains the access token.
    fn answer(&self) -> Value {
        let mut answer = self.record("open", self.forwarder.counts());
        if let Some(token) = &self.token {
            let link = format!("{}/?{PARAMETER}={}", self.url, token.reveal());
            answer.insert("accessUrl".to_owned(), json!(link));
        }
        Value::Object(answer)
    }
}

impl Previews {
    /// Returns whether a preview is open. While a preview is open, its visitors and its deadline
    /// must be handled.
    pub(crate) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// Returns what the bundle records about previews: the last preview, and a list if there were
    /// several.
    pub(crate) fn into_record(self) -> Option<Value> {
        let mut last = self.records.last().cloned()?;
        if self.records.len() > 1 {
            last["all"] = json!(self.records);
        }
        Some(last)
    }
}
