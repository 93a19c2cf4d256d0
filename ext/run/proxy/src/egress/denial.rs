//! Reasons why the bridge refuses a request or why the request fails, their public codes, and the
//! response that the guest gets.
//!
//! The body has two lines: a sentence, then a JSON document that repeats the requested method, host,
//! port and path and, if a policy rule could allow the request, suggests that rule. The body as a
//! whole is not JSON: WordPress decodes the body of a response before it reads the status, and took
//! the document for the description of a plugin. Neither line contains data from a host or a secret.
//!
//! Clients that print no body print the reason phrase (pip, npm, PHP streams). The status of a denial
//! is no 5xx, 408 or 429, which npm and pip retry for a minute.

use super::log::{EgressDecision, EgressMode, EgressRow};
use serde_json::{Value, json};
use wp_codebox_contracts::{EgressRule, ErrorCode, schema_id};
use wp_codebox_policy::{Refusal, RequestPath};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $decision:ident, $status:literal, $message:literal;)+) => {
        /// Reason why a request was refused or failed.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Reason { $($(#[$doc])* $variant,)+ }

        impl Reason {
            #[cfg(test)]
            pub(super) const ALL: &'static [Reason] = &[$(Reason::$variant,)+];
            /// Returns the reason's code in log and response, which stays the same across releases.
            pub(super) const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text,)+ } }
            /// Returns the decision for the log: refused by the bridge, or failed outside of it.
            pub(super) const fn decision(self) -> EgressDecision { match self { $(Self::$variant => EgressDecision::$decision,)+ } }
            /// Returns the HTTP status of the response to the guest.
            pub(super) const fn status(self) -> u16 { match self { $(Self::$variant => $status,)+ } }
            /// Returns a sentence for the guest: what is wrong and what to do.
            pub(super) const fn message(self) -> &'static str { match self { $(Self::$variant => $message,)+ } }
        }
    };
}

reasons! {
    /// No policy rule names the host.
    HostNotAllowed = "host-not-allowed", Denied, 403, "the run's network policy does not allow this host; ask the operator for the rule in \"policy_hint\", or do without this host";
    /// A rule names the host, but not the port.
    PortNotAllowed = "port-not-allowed", Denied, 403, "the network policy allows this host, but not this port; ask the operator for the rule in \"policy_hint\"";
    /// A rule names host and port, but not the method.
    MethodNotAllowed = "method-not-allowed", Denied, 403, "the network policy allows this host, but not this method; ask the operator for the rule in \"policy_hint\"";
    /// A rule names host, port and method, but not the path.
    PathNotAllowed = "path-not-allowed", Denied, 403, "the network policy allows this host, but not this path; ask the operator for the rule in \"policy_hint\"";
    /// The path could mean different resources to different servers, so path rules cannot be
    /// checked.
    PathAmbiguous = "path-ambiguous", Denied, 403, "the path has dot segments, empty segments, `;`, or encoded slashes or percent signs, so the bridge cannot compare it with the policy's paths; send a normalised path";
    /// The policy rule restricts methods or paths, which the bridge cannot see inside a tunnel.
    TunnelHidesRequest = "tunnel-hides-request", Denied, 403, "the policy's rules for this host name methods or paths, which cannot be seen inside a tunnel; send the request to the bridge as /https/<host>/<path>, or ask for tls: terminate";
    /// The policy does not let guest programs send requests to the model.
    ModelNotAllowed = "model-not-allowed", Denied, 403, "programs of this run may not send requests to a model: the policy has no network preset `model`, or this guest runs the checks";
    /// The host name in the model's URL resolves to an address that the settings do not allow.
    ModelAddress = "model-address", Denied, 403, "the host name of the model resolves to an address that the host's settings do not allow for it; correct the model's base URL in these settings";
    /// The path is not one of the model API's inference endpoints.
    ModelPathNotAllowed = "model-path-not-allowed", Denied, 403, "the preset `model` allows requests only to the provider's inference paths (completions, responses, messages, embeddings, the list of models)";
    /// The method is wrong for the model endpoint.
    ModelMethodNotAllowed = "model-method-not-allowed", Denied, 403, "send model requests by POST, and read the list of models by GET";
    /// The name resolves to an address that is not public.
    PrivateAddress = "private-address", Denied, 403, "the name resolves to an address that is not public; no policy can allow it";
    /// The host is malformed or a non-canonical spelling of an address.
    HostInvalid = "host-invalid", Denied, 403, "the host must be a full ASCII name or a public address in its usual spelling, without user information or trailing dot";
    /// The method is TRACE or contains lower-case letters.
    MethodInvalid = "method-invalid", Denied, 403, "the method must be written in capitals and cannot be TRACE";
    /// A header or parameter would override the method or path that the rule checks.
    RequestOverride = "request-override", Denied, 403, "the policy's rule for this host names methods or paths, so a header or parameter that overrides them is refused; send the request without it";
    /// The `Host` header inside a terminated tunnel differs from the host of CONNECT.
    HostMismatch = "host-mismatch", Denied, 403, "the Host header must name the host that CONNECT named";
    /// The bytes inside the tunnel are not TLS.
    NotTls = "not-tls", Denied, 403, "only TLS passes through a tunnel; send plain HTTP as GET http://host/ to the proxy";
    /// The ClientHello has no server name.
    SniMissing = "sni-missing", Denied, 403, "the ClientHello inside the tunnel must name its server (SNI)";
    /// The server name in the ClientHello differs from the host of CONNECT.
    SniMismatch = "sni-mismatch", Denied, 403, "the ClientHello inside the tunnel must name the host that CONNECT named";
    /// The ClientHello is encrypted (ECH).
    HelloEncrypted = "hello-encrypted", Denied, 403, "an encrypted ClientHello hides the server's name; turn ECH off";
    /// The request is malformed, or two parsers could read it differently.
    MalformedRequest = "malformed-request", Denied, 400, "the request is malformed or could be read in two ways (bare line ends, folded or doubled headers, Content-Length beside Transfer-Encoding)";
    /// The request addresses the bridge itself as an HTTP server.
    NotAProxyRequest = "not-a-proxy-request", Denied, 403, "this is a proxy; send CONNECT, GET http://host/path, GET /https/<host>/<path>, or POST /model/<path>";
    /// The request head exceeds the limit.
    HeadTooLarge = "head-too-large", Denied, 431, "the request line and headers are larger than the bridge accepts; send a shorter URL or fewer headers";
    /// The request head did not arrive in time.
    HeadTimeout = "head-timeout", Denied, 408, "the request line and headers did not arrive in time; send them at once";
    /// The guest has too many open connections.
    TooManyConnections = "too-many-connections", Denied, 429, "too many connections at once; wait until others end";
    /// The guest sent too many requests in this minute.
    RateLimited = "rate-limited", Denied, 429, "too many requests per minute; retry later";
    /// The request body exceeds the limit of one request.
    RequestTooLarge = "request-too-large", Denied, 413, "the request body is larger than the limit of one request; split it over several requests";
    /// The guest has sent as many bytes as it may send in all requests together.
    RunRequestLimit = "run-request-limit", Denied, 403, "this sandbox has sent as many bytes as it may send in all requests together";
    /// The response exceeds the limit of one response.
    ResponseTooLarge = "response-too-large", Denied, 502, "the response is larger than the limit of one response; ask for less in one request";
    /// The guest has received as many bytes as it may receive in all responses together.
    RunResponseLimit = "run-response-limit", Denied, 403, "this sandbox has received as many bytes as it may receive in all responses together";
    /// The secret value contains bytes that are not allowed at the position of its placeholder.
    SecretUnusable = "secret-unusable", Denied, 403, "the value of a secret contains bytes that are not allowed where the request has its placeholder; use the placeholder elsewhere in the request, or correct the secret";
    /// The response is compressed, so the bridge cannot search it for secret values.
    ResponseEncoded = "response-encoded", Denied, 502, "the host sent a compressed response although the request asked for an uncompressed one; because the run has secrets, the bridge searches every response for their values, which it cannot do in a compressed one";
    /// Resolving the host name gave no address.
    NameNotFound = "name-not-found", Failed, 502, "the host's name could not be resolved; check its spelling";
    /// The bridge could not connect to any address of the host.
    ConnectFailed = "connect-failed", Failed, 502, "the host refused the connection or cannot be reached; check host and port, or try again later";
    /// Name lookup, connect or TLS handshake timed out.
    ConnectTimeout = "connect-timeout", Failed, 504, "the host could not be reached in time; try again later";
    /// The TLS handshake with the host failed.
    TlsFailed = "tls-failed", Failed, 502, "TLS with the host failed, or its certificate is not trusted; use a host with a certificate that this host trusts";
    /// The host closed the connection early or does not speak HTTP/1.1.
    UpstreamFailed = "upstream-failed", Failed, 502, "the host closed the connection early or sent no HTTP/1.1 response; try again later";
    /// Neither side sent a byte for the length of the idle timeout.
    IdleTimeout = "idle-timeout", Failed, 504, "nothing was sent or received for too long; try again later";
    /// The request exceeded its total time.
    TotalTimeout = "total-timeout", Failed, 504, "the request exceeded the time limit of one request; ask for less in one request";
    /// The guest closed the connection, or TLS with the guest failed.
    ClientGone = "client-gone", Failed, 502, "the client closed the connection before the end";
    /// The bridge stopped while the request was running.
    Stopped = "stopped", Failed, 502, "the run ended";
}

impl From<Refusal> for Reason {
    fn from(refusal: Refusal) -> Self {
        match refusal {
            Refusal::Host => Self::HostNotAllowed,
            Refusal::Port => Self::PortNotAllowed,
            Refusal::Method => Self::MethodNotAllowed,
            Refusal::Path => Self::PathNotAllowed,
            Refusal::PathAmbiguous(_) => Self::PathAmbiguous,
            Refusal::TunnelHidesRequest => Self::TunnelHidesRequest,
        }
    }
}

impl EgressRow {
    /// Returns whether the request was refused because no rule of the policy names its host and port.
    pub fn lacks_rule(&self) -> bool {
        [Reason::HostNotAllowed, Reason::PortNotAllowed]
            .iter()
            .any(|reason| reason.as_str() == self.reason)
    }
}

/// Requested method, host, port and path, as far as the bridge could parse them.
#[derive(Debug, Clone, Default)]
pub(super) struct RequestedTarget {
    pub mode: Option<EgressMode>,
    pub method: String,
    pub host: String,
    pub port: u16,
    pub path: String,
}

/// Media type of [`body`].
pub(super) const CONTENT_TYPE: &str = "text/plain; charset=utf-8";

/// Name of the header (RFC 9209) by which a client can tell the bridge's own responses from those of
/// hosts. The bridge removes it from the latter.
pub(super) const PROXY_STATUS: &str = "proxy-status";

fn code(reason: Reason) -> ErrorCode {
    match reason.decision() {
        EgressDecision::Denied => ErrorCode::EgressDenied,
        EgressDecision::Allowed | EgressDecision::Failed => ErrorCode::EgressFailed,
    }
}

/// Returns the sentence of the response: which request did not pass, why, and what to do.
fn sentence(reason: Reason, requested: &RequestedTarget) -> String {
    let RequestedTarget { host, port, .. } = requested;
    let outcome = match reason.decision() {
        EgressDecision::Denied => "denied",
        EgressDecision::Allowed | EgressDecision::Failed => "could not complete",
    };
    let subject = match (host.as_str(), port) {
        ("", _) => "a request".to_owned(),
        (host, 0) => format!("the request to {host}"),
        (host, port) => format!("the request to {host}:{port}"),
    };
    let option = match (reason, port) {
        (Reason::HostNotAllowed, 80 | 443) => format!(" (option --allow-host {host})"),
        (Reason::HostNotAllowed | Reason::PortNotAllowed, port) => {
            format!(" (option --allow-host {host}:{port})")
        }
        _ => String::new(),
    };
    let (message, code) = (reason.message(), code(reason));
    format!("the sandbox {outcome} {subject}: {message}{option} [{code}]")
}

/// Returns the value of [`PROXY_STATUS`]: type of the error, and the sentence of the body.
pub(super) fn proxy_status(reason: Reason, requested: &RequestedTarget) -> String {
    let error = match reason.decision() {
        EgressDecision::Denied => "http_request_denied",
        EgressDecision::Allowed | EgressDecision::Failed => "proxy_internal_response",
    };
    let mut details = String::new();
    for character in sentence(reason, requested).chars() {
        match character {
            '"' | '\\' => details.extend(['\\', character]),
            ' '..='~' => details.push(character),
            _ => details.push('?'),
        }
    }
    format!("wp-codebox; error={error}; details=\"{details}\"")
}

/// Returns the reason phrase of the status line.
pub(super) fn reason_phrase(reason: Reason) -> String {
    let status = hyper::StatusCode::from_u16(reason.status()).unwrap_or_default();
    let usual = status.canonical_reason().unwrap_or("Refused");
    let by = match status {
        hyper::StatusCode::FORBIDDEN => " by the network policy of the sandbox",
        _ => "",
    };
    format!("{usual}{by} ({})", reason.as_str())
}

/// Returns the body of the response to a refused or failed request: a sentence, and a JSON document
/// on the second line.
pub(super) fn body(reason: Reason, requested: &RequestedTarget) -> Vec<u8> {
    let (sentence, document) = (sentence(reason, requested), document(reason, requested));
    format!("{sentence}\n{document}\n").into_bytes()
}

fn document(reason: Reason, requested: &RequestedTarget) -> Value {
    json!({
        "schema": schema_id::EGRESS_DENIED,
        "code": code(reason),
        "reason": reason.as_str(),
        "message": reason.message(),
        "request": {
            "mode": requested.mode,
            "method": requested.method,
            "host": requested.host,
            "port": requested.port,
            "path": requested.path,
        },
        "policy_hint": hint(reason, requested),
    })
}

/// Returns the smallest policy rule that would allow this request; null when no rule can.
fn hint(reason: Reason, requested: &RequestedTarget) -> Value {
    let helps = matches!(
        reason,
        Reason::HostNotAllowed
            | Reason::PortNotAllowed
            | Reason::MethodNotAllowed
            | Reason::PathNotAllowed
            | Reason::TunnelHidesRequest
    );
    if !helps || requested.host.is_empty() || requested.mode == Some(EgressMode::Model) {
        return Value::Null;
    }
    let tunnel = requested.method == "CONNECT";
    let rule = EgressRule {
        host: requested.host.clone(),
        ports: vec![requested.port],
        methods: if tunnel {
            Vec::new()
        } else {
            vec![requested.method.clone()]
        },
        // A rule cannot contain an ambiguous path.
        paths: match RequestPath::parse(&requested.path) {
            Ok(path) if !tunnel && path.comparable().is_ok() => vec![requested.path.clone()],
            _ => Vec::new(),
        },
    };
    serde_json::to_value(rule).unwrap_or(Value::Null)
}

/// Returns the complete HTTP/1.1 response to a refused or failed request. The bridge closes the
/// guest's connection after it.
pub(super) fn response(reason: Reason, requested: &RequestedTarget) -> Vec<u8> {
    let body = body(reason, requested);
    let mut bytes = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: {CONTENT_TYPE}\r\ncontent-length: {}\r\ncache-control: no-store\r\n{PROXY_STATUS}: {}\r\nconnection: close\r\n\r\n",
        reason.status(),
        reason_phrase(reason),
        body.len(),
        proxy_status(reason, requested),
    )
    .into_bytes();
    if requested.method != "HEAD" {
        bytes.extend_from_slice(&body);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn denial_reasons_have_distinct_codes_and_http_error_statuses() {
        let words: BTreeSet<_> = Reason::ALL.iter().map(|r| r.as_str()).collect();
        assert_eq!(words.len(), Reason::ALL.len());
        for reason in Reason::ALL {
            assert!((400..600).contains(&reason.status()));
            if reason.decision() == EgressDecision::Failed {
                assert!(matches!(reason.status(), 502 | 504), "{reason:?}");
            }
        }
    }

    #[test]
    fn suggested_rule_allows_the_refused_request_and_a_private_address_gets_no_suggestion() {
        let requested = RequestedTarget {
            mode: Some(EgressMode::BaseUrl),
            method: "POST".to_owned(),
            host: "api.example".to_owned(),
            port: 8443,
            path: "/v1/x".to_owned(),
        };
        let body = document(Reason::HostNotAllowed, &requested);
        assert_eq!(body["schema"], "wp-codebox/egress-denied/v1");
        assert_eq!(body["code"], "wp_codebox_egress_denied");
        assert_eq!(body["request"]["mode"], "base-url");
        let rules: wp_codebox_contracts::NetworkRules =
            serde_json::from_value(json!({"rules": [body["policy_hint"]]})).unwrap();
        let rules = wp_codebox_policy::EgressRules::compile(&rules).unwrap();
        let host = wp_codebox_policy::Host::parse("api.example").unwrap();
        let path = wp_codebox_policy::RequestPath::parse("/v1/x").unwrap();
        let request = wp_codebox_policy::EgressRequest {
            host: &host,
            port: 8443,
            method: "POST",
            path: &path,
        };
        assert!(rules.request(request).is_ok());
        let refused = document(Reason::PrivateAddress, &requested);
        assert!(refused["policy_hint"].is_null());
        let failed = document(Reason::TlsFailed, &requested);
        assert_eq!(failed["code"], "wp_codebox_egress_failed");
    }

    #[test]
    fn denial_is_no_json_names_the_option_and_has_a_status_that_no_client_retries() {
        let requested = |port| RequestedTarget {
            method: "CONNECT".to_owned(),
            host: "api.example".to_owned(),
            port,
            ..RequestedTarget::default()
        };
        for (port, option) in [
            (443, "(option --allow-host api.example)"),
            (8443, "(option --allow-host api.example:8443)"),
        ] {
            let answer = response(Reason::HostNotAllowed, &requested(port));
            let answer = String::from_utf8(answer).unwrap();
            let (head, body) = answer.split_once("\r\n\r\n").unwrap();
            assert!(head.starts_with(
                "HTTP/1.1 403 Forbidden by the network policy of the sandbox (host-not-allowed)\r\n"
            ));
            assert!(head.contains("content-type: text/plain; charset=utf-8"));
            let details = head.split_once("details=\"").unwrap().1;
            assert!(details.replace('\\', "").contains(option), "{head}");
            assert!(body.lines().next().unwrap().contains(option), "{body}");
            assert!(serde_json::from_str::<Value>(body).is_err(), "{body}");
        }
        let private = sentence(Reason::PrivateAddress, &requested(443));
        assert!(!private.contains("--allow-host"), "{private}");
    }

    #[test]
    fn details_of_the_proxy_status_are_one_quoted_ascii_string() {
        let requested = RequestedTarget {
            host: "a\"b\\c\u{e9}\r\n".to_owned(),
            ..RequestedTarget::default()
        };
        let status = proxy_status(Reason::MalformedRequest, &requested);
        assert!(status.contains("a\\\"b\\\\c???:"), "{status}");
        assert!(
            status.bytes().all(|b| (b' '..=b'~').contains(&b)),
            "{status}"
        );
    }

    /// The body of every error response has only fields and reasons that its JSON schema lists.
    #[test]
    fn denial_schema_lists_every_reason_and_every_member_of_the_body() {
        let text = wp_codebox_schemas::text("egress-denied").unwrap();
        let schema: Value = serde_json::from_str(text).unwrap();
        let listed = &schema["properties"]["reason"]["enum"];
        let reasons: Vec<&str> = Reason::ALL.iter().map(|reason| reason.as_str()).collect();
        assert_eq!(listed, &json!(reasons));
        let known = |schema: &Value, given: &Value| {
            let names = given.as_object().unwrap().keys();
            names.for_each(|name| assert!(schema["properties"].get(name).is_some(), "{name}"));
            let required = schema["required"].as_array().unwrap().iter();
            required.for_each(|name| {
                assert!(given.get(name.as_str().unwrap()).is_some(), "{name}");
            });
        };
        for mode in [
            EgressMode::Unknown,
            EgressMode::Tunnel,
            EgressMode::Terminate,
            EgressMode::Absolute,
            EgressMode::BaseUrl,
            EgressMode::Model,
            EgressMode::Site,
        ] {
            let requested = RequestedTarget {
                mode: Some(mode),
                ..RequestedTarget::default()
            };
            let body = document(Reason::PathNotAllowed, &requested);
            let request = &schema["properties"]["request"];
            known(&schema, &body);
            known(request, &body["request"]);
            let modes = request["properties"]["mode"]["enum"].as_array().unwrap();
            assert!(modes.contains(&body["request"]["mode"]), "{body}");
        }
    }
}
