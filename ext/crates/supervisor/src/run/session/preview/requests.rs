//! What a session does about its preview: opens it, serves its visitors, closes it.

use super::{Open, PreviewEnd};
use crate::run::preview_request::Wanted;
use crate::run::session::Session;
use serde_json::{Value, json};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wp_codebox_contracts::{ErrorBody, ErrorCode, PreviewRequest, schema_id};
use wp_codebox_proxy::preview::{
    Counts, Forwarder, ForwarderConfig, ForwarderLimits, Logins, Origin, Reservation,
};
use wp_codebox_runtime::{Stop, now_rfc3339, rfc3339};

/// Connections opened before the thread that owns the guest does something else.
const ROUND: usize = 32;

impl Session<'_, '_> {
    /// The event counter that wakes this session's owner when a visitor comes.
    pub(in crate::run) fn ring_for_visitors(&mut self, bell: OwnedFd) {
        self.previews.visitors.ring_with(bell);
    }

    /// Opens the preview that the run's own request asks for, until `until` at the latest. A run
    /// whose preview cannot be opened ends as failed, with what it did.
    pub(in crate::run) fn open_requested_preview(
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
    pub(in crate::run) fn preview(
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
    pub(in crate::run) fn preview_status(&self) -> Value {
        match (&self.previews.open, self.previews.records.last()) {
            (Some(open), _) => open.answer(),
            (None, Some(last)) => last.clone(),
            (None, None) => json!({"schema": schema_id::PREVIEW, "status": "none"}),
        }
    }

    /// The same for everybody: no token is in it. Null when there was none.
    pub(in crate::run) fn preview_shown(&self) -> Value {
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
            Some(held) if held.address() == wanted.place => None,
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
            connector: Arc::new(self.previews.visitors.clone()),
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
    pub(in crate::run) fn preview_until(&mut self, until: Instant) {
        if let Some(open) = &mut self.previews.open
            && open.ttl.is_none()
        {
            open.forwarder.live_until(until);
            open.expires_at = at(until);
        }
    }

    /// Opens connections for visitors who wait, and writes down a preview whose time was up. To
    /// be called whenever the bell rang, and now and then. Whether somebody came.
    pub(in crate::run) fn serve_visitors(&mut self) -> Result<bool, ErrorBody> {
        let came = self.previews.visitors.came();
        for _ in 0..ROUND {
            let Some(reply) = self.previews.visitors.next() else {
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
            let _ = reply.send(answer);
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
    pub(in crate::run) fn close_preview(&mut self, end: PreviewEnd) -> Result<(), ErrorBody> {
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
        self.recorder.evidence.notices.push(format!(
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
