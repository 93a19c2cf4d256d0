//! The preview of a held sandbox: its guest's site, on an address of the host.
//!
//! It is open while the sandbox is held, by the run's own request or because somebody asked for
//! it meanwhile, and closed before the guest ends. What visitors do there happens in the guest: what
//! it changes in captured mounts is part of the run's change as everything else that is; what it
//! changes in the database never is. Every preview leaves a record: where it was and when, how many
//! requests there were, how it ended; never its token.

mod requests;
mod server;
mod site;
mod visitors;

pub(in crate::run) use server::{SITE_PORT, SiteServer};

use serde_json::{Map, Value, json};
use std::time::Duration;
use visitors::Visitors;
use wp_codebox_contracts::schema_id;
use wp_codebox_proxy::preview::{
    Counts, Forwarder, LOGIN_PARAMETER, ListenAddress, Logins, PARAMETER, Reservation, Token,
};

/// What the site is served by.
const SERVER: &str = "php-built-in";

/// How a preview ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::run) enum PreviewEnd {
    /// Somebody closed it, or the sandbox it shows.
    Closed,
    /// Its time was up.
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

/// The previews of a session: at most one is open.
#[derive(Default)]
pub(in crate::run) struct Previews {
    visitors: Visitors,
    open: Option<Open>,
    records: Vec<Value>,
}

/// One that is open.
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
    /// The record of it. `state` is `open`, `closed` or `expired`.
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

    /// Offers a link that signs in; only the answer to this request has it.
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

    /// The record for whoever owns the sandbox: with the link that lets a visitor in.
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
    /// Whether something has to be done for a visitor, or the preview's time was up.
    pub(in crate::run) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// What the bundle says of them: the last one, and all when there were several.
    pub(in crate::run) fn into_record(self) -> Option<Value> {
        let mut last = self.records.last().cloned()?;
        if self.records.len() > 1 {
            last["all"] = json!(self.records);
        }
        Some(last)
    }
}
