//! Filters the headers of requests and responses of a preview.
//!
//! The forwarder, not the guest, decides what a page of the guest may do in a visitor's browser:
//!
//! - `sandbox allow-scripts allow-forms allow-same-origin`: no pop-ups, no dialogs, and no
//!   navigation of a framing page. `allow-same-origin` is safe because a preview is an origin of
//!   its own (a port or the public URL); without it wp-admin cannot call its own REST routes.
//! - The other policy directives let the page contact only its own origin, so a guest without
//!   network cannot use the visitor's network.
//! - No access to the visitor's devices and no DNS prefetch.
//! - No service worker and no cache, so that nothing of a guest stays in the browser and responds
//!   for the next guest on the same port.
//!
//! Response headers that instruct a reverse proxy in front (serve a local file, forward to another
//! address, change load balancing) are dropped, and so are request headers in which such a proxy
//! describes the visitor.

use super::cookies::Cookies;
use super::origin::Origin;
use crate::egress::end_to_end;
use hyper::header::{self, HeaderMap, HeaderName, HeaderValue};
use hyper::{Request, Uri};

/// Content-Security-Policy of every response; the module documentation explains it.
const POLICY: &str = "sandbox allow-scripts allow-forms allow-same-origin; \
    default-src 'self' 'unsafe-inline' 'unsafe-eval' data: blob:; object-src 'none'; \
    base-uri 'self'; form-action 'self'";

/// Permissions-Policy of every response: a page cannot ask the visitor for these features.
const DEVICES: &str = "camera=(), microphone=(), geolocation=(), display-capture=(), usb=(), \
    serial=(), hid=(), bluetooth=(), midi=(), payment=(), publickey-credentials-create=(), \
    publickey-credentials-get=(), identity-credentials-get=(), clipboard-read=(), local-fonts=(), \
    idle-detection=(), window-management=(), screen-wake-lock=(), xr-spatial-tracking=()";

/// Headers set on every response, from the guest or from the forwarder.
const FORCED: &[(&str, &str)] = &[
    ("cache-control", "no-store"),
    ("cross-origin-opener-policy", "same-origin"),
    ("cross-origin-resource-policy", "same-origin"),
    ("permissions-policy", DEVICES),
    ("referrer-policy", "no-referrer"),
    ("x-content-type-options", "nosniff"),
    ("x-dns-prefetch-control", "off"),
    ("x-robots-tag", "noindex, nofollow"),
];

/// Response headers of the guest that are dropped: they would affect the visitor's browser beyond
/// this preview, or make responses readable for pages of other origins.
const DROPPED: &[&str] = &[
    "accept-ch",
    "alt-svc",
    "clear-site-data",
    "content-security-policy-report-only",
    "critical-ch",
    "expect-ct",
    "expires",
    "nel",
    "observe-browsing-topics",
    "origin-trial",
    "pragma",
    "public-key-pins",
    "report-to",
    "reporting-endpoints",
    "service-worker-allowed",
    "set-login",
    "speculation-rules",
    "strict-transport-security",
    "supports-loading-mode",
    "use-as-dictionary",
    "x-powered-by",
    "x-varnish",
];

/// Name prefixes of response headers of the guest that are dropped: they would affect the visitor's
/// browser beyond this preview, make responses readable for pages of other origins, or instruct a
/// reverse proxy in front of the preview.
const DROPPED_FAMILIES: &[&str] = &[
    "access-control-",
    "attribution-reporting-",
    "cdn-",
    "cloudflare-",
    "edge-",
    "fastly-",
    "netlify-",
    "sec-",
    "secure-session-",
    "surrogate-",
    "vercel-",
    "x-accel-",
    "x-cdn-",
    "x-codebox-",
    "x-envoy-",
    "x-forwarded-",
    "x-lighttpd-",
    "x-litespeed-",
    "x-lsadc-",
    "x-reproxy-",
    "x-sendfile",
];

/// Headers that are dropped from a visitor's request: only a reverse proxy in front of the preview,
/// or the forwarder itself, may set them.
const FORGED: &[&str] = &[
    "client-ip",
    "forwarded",
    "true-client-ip",
    "x-client-ip",
    "x-codebox-login",
    "x-codebox-origin",
    "x-original-uri",
    "x-original-url",
    "x-real-ip",
    "x-rewrite-url",
];

/// Name prefixes of request headers that are dropped: a visitor must not set them, because only a
/// reverse proxy in front of the preview may. The guest must not see those that such a proxy sets:
/// they can contain the visitor's identity and credentials that are valid elsewhere too.
const FORGED_FAMILIES: &[&str] = &[
    "cdn-",
    "cf-",
    "fastly-",
    "fly-",
    "remote-",
    "ssl-",
    "tailscale-",
    "teleport-",
    "x-amz",
    "x-appengine-",
    "x-auth-",
    "x-authenticated-",
    "x-authentik-",
    "x-azure-",
    "x-client-cert",
    "x-endpoint-api-",
    "x-envoy-",
    "x-forwarded-",
    "x-goog-",
    "x-jwt-",
    "x-ms-",
    "x-pomerium-",
    "x-remote-",
    "x-ssl-",
    "x-vercel-",
    "x-vouch-",
    "x-webauth-",
];

fn is_one_of(name: &HeaderName, names: &[&str], families: &[&str]) -> bool {
    let name = name.as_str();
    names.contains(&name) || families.iter().any(|family| name.starts_with(family))
}

/// Returns whether the name has only letters, digits and hyphens. PHP's `$_SERVER` maps hyphens,
/// dots and underscores to the same character, so `X_Forwarded_For` would pass for
/// `X-Forwarded-For`. nginx drops names with other characters as well.
fn is_plain(name: &HeaderName) -> bool {
    let plain = |b: u8| b.is_ascii_alphanumeric() || b == b'-';
    name.as_str().bytes().all(plain)
}

/// Request header in which the forwarder tells the guest the origin that its visitor used.
const ORIGIN: &str = "x-codebox-origin";

/// Request header in which the forwarder tells the guest which user to sign in.
const LOGIN: &str = "x-codebox-login";
/// Request path at which the guest's router signs a user in.
const LOGIN_PATH: &str = "/.codebox/login";

/// Turns a visitor's request into a request that signs in this user.
pub(super) fn sign_in<B>(request: &mut Request<B>, user: &str) -> Option<()> {
    *request.uri_mut() = Uri::from_static(LOGIN_PATH);
    let user = HeaderValue::from_bytes(user.as_bytes()).ok()?;
    request.headers_mut().insert(LOGIN, user);
    Some(())
}

/// Returns whether the request fetches a service worker script.
pub(super) fn is_service_worker(headers: &HeaderMap) -> bool {
    headers.contains_key("service-worker")
        || headers
            .get("sec-fetch-dest")
            .is_some_and(|value| value.as_bytes() == b"serviceworker")
}

/// Returns the headers of a visitor's request that are sent to the guest.
pub(super) fn for_guest(
    headers: &HeaderMap,
    origin: &Origin,
    cookies: &Cookies,
) -> Option<HeaderMap> {
    let mut forwarded = end_to_end(headers);
    let forged: Vec<HeaderName> = forwarded
        .keys()
        .filter(|name| !is_plain(name) || is_one_of(name, FORGED, FORGED_FAMILIES))
        .cloned()
        .collect();
    for name in forged {
        forwarded.remove(name);
    }
    forwarded.remove(header::EXPECT);
    forwarded.remove(header::CONTENT_LENGTH);
    forwarded.remove(header::COOKIE);
    // A reverse proxy in front may have asked the visitor for these credentials, and a browser sends
    // those of one port of a host to the others; the guest must not get them.
    forwarded.remove(header::AUTHORIZATION);
    if let Some(own) = cookies.for_guest(headers) {
        forwarded.insert(header::COOKIE, own);
    }
    forwarded.insert(
        header::HOST,
        HeaderValue::from_str(origin.authority()).ok()?,
    );
    forwarded.insert(ORIGIN, HeaderValue::from_str(&origin.to_string()).ok()?);
    Some(forwarded)
}

/// Returns the headers of a guest's response that are sent to the visitor.
pub(super) fn for_visitor(headers: &HeaderMap, cookies: &Cookies) -> HeaderMap {
    let mut forwarded = HeaderMap::with_capacity(headers.len() + FORCED.len());
    for (name, value) in &end_to_end(headers) {
        if is_one_of(name, DROPPED, DROPPED_FAMILIES) {
            continue;
        }
        if name == header::SET_COOKIE {
            if let Some(cookie) = cookies.for_visitor(value) {
                forwarded.append(header::SET_COOKIE, cookie);
            }
            continue;
        }
        forwarded.append(name.clone(), value.clone());
    }
    force(&mut forwarded);
    forwarded
}

/// Sets the headers that every response must have. A Content-Security-Policy of the guest stays
/// beside the forwarder's: browsers enforce both.
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
    fn guest_response_headers_cannot_weaken_the_security_headers_of_the_preview() {
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
    fn guest_response_headers_that_control_proxies_or_browser_features_are_dropped_or_replaced() {
        let mut said = HeaderMap::new();
        for name in [
            "x-accel-redirect",
            "x-accel-buffering",
            "x-sendfile",
            "x-lighttpd-send-file",
            "x-litespeed-location",
            "x-reproxy-url",
            "surrogate-control",
            "cdn-cache-control",
            "x-envoy-immediate-health-check-fail",
            "accept-ch",
            "speculation-rules",
            "use-as-dictionary",
            "permissions-policy",
            "x-dns-prefetch-control",
        ] {
            said.append(
                HeaderName::from_static(name),
                HeaderValue::from_static("of-the-guest"),
            );
        }
        said.insert("x-wp-total", HeaderValue::from_static("3"));
        let heard = for_visitor(&said, &Cookies::new(1));
        let foreign: Vec<_> = heard.iter().filter(|(_, v)| *v == "of-the-guest").collect();
        assert!(foreign.is_empty(), "{foreign:?}");
        assert_eq!(heard["x-wp-total"], "3");
        assert_eq!(heard["x-dns-prefetch-control"], "off");
        let denied = heard["permissions-policy"].to_str().unwrap();
        assert!(denied.contains("camera=()") && denied.contains("geolocation=()"));
    }

    #[test]
    fn visitor_identity_headers_of_reverse_proxies_are_dropped() {
        let mut said = HeaderMap::new();
        for name in [
            "cf-access-jwt-assertion",
            "x-amzn-oidc-accesstoken",
            "x-goog-iap-jwt-assertion",
            "x-ms-token-aad-access-token",
            "x-auth-request-access-token",
            "x-forwarded-access-token",
            "x-remote-user",
            "remote-user",
            "x-pomerium-jwt-assertion",
            "proxy-authorization",
        ] {
            said.append(
                HeaderName::from_static(name),
                HeaderValue::from_static("known"),
            );
        }
        said.insert("x-wp-nonce", HeaderValue::from_static("1"));
        let origin = Origin::public("https://preview.example.org").unwrap();
        let heard = for_guest(&said, &origin, &Cookies::new(1)).unwrap();
        let known: Vec<_> = heard.iter().filter(|(_, v)| *v == "known").collect();
        assert!(known.is_empty(), "{known:?}");
        assert_eq!(heard["x-wp-nonce"], "1");
    }

    #[test]
    fn method_override_header_of_a_visitor_reaches_the_guest() {
        // WordPress's apiFetch sends PUT, PATCH and DELETE as POST with `X-HTTP-Method-Override`.
        let names = [
            "x-http-method-override",
            "x-http-method",
            "x-method-override",
        ];
        let mut said = HeaderMap::new();
        for name in names {
            said.append(
                HeaderName::from_static(name),
                HeaderValue::from_static("DELETE"),
            );
        }
        said.append("x-original-url", HeaderValue::from_static("/wp-admin/"));
        for origin in [
            Origin::local("127.0.0.1:4321".parse().unwrap()),
            Origin::public("https://preview.example.org").unwrap(),
        ] {
            let heard = for_guest(&said, &origin, &Cookies::new(1)).unwrap();
            assert!(names.iter().all(|name| heard[*name] == "DELETE"));
            assert!(!heard.contains_key("x-original-url"));
        }
    }

    #[test]
    fn forwarding_and_codebox_headers_of_a_preview_visitor_do_not_reach_the_guest() {
        let mut said = HeaderMap::new();
        for (name, value) in [
            ("x-codebox-login", "admin"),
            ("x_codebox_login", "admin"),
            ("x.codebox.login", "admin"),
            ("x_forwarded_host", "evil.example"),
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
            (3, &HeaderValue::from_static("*/*"))
        );
        let public = Origin::public("https://preview.example.org").unwrap();
        let heard = for_guest(&said, &public, &Cookies::new(1)).unwrap();
        assert_eq!(
            (heard.len(), &heard["host"]),
            (3, &HeaderValue::from_static("preview.example.org"))
        );
    }
}
