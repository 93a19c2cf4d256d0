//! The preview of a held sandbox: its guest's site, on an address of the host.
//!
//! It is open while the sandbox is held, by the run's own request or because somebody asked for
//! it meanwhile, and closed before the guest ends. What visitors do there happens in the guest: what
//! it changes in captured mounts is part of the run's change as everything else that is; what it
//! changes in the database never is. Every preview leaves a record: where it was and when, how many
//! requests there were, how it ended; never its token.

mod server;
mod visitors;

pub(super) use server::{SITE_PORT, SiteServer};

use super::session::Session;
use serde_json::{Map, Value, json};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use visitors::Visitors;
use wp_codebox_contracts::{ErrorBody, ErrorCode, PreviewRequest, schema_id};
use wp_codebox_proxy::preview::{
    Counts, Forwarder, ForwarderConfig, ForwarderLimits, LOGIN_PARAMETER, Logins, Origin,
    PARAMETER, Place, Reservation, Token,
};
use wp_codebox_runtime::{StateDir, Stop, now_rfc3339, rfc3339};

/// Connections opened before the thread that owns the guest does something else.
const ROUND: usize = 32;

/// What the site is served by.
const SERVER: &str = "php-built-in";

/// How a preview ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PreviewEnd {
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

/// A request that was checked: where a preview shall be.
#[derive(Debug, Clone)]
struct Wanted {
    place: Place,
    public: Option<Origin>,
    token: Option<Token>,
    ttl: Option<Duration>,
    login: Option<(Token, String)>,
}

impl Wanted {
    fn read(request: &PreviewRequest) -> Result<Self, ErrorBody> {
        let place = Place::new(request.bind.as_deref(), request.port)?;
        let public = request.public_url.as_deref();
        let public = public.map(Origin::public).transpose()?;
        let local = place.is_loopback() && public.as_ref().is_none_or(Origin::is_loopback);
        let token = match &request.token {
            Some(given) => Some(Token::given(given)?),
            None if local => None,
            // Whoever reaches this address, or the proxy in front, is not asked otherwise who he is.
            None => Some(Token::random()?),
        };
        let login = match &request.login {
            None => None,
            Some(login) => {
                let key = login.key.as_deref().map(Token::given);
                let key = key.unwrap_or_else(Token::random)?;
                Some((key, login.user.clone().unwrap_or_default()))
            }
        };
        Ok(Self {
            place,
            public,
            token,
            login,
            ttl: request.ttl_ms.map(Duration::from_millis),
        })
    }
}

/// Judges a preview that a run asks for, before anything of the run starts.
pub(super) fn reserve(
    state: &StateDir,
    request: &PreviewRequest,
) -> Result<Reservation, ErrorBody> {
    Reservation::of(state, Wanted::read(request)?.place)
}

/// The previews of a session: at most one is open.
#[derive(Default)]
pub(super) struct Previews {
    visitors: Visitors,
    open: Option<Open>,
    records: Vec<Value>,
}

/// One that is open.
struct Open {
    forwarder: Forwarder,
    _reservation: Option<Reservation>,
    place: Place,
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
    pub(super) fn is_open(&self) -> bool {
        self.open.is_some()
    }

    /// What the bundle says of them: the last one, and all when there were several.
    pub(super) fn into_record(self) -> Option<Value> {
        let mut last = self.records.last().cloned()?;
        if self.records.len() > 1 {
            last["all"] = json!(self.records);
        }
        Some(last)
    }
}

impl Session<'_, '_> {
    /// The event counter that wakes this session's owner when a visitor comes.
    pub(super) fn ring_for_visitors(&mut self, bell: OwnedFd) {
        self.previews.visitors.ring_with(bell);
    }

    /// Opens the preview that the run's own request asks for, until `until` at the latest. A run
    /// whose preview cannot be opened ends as failed, with what it did.
    pub(super) fn open_requested_preview(
        &mut self,
        request: &PreviewRequest,
        until: Instant,
    ) -> Result<Option<Stop>, ErrorBody> {
        match self.open_preview(request, until) {
            Ok(_) => Ok(None),
            Err(error) => {
                let data = json!({"status": "failed", "error": error});
                let detail = data.as_object().cloned().unwrap_or_default();
                self.recorder.observe("preview", data, detail)?;
                Ok(Some(Stop::Failed(error)))
            }
        }
    }

    /// Carries out a request about the preview; the answer is `preview/v1`. `until` is when the
    /// sandbox ends as things stand.
    pub(super) fn preview(
        &mut self,
        request: &PreviewRequest,
        until: Instant,
    ) -> Result<Value, ErrorBody> {
        self.settle_preview()?;
        match request.action.as_deref().unwrap_or("open") {
            "open" => self.open_preview(request, until),
            "status" => Ok(self.preview_status()),
            "close" => {
                self.close_preview(PreviewEnd::Closed)?;
                Ok(self.preview_status())
            }
            other => {
                let message = format!("there is no action {other:?} of a preview");
                Err(ErrorBody::new(ErrorCode::InputInvalid, message)
                    .hint("open, status and close are"))
            }
        }
    }

    /// The open preview, else the last one, else that there was none.
    pub(super) fn preview_status(&self) -> Value {
        match (&self.previews.open, self.previews.records.last()) {
            (Some(open), _) => open.answer(),
            (None, Some(last)) => last.clone(),
            (None, None) => json!({"schema": schema_id::PREVIEW, "status": "none"}),
        }
    }

    /// The same for everybody: no token is in it. Null when there was none.
    pub(super) fn preview_shown(&self) -> Value {
        match (&self.previews.open, self.previews.records.last()) {
            (Some(open), _) => Value::Object(open.record("open", open.forwarder.counts())),
            (None, Some(last)) => last.clone(),
            (None, None) => Value::Null,
        }
    }

    fn open_preview(
        &mut self,
        request: &PreviewRequest,
        until: Instant,
    ) -> Result<Value, ErrorBody> {
        let wanted = Wanted::read(request)?;
        if let Some(open) = &mut self.previews.open {
            // Asked again it may live longer; it does not move.
            if wanted.place.port.is_some() && wanted.place != open.place {
                let message = format!("a preview is open at {} already", open.url);
                return Err(
                    ErrorBody::new(ErrorCode::PreviewUnavailable, message).hint("close it first")
                );
            }
            open.ttl = wanted.ttl.or(open.ttl);
            let until = within(wanted.ttl, until);
            open.forwarder.live_until(until);
            open.expires_at = at(until);
            return Ok(open.offer_login(wanted.login));
        }
        let state = &self.context.prepared.state;
        let held = self.context.prepared.preview.as_ref();
        let reservation = match held {
            Some(held) if held.place() == wanted.place => None,
            Some(_) | None => Some(Reservation::of(state, wanted.place)?),
        };
        self.site_server()?;
        let listener = match (&reservation, held) {
            (Some(own), _) => own.listen()?,
            (None, Some(held)) => held.listen()?,
            (None, None) => Reservation::of(state, wanted.place)?.listen()?,
        };
        let until = within(wanted.ttl, until);
        let logins = Logins::default();
        let forwarder = Forwarder::open(ForwarderConfig {
            listener,
            public: wanted.public.clone(),
            token: wanted.token.clone(),
            until,
            doorway: Arc::new(self.previews.visitors.clone()),
            limits: ForwarderLimits::default(),
            logins: logins.clone(),
        })?;
        let local = Origin::local(forwarder.address()).to_string();
        let public = wanted.public.map(|origin| origin.to_string());
        let open = Open {
            _reservation: reservation,
            place: wanted.place,
            url: public.clone().unwrap_or_else(|| local.clone()),
            local,
            public,
            token: wanted.token,
            opened_at: now_rfc3339(),
            expires_at: at(until),
            ttl: wanted.ttl,
            logins,
            forwarder,
        };
        let record = open.record("open", Counts::default());
        let answer = open.offer_login(wanted.login);
        self.previews.open = Some(open);
        self.recorder
            .observe("preview", Value::Object(record.clone()), record)?;
        Ok(answer)
    }

    /// The sandbox lives until then: a preview without a time of its own does, too.
    pub(super) fn preview_until(&mut self, until: Instant) {
        if let Some(open) = &mut self.previews.open
            && open.ttl.is_none()
        {
            open.forwarder.live_until(until);
            open.expires_at = at(until);
        }
    }

    /// Opens connections for visitors who wait, and writes down a preview whose time was up. To
    /// be called whenever the bell rang, and now and then. Whether somebody came.
    pub(super) fn serve_visitors(&mut self) -> Result<bool, ErrorBody> {
        let came = self.previews.visitors.came();
        for _ in 0..ROUND {
            let Some(knock) = self.previews.visitors.next() else {
                break;
            };
            let answer = if self.previews.is_open() {
                self.site_connection()
            } else {
                Err(ErrorBody::new(
                    ErrorCode::PreviewUnavailable,
                    "it is closed",
                ))
            };
            // A visitor who went away wants none.
            let _ = knock.send(answer);
        }
        self.settle_preview()?;
        Ok(came)
    }

    fn settle_preview(&mut self) -> Result<(), ErrorBody> {
        let over = self.previews.open.as_ref();
        if over.is_some_and(|open| open.forwarder.has_expired()) {
            self.close_preview(PreviewEnd::Expired)?;
        }
        Ok(())
    }

    /// Closes the preview, if one is open, and writes it down. Its port is free afterwards.
    pub(super) fn close_preview(&mut self, end: PreviewEnd) -> Result<(), ErrorBody> {
        let Some(mut open) = self.previews.open.take() else {
            return Ok(());
        };
        let end = if open.forwarder.has_expired() {
            PreviewEnd::Expired
        } else {
            end
        };
        let counts = open.forwarder.close();
        let mut record = open.record(end.name(), counts);
        let closed_at = match end {
            PreviewEnd::Expired => open.expires_at.clone(),
            PreviewEnd::Closed => now_rfc3339(),
        };
        record.insert("closedAt".to_owned(), json!(closed_at));
        self.recorder.notices.push(format!(
            "the site could be looked at on {} from {} until {} ({}); requests answered: {}",
            open.url,
            open.opened_at,
            closed_at,
            end.name(),
            counts.served
        ));
        self.previews.records.push(Value::Object(record.clone()));
        self.recorder
            .observe("preview", Value::Object(record.clone()), record)
    }
}

fn within(ttl: Option<Duration>, until: Instant) -> Instant {
    let own = ttl.and_then(|ttl| Instant::now().checked_add(ttl));
    own.map_or(until, |own| own.min(until))
}

/// An instant of the future as a time of day.
fn at(when: Instant) -> String {
    let left = when.saturating_duration_since(Instant::now());
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let then = since.saturating_add(left);
    rfc3339(then.as_secs(), then.subsec_millis())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_is_not_on_this_machine_needs_a_token() {
        for (bind, public, token) in [
            (None, None, false),
            (Some("127.0.0.2"), None, false),
            (None, Some("http://localhost:8081"), false),
            (None, Some("http://[::1]:8081"), false),
            (Some("0.0.0.0"), None, true),
            (Some("::ffff:127.0.0.1"), None, true),
            (None, Some("https://preview.example.org"), true),
            (None, Some("http://localhost.example.org"), true),
            (Some("::1"), Some("http://192.0.2.7:8081"), true),
        ] {
            let wanted = Wanted::read(&PreviewRequest {
                bind: bind.map(str::to_owned),
                public_url: public.map(str::to_owned),
                ..PreviewRequest::default()
            });
            assert_eq!(
                wanted.unwrap().token.is_some(),
                token,
                "{bind:?} {public:?}"
            );
        }
    }
}
