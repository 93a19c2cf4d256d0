//! Why a request did not pass, in words that stay, and the answer a guest gets.
//!
//! The body names what was asked and, where a rule would help, the rule to ask for.
//! Nothing in it comes from a host's answer or holds a secret.

use super::log::{EgressDecision, EgressMode};
use serde_json::{Value, json};
use wp_codebox_contracts::{EgressRule, ErrorCode, schema_id};
use wp_codebox_policy::{Refusal, RequestPath};

macro_rules! reasons {
    ($($(#[$doc:meta])* $variant:ident = $text:literal, $decision:ident, $status:literal, $message:literal;)+) => {
        /// Why a request did not pass.
        #[derive(Debug, Clone, Copy, PartialEq, Eq)]
        pub(super) enum Reason { $($(#[$doc])* $variant,)+ }

        impl Reason {
            #[cfg(test)]
            pub(super) const ALL: &'static [Reason] = &[$(Reason::$variant,)+];
            /// The stable word.
            pub(super) const fn as_str(self) -> &'static str { match self { $(Self::$variant => $text,)+ } }
            /// Whose doing it is.
            pub(super) const fn decision(self) -> EgressDecision { match self { $(Self::$variant => EgressDecision::$decision,)+ } }
            /// HTTP status of the answer.
            pub(super) const fn status(self) -> u16 { match self { $(Self::$variant => $status,)+ } }
            /// What is wrong and what to do.
            pub(super) const fn message(self) -> &'static str { match self { $(Self::$variant => $message,)+ } }
        }
    };
}

reasons! {
    /// No rule names the host.
    HostNotAllowed = "host-not-allowed", Denied, 403, "this host is not in the run's network policy; ask for the rule in policy_hint, or do without it";
    /// A rule names the host, not the port.
    PortNotAllowed = "port-not-allowed", Denied, 403, "the network policy names this host, but not this port; ask for the rule in policy_hint";
    /// A rule names host and port, not the method.
    MethodNotAllowed = "method-not-allowed", Denied, 403, "the network policy names this host, but not this method; ask for the rule in policy_hint";
    /// A rule names all but the path.
    PathNotAllowed = "path-not-allowed", Denied, 403, "the network policy names this host, but not this path; ask for the rule in policy_hint";
    /// The path can be read in two ways.
    PathAmbiguous = "path-ambiguous", Denied, 403, "the path has dot segments, empty segments, `;`, or encoded slashes or percent signs, so it cannot be compared with the policy's paths; send it normalised";
    /// A rule with methods or paths, and a tunnel.
    TunnelHidesRequest = "tunnel-hides-request", Denied, 403, "the policy's rules for this host name methods or paths, which cannot be seen inside a tunnel; send the request to the bridge as /https/<host>/<path>, or ask for tls: terminate";
    /// The guest's programs may not ask a model.
    ModelNotAllowed = "model-not-allowed", Denied, 403, "programs of this run may not ask a model: its policy has no network preset `model`, or this is the guest of its checks";
    /// The model's name leads somewhere else.
    ModelAddress = "model-address", Denied, 403, "the model's name leads to an address that the host's settings do not allow for it";
    /// What is asked for is no question to a model.
    ModelPathNotAllowed = "model-path-not-allowed", Denied, 403, "the preset `model` opens what answers questions (completions, responses, messages, embeddings, the list of models) and nothing else of the provider";
    /// It is asked for in another way.
    ModelMethodNotAllowed = "model-method-not-allowed", Denied, 403, "a model is asked by POST, and the list of models read by GET";
    /// The name leads to an address that is not public.
    PrivateAddress = "private-address", Denied, 403, "the name resolves to an address that is not public; no policy can allow it";
    /// The host is malformed or an odd spelling of an address.
    HostInvalid = "host-invalid", Denied, 403, "the host must be a full ASCII name or a public address in its usual spelling, without user information or trailing dot";
    /// TRACE, or a method in small letters.
    MethodInvalid = "method-invalid", Denied, 403, "the method must be written in capitals and cannot be TRACE";
    /// A header or parameter that turns one method or path into another.
    RequestOverride = "request-override", Denied, 403, "the policy's rule for this host names methods or paths, so a header or parameter that overrides them is refused";
    /// The Host header inside a terminated tunnel names another host.
    HostMismatch = "host-mismatch", Denied, 403, "the Host header must name the host that CONNECT named";
    /// Not TLS inside a tunnel.
    NotTls = "not-tls", Denied, 403, "only TLS passes through a tunnel; send plain HTTP as GET http://host/ to the proxy";
    /// No server name in the ClientHello.
    SniMissing = "sni-missing", Denied, 403, "the ClientHello inside the tunnel must name its server (SNI)";
    /// Another server name.
    SniMismatch = "sni-mismatch", Denied, 403, "the ClientHello inside the tunnel must name the host that CONNECT named";
    /// Encrypted ClientHello.
    HelloEncrypted = "hello-encrypted", Denied, 403, "an encrypted ClientHello hides the server's name; turn ECH off";
    /// The request cannot be read, or can be read in two ways.
    MalformedRequest = "malformed-request", Denied, 400, "the request is malformed or could be read in two ways (bare line ends, folded or doubled headers, Content-Length beside Transfer-Encoding)";
    /// A request for the bridge itself.
    NotAProxyRequest = "not-a-proxy-request", Denied, 403, "this is a proxy; send CONNECT, GET http://host/path, GET /https/<host>/<path>, or POST /model/<path>";
    /// The head is longer than the limit.
    HeadTooLarge = "head-too-large", Denied, 431, "the request's head is larger than the bridge takes";
    /// The head did not arrive in time.
    HeadTimeout = "head-timeout", Denied, 408, "the request's head did not arrive in time";
    /// Too many connections at once.
    TooManyConnections = "too-many-connections", Denied, 429, "too many connections at once; wait for others to end";
    /// Too many requests per minute.
    RateLimited = "rate-limited", Denied, 429, "too many requests per minute; wait";
    /// The request's body is larger than the limit.
    RequestTooLarge = "request-too-large", Denied, 413, "the request's body is larger than one request may have";
    /// The run sent as much as it may.
    RunRequestLimit = "run-request-limit", Denied, 403, "the run has sent as many bytes as it may";
    /// The response is larger than the limit.
    ResponseTooLarge = "response-too-large", Denied, 502, "the response is larger than one response may be";
    /// The run received as much as it may.
    RunResponseLimit = "run-response-limit", Denied, 403, "the run has received as many bytes as it may";
    /// A secret's value cannot stand where its placeholder stood.
    SecretUnusable = "secret-unusable", Denied, 403, "the value of a secret cannot be put where its placeholder stands";
    /// The host answered in an encoding in which a secret could hide.
    ResponseEncoded = "response-encoded", Denied, 502, "the host sent a compressed response although none was asked for; because the run has secrets, the bridge searches every answer for them, which it cannot do in a compressed one";
    /// The name has no address.
    NameNotFound = "name-not-found", Failed, 502, "the host's name could not be resolved";
    /// No address could be connected to.
    ConnectFailed = "connect-failed", Failed, 502, "the host refused the connection or cannot be reached";
    /// Lookup, connection or handshake took too long.
    ConnectTimeout = "connect-timeout", Failed, 504, "the host could not be reached in time";
    /// The TLS handshake with the host failed.
    TlsFailed = "tls-failed", Failed, 502, "TLS with the host failed, or its certificate is not trusted";
    /// The host broke off or does not speak HTTP/1.1.
    UpstreamFailed = "upstream-failed", Failed, 502, "the host broke off or sent no HTTP/1.1 response";
    /// Nothing moved for too long.
    IdleTimeout = "idle-timeout", Failed, 504, "nothing was sent or received for too long";
    /// The request took too long.
    TotalTimeout = "total-timeout", Failed, 504, "the request took longer than one request may";
    /// The guest went away, or its side of TLS failed.
    ClientGone = "client-gone", Failed, 502, "the client closed the connection before the end";
    /// The bridge stopped.
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

/// What was asked for, as far as it could be read.
#[derive(Debug, Clone, Default)]
pub(super) struct Asked {
    pub mode: Option<EgressMode>,
    pub method: String,
    pub host: String,
    pub port: u16,
    pub path: String,
}

/// The body of the answer.
pub(super) fn body(reason: Reason, asked: &Asked) -> Vec<u8> {
    let code = match reason.decision() {
        EgressDecision::Denied => ErrorCode::EgressDenied,
        EgressDecision::Allowed | EgressDecision::Failed => ErrorCode::EgressFailed,
    };
    let document = json!({
        "schema": schema_id::EGRESS_DENIED,
        "code": code,
        "reason": reason.as_str(),
        "message": reason.message(),
        "request": {
            "mode": asked.mode,
            "method": asked.method,
            "host": asked.host,
            "port": asked.port,
            "path": asked.path,
        },
        "policy_hint": hint(reason, asked),
    });
    let mut bytes = document.to_string().into_bytes();
    bytes.push(b'\n');
    bytes
}

/// The smallest rule that would let this request pass, where one would.
fn hint(reason: Reason, asked: &Asked) -> Value {
    let helps = matches!(
        reason,
        Reason::HostNotAllowed
            | Reason::PortNotAllowed
            | Reason::MethodNotAllowed
            | Reason::PathNotAllowed
            | Reason::TunnelHidesRequest
    );
    if !helps || asked.host.is_empty() || asked.mode == Some(EgressMode::Model) {
        return Value::Null;
    }
    let tunnel = asked.method == "CONNECT";
    let rule = EgressRule {
        host: asked.host.clone(),
        ports: vec![asked.port],
        methods: if tunnel {
            Vec::new()
        } else {
            vec![asked.method.clone()]
        },
        // An ambiguous path cannot stand in a rule.
        paths: match RequestPath::parse(&asked.path) {
            Ok(path) if !tunnel && path.comparable().is_ok() => vec![asked.path.clone()],
            _ => Vec::new(),
        },
    };
    serde_json::to_value(rule).unwrap_or(Value::Null)
}

/// A whole HTTP/1.1 answer. The client's connection ends after it.
pub(super) fn response(reason: Reason, asked: &Asked) -> Vec<u8> {
    let body = body(reason, asked);
    let status =
        hyper::StatusCode::from_u16(reason.status()).unwrap_or(hyper::StatusCode::FORBIDDEN);
    let mut bytes = format!(
        "HTTP/1.1 {} {}\r\ncontent-type: application/json\r\ncontent-length: {}\r\ncache-control: no-store\r\nconnection: close\r\n\r\n",
        status.as_u16(),
        status.canonical_reason().unwrap_or("Refused"),
        body.len(),
    )
    .into_bytes();
    if asked.method != "HEAD" {
        bytes.extend_from_slice(&body);
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn reasons_are_distinct_and_fit_their_status() {
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
    fn the_hint_is_a_rule_that_allows_the_request() {
        let asked = Asked {
            mode: Some(EgressMode::BaseUrl),
            method: "POST".to_owned(),
            host: "api.example".to_owned(),
            port: 8443,
            path: "/v1/x".to_owned(),
        };
        let body: Value = serde_json::from_slice(&body(Reason::HostNotAllowed, &asked)).unwrap();
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
        let refused: Value =
            serde_json::from_slice(&super::body(Reason::PrivateAddress, &asked)).unwrap();
        assert!(refused["policy_hint"].is_null());
        let failed: Value =
            serde_json::from_slice(&super::body(Reason::TlsFailed, &asked)).unwrap();
        assert_eq!(failed["code"], "wp_codebox_egress_failed");
    }

    /// A body holds nothing but what its schema describes, in the schema's words.
    #[test]
    fn the_schema_knows_every_reason() {
        let file = std::path::Path::new(&std::env::var_os("CARGO_MANIFEST_DIR").unwrap())
            .join("../../../abilities/schemas/egress-denied.v1.schema.json");
        let schema: Value = serde_json::from_slice(&std::fs::read(file).unwrap()).unwrap();
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
            let asked = Asked {
                mode: Some(mode),
                ..Asked::default()
            };
            let body: Value =
                serde_json::from_slice(&body(Reason::PathNotAllowed, &asked)).unwrap();
            let request = &schema["properties"]["request"];
            known(&schema, &body);
            known(request, &body["request"]);
            let modes = request["properties"]["mode"]["enum"].as_array().unwrap();
            assert!(modes.contains(&body["request"]["mode"]), "{body}");
        }
    }
}
