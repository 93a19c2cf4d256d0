//! One guest connection: reads one request, checks it, then forwards, tunnels or refuses it.

use super::authority::Authority;
use super::denial::{self, Reason};
use super::exchange::Exchange;
use super::head::{Framing, Head, Opening, read_head};
use super::hello::{ALERT, ServerName, read_hello};
use super::log::EgressMode;
use super::model;
use super::route::{self, Route, Target};
use super::shared::Shared;
use super::site;
use super::stream::{Io, linger, rewound};
use super::trace::Trace;
use super::tunnel;
use bytes::{Bytes, BytesMut};
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use std::time::Duration;
use tokio::io::AsyncWriteExt;
use tokio_rustls::TlsAcceptor;
use wp_codebox_policy::{Authority as HostPort, EgressRequest, Host, RequestPath, RuleScope};

const ESTABLISHED: &[u8] = b"HTTP/1.1 200 Connection established\r\n\r\n";

/// Extra time after the idle timeout of a request. [`Exchange`] applies the idle timeout itself and
/// sends an error response. The later timeout aborts connections that can no longer get a response.
const GRACE: Duration = Duration::from_secs(1);

/// Headers that override the method on some servers.
const METHOD_OVERRIDES: &[&str] = &[
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
];
/// Query parameter that overrides the method on some servers.
const METHOD_PARAMETER: &str = "_method";
/// Headers that override the path on some servers.
const PATH_OVERRIDES: &[&str] = &["x-original-uri", "x-original-url", "x-rewrite-url"];

/// Serves one connection until it ends.
pub(super) async fn serve(shared: Arc<Shared>, io: Io) {
    let trace = Trace::begin(&shared.ledger);
    let total = shared.budget.limits.total_timeout;
    let session = Session {
        shared,
        trace: Arc::clone(&trace),
    };
    if tokio::time::timeout(total, session.run(io)).await.is_err() {
        trace.stopped(Reason::TotalTimeout);
    }
}

/// Sends the error response to a connection above the limit of concurrent connections.
pub(super) async fn turn_away(shared: Arc<Shared>, io: Io) {
    let trace = Trace::begin(&shared.ledger);
    Session { shared, trace }
        .refuse(io, Reason::TooManyConnections)
        .await;
}

struct Session {
    shared: Arc<Shared>,
    trace: Arc<Trace>,
}

impl Session {
    async fn run(&self, mut io: Io) {
        let limits = &self.shared.budget.limits;
        let (head, bytes) = match read_head(&mut io, limits.head_bytes, limits.head_timeout).await {
            Ok(Opening::Request(head, bytes)) => (head, bytes),
            Ok(Opening::Nothing) => return self.trace.discard(),
            Err(reason) => return self.refuse(io, reason).await,
        };
        self.trace
            .describe(|row| row.method.clone_from(&head.method));
        if let Some(target) = self.shared.site.as_ref().and_then(|_| site::target(&head)) {
            return match target {
                Ok(target) => self.visit(io, &head, bytes, target).await,
                Err(reason) => self.refuse(io, reason).await,
            };
        }
        let route = match route::outer(&head) {
            Ok(route) => route,
            Err(reason) => return self.refuse(io, reason).await,
        };
        match route {
            Route::Connect { host, port } => {
                self.trace.describe(|row| {
                    row.host = host.to_string();
                    row.port = port;
                });
                let early = bytes.slice(head.length..);
                self.connect(io, &head, early, &host, port).await;
            }
            Route::Forward(target) => self.forward(io, &head, bytes, target).await,
            Route::Model(path) => self.ask_model(io, &head, bytes, &path).await,
        }
    }

    /// Handles a request to the run's model. The log does not contain the model's address.
    async fn ask_model(&self, io: Io, head: &Head, bytes: Bytes, path: &RequestPath) {
        self.trace.describe(|row| {
            row.mode = EgressMode::Model;
            model::NAME.clone_into(&mut row.host);
            row.path = shown(path);
        });
        if let Err(reason) = self.shared.budget.begin() {
            return self.refuse(io, reason).await;
        }
        let checked = match &self.shared.model {
            None => Err(Reason::ModelNotAllowed),
            Some(model) => model.target(head, path).and_then(|target| {
                not_overridden(head, path, Overrides::BOTH)?;
                self.fits(head)?;
                Ok(target)
            }),
        };
        match checked {
            Err(reason) => self.refuse(io, reason).await,
            Ok(target) => {
                self.trace
                    .describe(|row| model::NAME.clone_into(&mut row.rule));
                self.carry(io, head.body, bytes, target).await;
            }
        }
    }

    /// Handles a request of a browser to the run's site. No policy rule applies: only the code that
    /// configures the bridge decides whether it has a site.
    async fn visit(&self, io: Io, head: &Head, bytes: Bytes, target: Target) {
        self.describe(&target);
        let checked = self.shared.budget.begin().and_then(|()| self.fits(head));
        match checked {
            Err(reason) => self.refuse(io, reason).await,
            Ok(()) => self.carry(io, head.body, bytes, target).await,
        }
    }

    async fn connect(&self, io: Io, head: &Head, early: Bytes, host: &Host, port: u16) {
        let mode = match self.shared.authority {
            Some(_) => EgressMode::Terminate,
            None => EgressMode::Tunnel,
        };
        self.trace.describe(|row| row.mode = mode);
        if head.body != Framing::Empty {
            return self.refuse(io, Reason::MalformedRequest).await;
        }
        if let Err(reason) = self.shared.budget.begin() {
            return self.refuse(io, reason).await;
        }
        match &self.shared.authority {
            Some(authority) => self.terminate(io, early, host, port, authority).await,
            None => self.tunnel(io, early, host, port).await,
        }
    }

    async fn tunnel(&self, mut io: Io, early: Bytes, host: &Host, port: u16) {
        match self.shared.rules.tunnel(host, port) {
            Ok(allowed) => self
                .trace
                .describe(|row| allowed.rule.clone_into(&mut row.rule)),
            Err(refusal) => return self.refuse(io, refusal.into()).await,
        }
        let note = self.shared.secrets.tunnel_note(host);
        self.trace.describe(|row| row.note = note);
        let opened = self.shared.upstream.tunnel(host, port, &self.trace).await;
        let mut upstream = match opened {
            Ok(upstream) => upstream,
            Err(reason) => return self.refuse(io, reason).await,
        };
        let Some(hello) = self.hello(&mut io, early, host).await else {
            return linger(io).await;
        };
        let sent = tunnel::count_sent(hello.len(), &self.trace, &self.shared.budget);
        let ended = match sent {
            Err(reason) => Err(reason),
            Ok(()) => match upstream.write_all(&hello).await {
                Err(_) => Err(Reason::UpstreamFailed),
                Ok(()) => tunnel::pump(io, upstream, &self.trace, &self.shared.budget).await,
            },
        };
        match ended {
            Ok(()) => self.trace.passed(),
            Err(reason) => {
                self.trace.stopped(reason);
            }
        }
    }

    async fn terminate(
        &self,
        mut io: Io,
        early: Bytes,
        host: &Host,
        port: u16,
        authority: &Authority,
    ) {
        let requested = HostPort {
            host: host.clone(),
            port: Some(port),
        };
        if let Err(refusal) = self.shared.rules.names(&requested) {
            return self.refuse(io, refusal.into()).await;
        }
        let Ok(config) = authority.server(host) else {
            return self.refuse(io, Reason::TlsFailed).await;
        };
        let Some(hello) = self.hello(&mut io, early, host).await else {
            return linger(io).await;
        };
        let limits = &self.shared.budget.limits;
        let accepting = TlsAcceptor::from(config).accept(rewound(hello, io));
        let mut inner = match tokio::time::timeout(limits.head_timeout, accepting).await {
            Ok(Ok(stream)) => Box::new(stream) as Io,
            Ok(Err(_)) | Err(_) => {
                self.trace.stopped(Reason::ClientGone);
                return self.trace.describe(|row| {
                    "TLS with the client failed; it may not trust the certificate of the run"
                        .clone_into(&mut row.note);
                });
            }
        };
        match read_head(&mut inner, limits.head_bytes, limits.head_timeout).await {
            Ok(Opening::Request(head, bytes)) => {
                self.trace
                    .describe(|row| row.method.clone_from(&head.method));
                match route::inner(&head, host, port) {
                    Ok(target) => self.carry_allowed(inner, &head, bytes, target).await,
                    Err(reason) => self.refuse(inner, reason).await,
                }
            }
            // The client opened the connection in advance and sent no request.
            Ok(Opening::Nothing) => self.trace.passed(),
            Err(reason) => self.refuse(inner, reason).await,
        }
    }

    /// Tells the guest that the tunnel is open and reads its ClientHello. Returns the bytes read,
    /// or `None` when the bridge refuses the tunnel.
    async fn hello(&self, io: &mut Io, early: Bytes, host: &Host) -> Option<Bytes> {
        self.trace.describe(|row| row.status = 200);
        let answer = match io.write_all(ESTABLISHED).await {
            Ok(()) => {
                let time = self.shared.budget.limits.head_timeout;
                read_hello(io, BytesMut::from(&early[..]), time).await
            }
            Err(_) => Err(Reason::ClientGone),
        };
        let checked = answer.and_then(|(name, bytes)| match (name, host.address()) {
            (ServerName::Named(name), _) if name == host.as_str() => Ok(bytes),
            // A client that connects to an IP address sends no server name.
            (ServerName::Absent, Some(_)) => Ok(bytes),
            (ServerName::Absent, None) => Err(Reason::SniMissing),
            (ServerName::Named(_), _) => Err(Reason::SniMismatch),
        });
        match checked {
            Ok(bytes) => Some(bytes.freeze()),
            Err(reason) => {
                self.trace.stopped(reason);
                let _ = io.write_all(ALERT).await;
                None
            }
        }
    }

    async fn forward(&self, io: Io, head: &Head, bytes: Bytes, target: Target) {
        self.describe(&target);
        if let Err(reason) = self.shared.budget.begin() {
            return self.refuse(io, reason).await;
        }
        self.carry_allowed(io, head, bytes, target).await;
    }

    async fn carry_allowed(&self, io: Io, head: &Head, bytes: Bytes, target: Target) {
        self.describe(&target);
        if let Err(reason) = self.check(head, &target) {
            return self.refuse(io, reason).await;
        }
        self.carry(io, head.body, bytes, target).await;
    }

    fn describe(&self, target: &Target) {
        self.trace.describe(|row| {
            row.mode = target.mode;
            row.host = target.host.to_string();
            row.port = target.port;
            row.path = shown(&target.path);
        });
    }

    fn check(&self, head: &Head, target: &Target) -> Result<(), Reason> {
        let allowed = self.shared.rules.request(EgressRequest {
            host: &target.host,
            port: target.port,
            method: &head.method,
            path: &target.path,
        })?;
        self.trace
            .describe(|row| allowed.rule.clone_into(&mut row.rule));
        let held = Overrides {
            methods: allowed.methods,
            paths: allowed.paths,
        };
        not_overridden(head, &target.path, held)?;
        self.fits(head)
    }

    /// Refuses a body whose declared length is above the limit.
    fn fits(&self, head: &Head) -> Result<(), Reason> {
        match head.body {
            Framing::Length(bytes) if bytes > self.shared.budget.limits.request_bytes => {
                Err(Reason::RequestTooLarge)
            }
            Framing::Length(_) | Framing::Chunked | Framing::Empty => Ok(()),
        }
    }

    async fn carry(&self, io: Io, framing: Framing, bytes: Bytes, target: Target) {
        let limits = &self.shared.budget.limits;
        let exchange = Arc::new(Exchange {
            shared: Arc::clone(&self.shared),
            trace: Arc::clone(&self.trace),
            target,
            framing,
        });
        let service = service_fn(move |request| {
            let exchange = Arc::clone(&exchange);
            async move { exchange.answer(request).await }
        });
        let connection = hyper::server::conn::http1::Builder::new()
            .keep_alive(false)
            .max_headers(128)
            .max_buf_size(limits.head_bytes.max(64 * 1024))
            .serve_connection(TokioIo::new(rewound(bytes, io)), service)
            .without_shutdown();
        tokio::select! {
            ended = connection => if let Ok(parts) = ended {
                linger(parts.io.into_inner()).await;
            },
            () = self.trace.idle(limits.idle_timeout + GRACE) => {
                self.trace.stopped(Reason::IdleTimeout);
            }
        }
    }

    /// Sends an error response without contacting any host.
    async fn refuse(&self, mut io: Io, reason: Reason) {
        let reason = self.trace.stopped(reason);
        let answer = denial::response(reason, &self.trace.requested());
        self.trace.describe(|row| row.status = reason.status());
        let writing = io.write_all(&answer);
        let written = tokio::time::timeout(self.shared.budget.limits.head_timeout, writing).await;
        if matches!(written, Ok(Ok(()))) {
            linger(io).await;
        }
    }
}

/// Parts of a request (method, path) that the policy rule restricts. Headers or parameters may not
/// override these parts.
struct Overrides {
    methods: RuleScope,
    paths: RuleScope,
}

impl Overrides {
    const BOTH: Self = Self {
        methods: RuleScope::Named,
        paths: RuleScope::Named,
    };
}

fn not_overridden(head: &Head, path: &RequestPath, held: Overrides) -> Result<(), Reason> {
    let sent = |list: &[&str]| head.names.iter().any(|n| list.contains(&n.as_str()));
    let method = match held.methods {
        RuleScope::Any => false,
        RuleScope::Named => sent(METHOD_OVERRIDES) || path.query().is_some_and(overrides),
    };
    let other_path = match held.paths {
        RuleScope::Any => false,
        RuleScope::Named => sent(PATH_OVERRIDES),
    };
    if method || other_path {
        Err(Reason::RequestOverride)
    } else {
        Ok(())
    }
}

/// Returns the path for the log, with the query redacted.
fn shown(path: &RequestPath) -> String {
    match path.query() {
        Some(_) => format!("{}?[redacted]", path.path()),
        None => path.path().to_owned(),
    }
}

/// Returns whether a query contains the method override parameter in any encoding.
fn overrides(query: &str) -> bool {
    query.split(['&', ';']).any(|pair| {
        let name = pair.split('=').next().unwrap_or_default();
        let name = decoded(name);
        // PHP drops leading blanks of parameter names, and treats `_method[]` as `_method`.
        name.trim_start()
            .split('[')
            .next()
            .is_some_and(|plain| plain.eq_ignore_ascii_case(METHOD_PARAMETER))
    })
}

fn decoded(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while let Some(&byte) = bytes.get(at) {
        let code = text
            .get(at + 1..at + 3)
            .filter(|_| byte == b'%')
            .and_then(|digits| u8::from_str_radix(digits, 16).ok());
        out.push(match (code, byte) {
            (Some(code), _) => code,
            (None, b'+') => b' ',
            (None, byte) => byte,
        });
        at += if code.is_some() { 3 } else { 1 };
    }
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::overrides;

    #[test]
    fn query_with_method_override_is_detected_in_any_encoding() {
        for query in [
            "_method=DELETE",
            "a=1&_method=x",
            "%5fmethod=x",
            "_METHOD=x",
            "_method[]=x",
            "+_method=x",
            "a;_method",
        ] {
            assert!(overrides(query), "{query}");
        }
        for query in ["", "method=x", "a=_method", "my_method=x", "%zz=1", "%"] {
            assert!(!overrides(query), "{query}");
        }
    }
}
