//! Headers in both directions.
//!
//! What a page of the guest may do in a visitor's browser is decided here, not in the guest:
//!
//! - `sandbox allow-scripts allow-forms allow-same-origin`: no pop-ups, no dialogs, no
//!   navigation of whoever frames it. `allow-same-origin` only because a preview *is* an origin of
//!   its own, a port or the public URL; without it wp-admin cannot ask its own REST routes.
//! - everything else of the policy: the page may ask its own origin and nobody else. A guest
//!   without a network does not get the visitor's.
//! - no service worker, no cache: nothing of a guest outlives it and answers for the next one on
//!   the same port.

use super::cookies::Cookies;
use super::origin::Origin;
use crate::egress::end_to_end;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};

/// See the head of this module.
const POLICY: &str = "sandbox allow-scripts allow-forms allow-same-origin; \
    default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; \
    base-uri 'self'; form-action 'self'";

/// What every answer says, whoever made it.
const FORCED: &[(&str, &str)] = &[
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-robots-tag", "noindex, nofollow"),
];

/// What a guest may not say: it would bind the visitor's browser beyond this preview, or open
/// its answers to pages of others.
const DROPPED: &[&str] = &[
    "access-control-allow-credentials",
    "access-control-allow-headers",
    "access-control-allow-methods",
    "access-control-allow-origin",
    "access-control-expose-headers",
    "access-control-max-age",
    "alt-svc",
    "clear-site-data",
    "content-security-policy-report-only",
    "expires",
    "nel",
    "pragma",
    "public-key-pins",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "strict-transport-security",
    "x-powered-by",
];

/// What only a program in front may say, and what a visitor's browser says to it alone.
const FORGED: &[&str] = &[
    "client-ip",
    "forwarded",
    "true-client-ip",
    "x-client-ip",
    "x-codebox-origin",
    "x-http-method",
    "x-http-method-override",
    "x-method-override",
    "x-original-uri",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];

/// How the guest learns which address its visitor used.
const ORIGIN: &str = "x-codebox-origin";

/// Whether the request fetches the script of a service worker.
pub(super) fn is_service_worker(headers: &HeaderMap) -> bool {
    headers.contains_key("service-worker")
        || headers
            .get("sec-fetch-dest")
            .is_some_and(|value| value.as_bytes() == b"serviceworker")
}

/// The headers of a request as the guest gets them.
pub(super) fn for_guest(
    headers: &HeaderMap,
    origin: &Origin,
    cookies: &Cookies,
) -> Option<HeaderMap> {
    let mut kept = end_to_end(headers);
    let forged: Vec<HeaderName> = kept
        .keys()
        .filter(|name| FORGED.contains(&name.as_str()) || name.as_str().starts_with("x-forwarded-"))
        .cloned()
        .collect();
    for name in forged {
        kept.remove(name);
    }
    kept.remove(header::EXPECT);
    kept.remove(header::CONTENT_LENGTH);
    kept.remove(header::COOKIE);
    if origin.is_secure() {
        // A proxy in front may have asked for it: it is that one's, not the guest's.
        kept.remove(header::AUTHORIZATION);
    }
    if let Some(own) = cookies.for_guest(headers) {
        kept.insert(header::COOKIE, own);
    }
    kept.insert(
        header::HOST,
        HeaderValue::from_str(origin.authority()).ok()?,
    );
    kept.insert(ORIGIN, HeaderValue::from_str(&origin.to_string()).ok()?);
    Some(kept)
}

/// The headers of the guest's answer as the visitor gets them.
pub(super) fn for_visitor(headers: &HeaderMap, cookies: &Cookies) -> HeaderMap {
    let mut kept = HeaderMap::with_capacity(headers.len() + FORCED.len());
    for (name, value) in &end_to_end(headers) {
        if DROPPED.contains(&name.as_str()) {
            continue;
        }
        if name == header::SET_COOKIE {
            if let Some(cookie) = cookies.for_visitor(value) {
                kept.append(header::SET_COOKIE, cookie);
            }
            continue;
        }
        kept.append(name.clone(), value.clone());
    }
    force(&mut kept);
    kept
}

/// Puts in what every answer says. A policy of the guest stays beside ours: browsers hold both.
pub(super) fn force(headers: &mut HeaderMap) {
    for (name, value) in FORCED {
        headers.insert(
            HeaderName::from_static(name),
            HeaderValue::from_static(value),
        );
    }
    headers.append(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static(POLICY),
    );
}

#[cfg(test)]
mod unit {
    use super::*;

    #[test]
    fn a_guest_cannot_take_the_rules_away() {
        let mut said = HeaderMap::new();
        for (name, value) in [
            (
                "content-security-policy",
                "default-src *; sandbox allow-top-navigation",
            ),
            ("x-robots-tag", "all"),
            ("referrer-policy", "unsafe-url"),
            ("cross-origin-opener-policy", "unsafe-none"),
            ("cache-control", "public, immutable, max-age=31536000"),
            (
                "strict-transport-security",
                "max-age=31536000; includeSubDomains",
            ),
            ("service-worker-allowed", "/"),
            ("access-control-allow-origin", "*"),
            ("connection", "content-security-policy, x-robots-tag"),
            ("content-type", "text/html"),
        ] {
            said.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let heard = for_visitor(&said, &Cookies::new(1));
        for (name, value) in FORCED {
            let all: Vec<_> = heard.get_all(*name).iter().collect();
            assert_eq!(all, [value], "{name}");
        }
        let policies: Vec<_> = heard.get_all("content-security-policy").iter().collect();
        assert!(
            policies.iter().any(|policy| *policy == POLICY),
            "{policies:?}"
        );
        for name in DROPPED {
            assert!(!heard.contains_key(*name), "{name}");
        }
        assert_eq!(heard["content-type"], "text/html");
    }

    #[test]
    fn a_visitor_cannot_say_where_it_came_from() {
        let mut said = HeaderMap::new();
        for (name, value) in [
            ("x-codebox-origin", "https://evil.example"),
            ("x-forwarded-host", "evil.example"),
            ("forwarded", "host=evil.example"),
            ("host", "127.0.0.1:4321"),
            ("authorization", "Basic x"),
            ("accept", "*/*"),
            ("upgrade", "websocket"),
        ] {
            said.append(
                HeaderName::from_static(name),
                HeaderValue::from_static(value),
            );
        }
        let origin = Origin::local("127.0.0.1:4321".parse().unwrap());
        let heard = for_guest(&said, &origin, &Cookies::new(1)).unwrap();
        assert_eq!(heard["x-codebox-origin"], "http://127.0.0.1:4321");
        assert_eq!(
            (heard.len(), &heard["accept"]),
            (4, &HeaderValue::from_static("*/*"))
        );
        let public = Origin::public("https://preview.example.org").unwrap();
        let heard = for_guest(&said, &public, &Cookies::new(1)).unwrap();
        assert_eq!(
            (heard.len(), &heard["host"]),
            (3, &HeaderValue::from_static("preview.example.org"))
        );
    }
}
