//! Sends one allowed request to a host and returns the response to the guest.
//!
//! The bridge builds new headers instead of forwarding the message. In both directions it drops
//! hop-by-hop headers and the headers that `Connection` names. It sets `Host` to the host and port
//! that the policy check used, and lets the HTTP library write the framing. Bodies are streamed: a
//! receiver that reads slowly slows down the sender.

use super::body::{BodyError, RequestFilter, ResponseFilter};
use super::denial::{self, Reason};
use super::head::Framing;
use super::log::EgressMode;
use super::model::Model;
use super::route::Target;
use super::secrets::Scrubber;
use super::shared::Shared;
use super::stream::Io;
use super::trace::Trace;
use super::upstream::Allowed;
use crate::relay::{Connection, FilteredBody, YieldingReader};
use bytes::Bytes;
use http_body_util::combinators::UnsyncBoxBody;
use http_body_util::{BodyExt, Empty, Full};
use hyper::body::{Body, Incoming};
use hyper::ext::ReasonPhrase;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::sync::Arc;

/// Body of a request or response that the bridge forwards piece by piece.
pub(super) type StreamedBody = UnsyncBoxBody<Bytes, BodyError>;

/// Minimum buffer size that the HTTP library accepts, in bytes.
const MIN_BUFFER: usize = 8192;

/// Hop-by-hop headers, in addition to those that `Connection` names.
const HOP_BY_HOP: &[&str] = &[
    "connection",
    "keep-alive",
    "proxy-authenticate",
    "proxy-authentication-info",
    "proxy-authorization",
    "proxy-connection",
    "te",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// A request that the policy allows, with its destination.
pub(super) struct Exchange {
    pub shared: Arc<Shared>,
    pub trace: Arc<Trace>,
    pub target: Target,
    pub framing: Framing,
}

impl Exchange {
    /// Sends the request and returns the response; a failure becomes an error response.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
    ) -> Result<Response<StreamedBody>, Infallible> {
        let response = match self.carry(request).await {
            Ok(response) => response,
            Err(reason) => self.refusal(reason),
        };
        let status = response.status().as_u16();
        self.trace.describe(|row| row.status = status);
        Ok(response)
    }

    fn refusal(&self, reason: Reason) -> Response<StreamedBody> {
        let reason = self.trace.stopped(reason);
        let requested = self.trace.requested();
        let body = Full::new(Bytes::from(denial::body(reason, &requested)));
        let mut response = Response::new(body.map_err(|never| match never {}).boxed_unsync());
        *response.status_mut() =
            StatusCode::from_u16(reason.status()).unwrap_or(StatusCode::BAD_GATEWAY);
        if let Ok(phrase) = ReasonPhrase::try_from(denial::reason_phrase(reason)) {
            response.extensions_mut().insert(phrase);
        }
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static(denial::CONTENT_TYPE),
        );
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if let Ok(status) = HeaderValue::try_from(denial::proxy_status(reason, &requested)) {
            headers.insert(denial::PROXY_STATUS, status);
        }
        response
    }

    async fn carry(&self, request: Request<Incoming>) -> Result<Response<StreamedBody>, Reason> {
        let limits = &self.shared.budget.limits;
        let outgoing = self.outgoing(request)?;
        let stream = self.open().await?;
        self.trace.touch();
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(limits.head_bytes.max(MIN_BUFFER))
            .handshake(TokioIo::new(YieldingReader::new(stream)))
            .await
            .map_err(|_| Reason::UpstreamFailed)?;
        let connection = Connection::spawn(connection);
        let response = tokio::select! {
            answer = sender.send_request(outgoing) => {
                // If the filter of the request body aborted the request, its reason is recorded
                // already, and `stopped` returns that reason.
                answer.map_err(|_| self.trace.stopped(Reason::UpstreamFailed))?
            }
            () = self.trace.idle(limits.idle_timeout) => return Err(Reason::IdleTimeout),
        };
        self.trace.touch();
        self.incoming(response, connection)
    }

    async fn open(&self) -> Result<Io, Reason> {
        let site = match self.target.mode {
            EgressMode::Site => self.shared.site.as_ref(),
            EgressMode::Unknown
            | EgressMode::Tunnel
            | EgressMode::Terminate
            | EgressMode::Absolute
            | EgressMode::BaseUrl
            | EgressMode::Model => None,
        };
        let Some(site) = site else {
            let upstream = &self.shared.upstream;
            return upstream
                .open(&self.target, self.allowed(), &self.trace)
                .await;
        };
        let most = self.shared.budget.limits.connect_timeout;
        match tokio::time::timeout(most, site.0.connect()).await {
            Ok(Ok(stream)) => Ok(Box::new(stream)),
            Ok(Err(_)) => Err(Reason::ConnectFailed),
            Err(_) => Err(Reason::ConnectTimeout),
        }
    }

    fn outgoing(&self, request: Request<Incoming>) -> Result<Request<StreamedBody>, Reason> {
        let (parts, body) = request.into_parts();
        let mut headers = end_to_end(&parts.headers);
        headers.remove(header::EXPECT);
        headers.remove(header::CONTENT_LENGTH);
        let host =
            HeaderValue::from_str(&self.target.host_header()).map_err(|_| Reason::HostInvalid)?;
        headers.insert(header::HOST, host);
        if self.scrubber().is_some() {
            // A compressed response could hide a secret value from the scrubber, and a range
            // response could return the value in pieces.
            headers.insert(
                header::ACCEPT_ENCODING,
                HeaderValue::from_static("identity"),
            );
            headers.remove(header::RANGE);
            headers.remove(header::IF_RANGE);
        }
        let swapped = match self.model() {
            Some(model) => model.authorise(&self.target, &mut headers)?,
            None => self.shared.secrets.apply(&self.target, &mut headers)?,
        };
        let uri = match &swapped.query {
            Some(query) => format!("{}?{query}", self.target.path.path()),
            None => self.target.path.path().to_owned(),
        };
        let uri: Uri = uri.parse().map_err(|_| Reason::SecretUnusable)?;
        self.trace.describe(|row| {
            row.secrets = swapped.used;
            row.secrets_withheld = swapped.withheld;
        });
        let body = match self.framing {
            Framing::Empty => Empty::new().map_err(|never| match never {}).boxed_unsync(),
            Framing::Length(bytes) => {
                headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
                self.body(body)
            }
            Framing::Chunked => self.body(body),
        };
        let mut outgoing = Request::new(body);
        *outgoing.method_mut() = parts.method;
        *outgoing.uri_mut() = uri;
        *outgoing.headers_mut() = headers;
        Ok(outgoing)
    }

    /// Returns the run's model when the request goes to the model.
    fn model(&self) -> Option<&Model> {
        match self.target.mode {
            EgressMode::Model => self.shared.model.as_ref(),
            EgressMode::Unknown
            | EgressMode::Tunnel
            | EgressMode::Terminate
            | EgressMode::Absolute
            | EgressMode::BaseUrl
            | EgressMode::Site => None,
        }
    }

    /// Returns which addresses the destination's host name may resolve to.
    fn allowed(&self) -> Allowed<'_> {
        self.model()
            .map_or(Allowed::Public, |model| Allowed::Model(model.base()))
    }

    /// Returns the scrubber that removes secret values from the response. Responses of the run's
    /// own site are not scrubbed: they come from a guest of this run, which has placeholders only.
    fn scrubber(&self) -> Option<Scrubber> {
        match self.target.mode {
            EgressMode::Site => None,
            EgressMode::Unknown
            | EgressMode::Tunnel
            | EgressMode::Terminate
            | EgressMode::Absolute
            | EgressMode::BaseUrl
            | EgressMode::Model => self.shared.secrets.scrubber(),
        }
    }

    fn body(&self, inner: Incoming) -> StreamedBody {
        let filter = RequestFilter {
            trace: Arc::clone(&self.trace),
            budget: Arc::clone(&self.shared.budget),
        };
        FilteredBody::new(inner, filter, ()).boxed_unsync()
    }

    fn incoming(
        &self,
        response: Response<Incoming>,
        connection: Connection,
    ) -> Result<Response<StreamedBody>, Reason> {
        let (parts, body) = response.into_parts();
        if parts.status == StatusCode::SWITCHING_PROTOCOLS {
            return Err(Reason::UpstreamFailed);
        }
        if body.size_hint().lower() > self.shared.budget.limits.response_bytes {
            return Err(Reason::ResponseTooLarge);
        }
        let mut headers = end_to_end(&parts.headers);
        headers.remove(denial::PROXY_STATUS);
        let scrubber = self.scrubber();
        if let Some(scrubber) = &scrubber {
            let coded = headers
                .get_all(header::CONTENT_ENCODING)
                .iter()
                .any(|coding| !coding.as_bytes().eq_ignore_ascii_case(b"identity"));
            if coded {
                return Err(Reason::ResponseEncoded);
            }
            scrubber.headers(&mut headers);
            // Replacing values changes the length of a body. A response without a body, such as one
            // to HEAD, keeps its `Content-Length`.
            if !body.is_end_stream() {
                headers.remove(header::CONTENT_LENGTH);
            }
        }
        let filter = ResponseFilter {
            trace: Arc::clone(&self.trace),
            budget: Arc::clone(&self.shared.budget),
            scrubber,
        };
        let body = FilteredBody::new(body, filter, connection);
        let mut response = Response::new(body.boxed_unsync());
        *response.status_mut() = parts.status;
        *response.headers_mut() = headers;
        Ok(response)
    }
}

/// Returns the headers that are meant for the final recipient: all except hop-by-hop headers.
pub fn end_to_end(headers: &HeaderMap) -> HeaderMap {
    let named: Vec<HeaderName> = headers
        .get_all(header::CONNECTION)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .filter_map(|name| name.trim().parse().ok())
        .collect();
    let mut forwarded = HeaderMap::with_capacity(headers.len());
    for (name, value) in headers {
        if !HOP_BY_HOP.contains(&name.as_str()) && !named.contains(name) {
            forwarded.append(name.clone(), value.clone());
        }
    }
    forwarded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hop_by_hop_headers_are_dropped() {
        let mut headers = HeaderMap::new();
        for (name, value) in [
            ("connection", "close, X-Mine"),
            ("connection", "keep-alive"),
            ("x-mine", "1"),
            ("keep-alive", "timeout=5"),
            ("proxy-authorization", "Basic x"),
            ("te", "trailers"),
            ("upgrade", "websocket"),
            ("transfer-encoding", "chunked"),
            ("set-cookie", "a=1"),
            ("set-cookie", "b=2"),
            ("accept", "*/*"),
        ] {
            headers.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let forwarded = end_to_end(&headers);
        assert_eq!(forwarded.len(), 3);
        assert_eq!(forwarded.get_all("set-cookie").iter().count(), 2);
        assert_eq!(forwarded["accept"], "*/*");
    }
}
