//! Handles one request of a visitor to a preview: checks it, sends it to the guest and returns the
//! response.

use super::body::{StreamedBody, bounded, words};
use super::connector::GuestConnector;
use super::cookies::Cookies;
use super::counters::RequestCounters;
use super::headers;
use super::limits::ForwarderLimits;
use super::origin::{Hosts, Origin};
use super::token::{LOGIN_PARAMETER, Logins, PARAMETER, Token};
use crate::relay::{Connection, YieldingReader};
use http_body_util::{BodyExt, Empty};
use hyper::body::{Body, Incoming};
use hyper::header::{self, HeaderValue};
use hyper::{Method, Request, Response, StatusCode, Uri};
use hyper_util::rt::TokioIo;
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpStream;
use tokio::sync::{Semaphore, oneshot};
use tokio::time::timeout;

/// Configuration and state that all connections of a preview use.
pub(super) struct Shared {
    pub hosts: Hosts,
    pub token: Option<Token>,
    pub cookies: Cookies,
    pub counters: Arc<RequestCounters>,
    pub limits: ForwarderLimits,
    pub connector: Arc<dyn GuestConnector>,
    pub logins: Logins,
    /// One permit for each request that the guest may handle at the same time; held until the
    /// response ends.
    pub permits: Arc<Semaphore>,
}

/// Reason why the forwarder sends a response of its own instead of the guest's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Refusal {
    Malformed,
    TokenNeeded,
    TokenWrong,
    LoginUsed,
    ServiceWorker,
    Method,
    TooLarge,
    OtherHost,
    Upgrade,
    /// The guest's server cannot be reached, or its response is invalid.
    Unreachable,
    Busy,
    Slow,
}

impl Refusal {
    const fn status(self) -> StatusCode {
        match self {
            Self::Malformed => StatusCode::BAD_REQUEST,
            Self::TokenNeeded => StatusCode::UNAUTHORIZED,
            Self::TokenWrong | Self::LoginUsed | Self::ServiceWorker => StatusCode::FORBIDDEN,
            Self::Method => StatusCode::METHOD_NOT_ALLOWED,
            Self::TooLarge => StatusCode::PAYLOAD_TOO_LARGE,
            Self::OtherHost => StatusCode::MISDIRECTED_REQUEST,
            Self::Upgrade => StatusCode::NOT_IMPLEMENTED,
            Self::Unreachable => StatusCode::BAD_GATEWAY,
            Self::Busy => StatusCode::SERVICE_UNAVAILABLE,
            Self::Slow => StatusCode::GATEWAY_TIMEOUT,
        }
    }

    const fn sentence(self) -> &'static str {
        match self {
            Self::Malformed => "This request is malformed.\n",
            Self::TokenNeeded => {
                "This preview needs its access token: open the link that came with it.\n"
            }
            Self::TokenWrong => "This is not the access token of this preview.\n",
            Self::LoginUsed => {
                "This sign-in link works once, and it was used or replaced: ask for a new link.\n"
            }
            Self::ServiceWorker => "A preview has no service workers.\n",
            Self::Method => "A preview does not forward this method.\n",
            Self::TooLarge => "This request is too large for a preview.\n",
            Self::OtherHost => "The host of this request is not the host of this preview.\n",
            Self::Upgrade => "A preview forwards plain HTTP requests only, no WebSockets.\n",
            Self::Unreachable => "The sandbox does not respond.\n",
            Self::Busy => "The sandbox is busy; try again.\n",
            Self::Slow => "The sandbox did not respond in time.\n",
        }
    }

    /// Returns true if the guest is the cause: the request counts as failed, otherwise as refused.
    const fn is_the_guests(self) -> bool {
        match self {
            Self::Unreachable | Self::Busy | Self::Slow => true,
            Self::Malformed
            | Self::TokenNeeded
            | Self::TokenWrong
            | Self::LoginUsed
            | Self::ServiceWorker
            | Self::Method
            | Self::TooLarge
            | Self::OtherHost
            | Self::Upgrade => false,
        }
    }
}

/// What the forwarder does with an accepted request.
enum Action {
    /// Send the request to the guest.
    Carry(Origin),
    /// Store the access token from the query in a cookie, and redirect the visitor.
    Exchange(Origin, Token),
    /// Sign in as this user; an empty name means the first administrator.
    Login(Origin, String),
}

impl Shared {
    /// Responds to one request of a visitor. `arrived` is the local address of its connection.
    pub(super) async fn answer(
        &self,
        request: Request<Incoming>,
        arrived: SocketAddr,
    ) -> Result<Response<StreamedBody>, Infallible> {
        let answer = match self.judge(&request, arrived) {
            Ok(Action::Carry(origin)) => self.carry(request, &origin, None).await,
            Ok(Action::Login(origin, user)) => self.carry(request, &origin, Some(&user)).await,
            Ok(Action::Exchange(origin, token)) => self.exchange(request.uri(), &origin, &token),
            Err(refusal) => Err(refusal),
        };
        Ok(answer.unwrap_or_else(|refusal| self.refused(refusal)))
    }

    fn judge(&self, request: &Request<Incoming>, arrived: SocketAddr) -> Result<Action, Refusal> {
        let headers = request.headers();
        let mut hosts = headers.get_all(header::HOST).iter();
        let (Some(host), None) = (hosts.next(), hosts.next()) else {
            return Err(Refusal::Malformed);
        };
        let host = host.to_str().map_err(|_| Refusal::OtherHost)?;
        let origin = self.hosts.judge(host, arrived).ok_or(Refusal::OtherHost)?;
        if request.method() == Method::CONNECT || headers.contains_key(header::UPGRADE) {
            return Err(Refusal::Upgrade);
        }
        let carried = [
            Method::GET,
            Method::HEAD,
            Method::POST,
            Method::PUT,
            Method::PATCH,
            Method::DELETE,
            Method::OPTIONS,
        ];
        if !carried.contains(request.method()) {
            return Err(Refusal::Method);
        }
        let uri = request.uri();
        // Refuses an absolute request target, because its host could contradict the `Host` header.
        if uri.authority().is_some() || !uri.path().starts_with('/') {
            return Err(Refusal::Malformed);
        }
        if let Some(token) = &self.token {
            match parameter(uri, PARAMETER) {
                Some(brought) if !token.is(&brought) => return Err(Refusal::TokenWrong),
                Some(_) if matches!(*request.method(), Method::GET | Method::HEAD) => {
                    return Ok(Action::Exchange(origin, token.clone()));
                }
                Some(_) | None => {}
            }
            if !self.cookies.has_token(headers, token) {
                return Err(Refusal::TokenNeeded);
            }
        }
        if headers::is_service_worker(headers) {
            return Err(Refusal::ServiceWorker);
        }
        if let Some(key) = parameter(uri, LOGIN_PARAMETER) {
            // Link previews of chat programs send HEAD, which must not use up the one-time login.
            if request.method() != Method::GET {
                return Err(Refusal::Method);
            }
            let user = self.logins.take(&key).ok_or(Refusal::LoginUsed)?;
            return Ok(Action::Login(origin, user));
        }
        if request.body().size_hint().lower() > self.limits.request_bytes {
            return Err(Refusal::TooLarge);
        }
        Ok(Action::Carry(origin))
    }

    /// Stores the access token in a cookie and redirects to the URL without the token.
    fn exchange(
        &self,
        uri: &Uri,
        origin: &Origin,
        token: &Token,
    ) -> Result<Response<StreamedBody>, Refusal> {
        let cookie = self.cookies.token_cookie(token, origin.is_secure());
        let target = format!("{origin}{}", without_token(uri));
        let location = HeaderValue::from_str(&target).map_err(|_| Refusal::Malformed)?;
        let mut response = Response::new(words(""));
        *response.status_mut() = StatusCode::SEE_OTHER;
        let headers = response.headers_mut();
        headers.insert(header::LOCATION, location);
        headers.insert(header::SET_COOKIE, cookie.ok_or(Refusal::Malformed)?);
        headers::force(headers);
        Ok(response)
    }

    async fn carry(
        &self,
        request: Request<Incoming>,
        origin: &Origin,
        login: Option<&str>,
    ) -> Result<Response<StreamedBody>, Refusal> {
        let limits = &self.limits;
        let mut outgoing = self.outgoing(request, origin)?;
        if let Some(user) = login {
            headers::sign_in(&mut outgoing, user).ok_or(Refusal::Malformed)?;
        }
        let waiting = Arc::clone(&self.permits).acquire_owned();
        let permit = timeout(limits.connect_timeout, waiting)
            .await
            .map_err(|_| Refusal::Busy)?
            .map_err(|_| Refusal::Busy)?;
        let stream = self.connect().await?;
        let (mut sender, connection) = hyper::client::conn::http1::Builder::new()
            .max_buf_size(limits.head_bytes)
            .handshake(TokioIo::new(YieldingReader::new(stream)))
            .await
            .map_err(|_| Refusal::Unreachable)?;
        let connection = Connection::spawn(connection);
        let response = timeout(limits.answer_timeout, sender.send_request(outgoing))
            .await
            .map_err(|_| Refusal::Slow)?
            .map_err(|_| Refusal::Unreachable)?;
        let (parts, body) = response.into_parts();
        let lengths = [header::CONTENT_LENGTH, header::TRANSFER_ENCODING];
        // Refused: a switch of protocols (101), and a response whose length could be read in two
        // ways.
        if parts.status.is_informational() || lengths.iter().all(|l| parts.headers.contains_key(l))
        {
            return Err(Refusal::Unreachable);
        }
        self.counters.served();
        let body = bounded(
            body,
            limits.response_bytes,
            limits.idle_timeout,
            (connection, permit),
        );
        let mut response = Response::new(body);
        *response.status_mut() = parts.status;
        *response.headers_mut() = headers::for_visitor(&parts.headers, &self.cookies);
        Ok(response)
    }

    async fn connect(&self) -> Result<TcpStream, Refusal> {
        let (reply, answer) = oneshot::channel();
        self.connector.connect(reply);
        let connection = match timeout(self.limits.connect_timeout, answer).await {
            Err(_) => return Err(Refusal::Busy),
            Ok(Err(_) | Ok(Err(_))) => return Err(Refusal::Unreachable),
            Ok(Ok(Ok(connection))) => connection,
        };
        let stream = std::net::TcpStream::from(connection);
        let usable = stream.set_nonblocking(true).is_ok();
        // The connector may return a socket of any kind, so anything but a TCP socket is refused.
        let stream = TcpStream::from_std(stream).map_err(|_| Refusal::Unreachable)?;
        if !usable || stream.peer_addr().is_err() {
            return Err(Refusal::Unreachable);
        }
        let _ = stream.set_nodelay(true);
        Ok(stream)
    }

    fn outgoing(
        &self,
        request: Request<Incoming>,
        origin: &Origin,
    ) -> Result<Request<StreamedBody>, Refusal> {
        let (parts, body) = request.into_parts();
        let mut headers =
            headers::for_guest(&parts.headers, origin, &self.cookies).ok_or(Refusal::Malformed)?;
        let uri: Uri = without_token(&parts.uri)
            .parse()
            .map_err(|_| Refusal::Malformed)?;
        let limits = &self.limits;
        let hint = body.size_hint();
        let body = match hint.exact() {
            Some(0) => Empty::new().map_err(|never| match never {}).boxed_unsync(),
            exact => {
                if let Some(bytes) = exact {
                    headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes));
                }
                bounded(body, limits.request_bytes, limits.idle_timeout, ())
            }
        };
        let mut outgoing = Request::new(body);
        *outgoing.method_mut() = parts.method;
        *outgoing.uri_mut() = uri;
        *outgoing.headers_mut() = headers;
        Ok(outgoing)
    }

    fn refused(&self, refusal: Refusal) -> Response<StreamedBody> {
        if refusal.is_the_guests() {
            self.counters.failed();
        } else {
            self.counters.refused();
        }
        let mut response = Response::new(words(refusal.sentence()));
        *response.status_mut() = refusal.status();
        let headers = response.headers_mut();
        headers.insert(
            header::CONTENT_TYPE,
            HeaderValue::from_static("text/plain; charset=utf-8"),
        );
        headers::force(headers);
        response
    }
}

fn is(pair: &str, name: &str) -> bool {
    pair.split('=').next() == Some(name)
}

/// Returns the value of the first query parameter `name`, which is an access token or a login key.
fn parameter(uri: &Uri, name: &str) -> Option<String> {
    let pair = uri.query()?.split('&').find(|pair| is(pair, name))?;
    Some(
        pair.split_once('=')
            .map_or("", |(_, value)| value)
            .to_owned(),
    )
}

/// Returns path and query of a request without the parameter for the access token.
fn without_token(uri: &Uri) -> String {
    let remaining: Vec<&str> = uri
        .query()
        .into_iter()
        .flat_map(|query| query.split('&'))
        .filter(|pair| !is(pair, PARAMETER))
        .collect();
    let remaining = remaining.join("&");
    match uri.query() {
        Some(_) if !remaining.is_empty() => format!("{}?{remaining}", uri.path()),
        Some(_) | None => uri.path().to_owned(),
    }
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn only_the_preview_token_is_removed_from_the_query() {
        for (given, token, rest) in [
            ("/a?preview_token=x", Some("x"), "/a"),
            ("/a?b=1&preview_token=x&c=%20", Some("x"), "/a?b=1&c=%20"),
            ("/a?preview_token", Some(""), "/a"),
            ("/a?xpreview_token=1", None, "/a?xpreview_token=1"),
            ("/a", None, "/a"),
            (
                "//host/a?preview_token=1&preview_token=2",
                Some("1"),
                "//host/a",
            ),
        ] {
            let uri: Uri = given.parse().unwrap();
            assert_eq!(parameter(&uri, PARAMETER).as_deref(), token, "{given}");
            assert_eq!(without_token(&uri), rest, "{given}");
        }
    }
}
