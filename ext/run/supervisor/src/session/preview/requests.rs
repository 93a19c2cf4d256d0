//! Opens, serves and closes the preview of a session.

use super::{Open, PreviewEnd};
use crate::request::preview_request::Wanted;
use crate::session::Session;
use serde_json::{Value, json};
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use wp_codebox_contracts::{ErrorBody, ErrorCode, PreviewRequest, schema_id};
use wp_codebox_proxy::preview::{
    Counts, Forwarder, ForwarderConfig, ForwarderLimits, Logins, Origin, Reservation,
};
use wp_codebox_runtime::{Stop, now_rfc3339, rfc3339};

/// Maximum number of connections to open before the thread that owns the guest does other work.
const ROUND: usize = 32;

impl Session<'_, '_> {
    /// Sets the event counter (eventfd) that wakes the thread that owns the guest when a visitor
    /// arrives.
    pub(crate) fn ring_for_visitors(&mut self, bell: OwnedFd) {
        self.previews.visitors.ring_with(bell);
    }

    /// Opens the preview that the run request asks for; it stays open until `until` at the latest.
    /// If that fails, returns the reason to stop the run.
    pub(crate) fn open_requested_preview(
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

    /// Opens, closes or shows the preview for a client; the reply has the form `preview/v1`.
    /// `until` is the time at which the sandbox ends.
    pub(crate) fn preview(
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
                let message =
                    format!("unknown preview action {other:?}: use open, status or close");
                Err(ErrorBody::new(ErrorCode::InputInvalid, message))
            }
        }
    }

    /// Returns the record of the open preview; without one, the record of the last preview; if
    /// there was no preview, a record that states this.
    pub(crate) fn preview_status(&self) -> Value {
        match (&self.previews.open, self.previews.records.last()) {
            (Some(open), _) => open.answer(),
            (None, Some(last)) => last.clone(),
            (None, None) => json!({"schema": schema_id::PREVIEW, "status": "none"}),
        }
    }

    /// Returns the record of the open preview, otherwise of the last preview, in both cases without
    /// the access token; null if there was no preview.
    pub(crate) fn preview_shown(&self) -> Value {
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
        let wanted = Wanted::read(request, self.context.prepared.users)?;
        if let Some(open) = &mut self.previews.open {
            // A second request can change the deadline of the preview, but not its address.
            if wanted.place.port.is_some() && wanted.place != open.place {
                let message = format!("a preview is already open at {}", open.url);
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
        let token = wanted.token.or_else(|| self.previews.token.clone());
        let logins = Logins::default();
        let forwarder = Forwarder::open(ForwarderConfig {
            listener,
            public: wanted.public.clone(),
            token: token.clone(),
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
            token: token.clone(),
            opened_at: now_rfc3339(),
            expires_at: at(until),
            ttl: wanted.ttl,
            logins,
            forwarder,
        };
        self.previews.token = token;
        let record = open.record("open", Counts::default());
        let answer = open.offer_login(wanted.login);
        self.previews.open = Some(open);
        self.recorder
            .observe("preview", Value::Object(record.clone()), record)?;
        Ok(answer)
    }

    /// Sets the deadline of the preview to `until`, the new end of the sandbox, unless a client or
    /// the run request gave the preview a time limit of its own.
    pub(crate) fn preview_until(&mut self, until: Instant) {
        if let Some(open) = &mut self.previews.open
            && open.ttl.is_none()
        {
            open.forwarder.live_until(until);
            open.expires_at = at(until);
        }
    }

    /// Opens connections for waiting visitors and closes an expired preview. To be called when the
    /// event counter fires and periodically. Returns whether a visitor arrived.
    pub(crate) fn serve_visitors(&mut self) -> Result<bool, ErrorBody> {
        let came = self.previews.visitors.take_arrivals();
        for _ in 0..ROUND {
            let Some(reply) = self.previews.visitors.next() else {
                break;
            };
            let answer = if self.previews.is_open() {
                self.site_connection()
            } else {
                Err(ErrorBody::new(
                    ErrorCode::PreviewUnavailable,
                    "the preview is closed",
                ))
            };
            // Sending fails if the visitor has disconnected.
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

    /// Closes the preview, if one is open, and records that. Afterwards another process can use the
    /// port.
    pub(crate) fn close_preview(&mut self, end: PreviewEnd) -> Result<(), ErrorBody> {
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
            "the preview was open at {} from {} until {} ({}); requests answered: {}",
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

/// Converts a future instant to a timestamp.
fn at(when: Instant) -> String {
    let left = when.saturating_duration_since(Instant::now());
    let since = SystemTime::now()
        .duration_since(UNIX_EPOCH)
        .unwrap_or_default();
    let then = since.saturating_add(left);
    rfc3339(then.as_secs(), then.subsec_millis())
}
