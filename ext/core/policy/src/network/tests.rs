//! Table of requests with the rule that allows each, or the reason why no rule does.

use super::*;
use serde_json::json;

fn rules(document: serde_json::Value) -> EgressRules {
    EgressRules::compile(&serde_json::from_value(document).unwrap()).unwrap()
}

fn ask(
    rules: &EgressRules,
    method: &str,
    host: &str,
    port: u16,
    path: &str,
) -> Result<String, Refusal> {
    rules
        .request(EgressRequest {
            host: &Host::parse(host).unwrap(),
            port,
            method,
            path: &RequestPath::parse(path).unwrap(),
        })
        .map(|allowed| allowed.rule.to_owned())
}

#[test]
fn egress_request_is_allowed_only_if_host_port_method_and_path_match_a_network_rule() {
    let rules = rules(json!({
        "allowHosts": ["Plain.example", "odd.example:8443"],
        "presets": ["npm"],
        "rules": [
            {"host": "api.example", "ports": [443], "methods": ["GET"], "paths": ["/v1/items/", "/v1/me"]},
            {"host": "api.example", "ports": [443], "methods": ["POST"], "paths": ["/v1/upload"]},
        ],
    }));
    let ok = |label: &str| Ok(label.to_owned());
    for (method, host, port, path, expected) in [
        ("GET", "plain.example", 80, "/", ok("allowHosts[0]")),
        (
            "DELETE",
            "plain.example",
            443,
            "/a//../b",
            ok("allowHosts[0]"),
        ),
        ("GET", "plain.example", 8080, "/", Err(Refusal::Port)),
        ("GET", "sub.plain.example", 443, "/", Err(Refusal::Host)),
        (
            "GET",
            "plain.example.evil.test",
            443,
            "/",
            Err(Refusal::Host),
        ),
        ("GET", "odd.example", 8443, "/", ok("allowHosts[1]")),
        ("GET", "odd.example", 443, "/", Err(Refusal::Port)),
        (
            "GET",
            "registry.npmjs.org",
            443,
            "/@scope%2fname",
            ok("npm[0]"),
        ),
        (
            "PUT",
            "registry.npmjs.org",
            443,
            "/name",
            Err(Refusal::Method),
        ),
        ("GET", "registry.npmjs.org", 80, "/name", Err(Refusal::Port)),
        ("GET", "api.example", 443, "/v1/items/7", ok("rules[0]")),
        ("GET", "api.example", 443, "/v1/%69tems/7", ok("rules[0]")),
        ("GET", "api.example", 443, "/v1/me", ok("rules[0]")),
        ("GET", "api.example", 443, "/v1/me2", Err(Refusal::Path)),
        (
            "GET",
            "api.example",
            443,
            "/v1/items/../admin",
            Err(Refusal::PathAmbiguous(Ambiguity::DotSegment)),
        ),
        (
            "GET",
            "api.example",
            443,
            "/v1/items/%2e%2e/admin",
            Err(Refusal::PathAmbiguous(Ambiguity::DotSegment)),
        ),
        (
            "GET",
            "api.example",
            443,
            "/v1/items/..%2fadmin",
            Err(Refusal::PathAmbiguous(Ambiguity::EncodedSlash)),
        ),
        (
            "GET",
            "api.example",
            443,
            "//v1/items/",
            Err(Refusal::PathAmbiguous(Ambiguity::EmptySegment)),
        ),
        ("POST", "api.example", 443, "/v1/upload", ok("rules[1]")),
        (
            "POST",
            "api.example",
            443,
            "/v1/items/7",
            Err(Refusal::Path),
        ),
        ("get", "api.example", 443, "/v1/me", Err(Refusal::Method)),
        ("DELETE", "api.example", 443, "/v1/me", Err(Refusal::Method)),
    ] {
        assert_eq!(
            ask(&rules, method, host, port, path),
            expected,
            "{method} {host}:{port}{path}"
        );
    }
}

#[test]
fn network_rule_with_methods_or_paths_names_its_host_but_allows_no_tunnel_to_it() {
    let rules = rules(json!({
        "allowHosts": ["plain.example:443"],
        "rules": [{"host": "api.example", "methods": ["GET"]}, {"host": "sub.example", "paths": ["/x"]}],
    }));
    let tunnel = |host: &str, port| {
        rules
            .tunnel(&Host::parse(host).unwrap(), port)
            .map(|a| a.rule)
    };
    assert_eq!(tunnel("plain.example", 443), Ok("allowHosts[0]"));
    assert_eq!(tunnel("plain.example", 80), Err(Refusal::Port));
    assert_eq!(tunnel("api.example", 443), Err(Refusal::TunnelHidesRequest));
    assert_eq!(tunnel("sub.example", 443), Err(Refusal::TunnelHidesRequest));
    assert_eq!(tunnel("sub.example", 22), Err(Refusal::Port));
    assert_eq!(tunnel("other.example", 443), Err(Refusal::Host));
    let names = |text: &str| rules.names(&Authority::parse(text).unwrap());
    assert_eq!(names("api.example:443"), Ok(()));
    assert_eq!(names("api.example"), Ok(()));
    assert_eq!(names("api.example:22"), Err(Refusal::Port));
    assert_eq!(names("other.example"), Err(Refusal::Host));
}

#[test]
fn rule_with_fewest_restrictions_is_returned_if_several_rules_allow_a_request() {
    let rules = rules(json!({
        "rules": [{"host": "a.example", "methods": ["GET"]}, {"host": "a.example"}],
    }));
    let host = Host::parse("a.example").unwrap();
    let path = RequestPath::parse("/").unwrap();
    let request = EgressRequest {
        host: &host,
        port: 443,
        method: "GET",
        path: &path,
    };
    assert_eq!(
        rules.request(request),
        Ok(Allowed {
            rule: "rules[1]",
            methods: RuleScope::Any,
            paths: RuleScope::Any
        })
    );
}

#[test]
fn every_issue_of_network_rules_is_reported() {
    let document = json!({
        "allowHosts": ["*.example.org", "127.0.0.1", "example.org/path", " "],
        "presets": ["pypi"],
        "rules": [{"host": "a.example", "ports": [0], "methods": ["get", "CONNECT"], "paths": ["x", "/a/../b", "/a?b"]}],
    });
    let issues = EgressRules::compile(&serde_json::from_value(document).unwrap()).unwrap_err();
    let fields: Vec<&str> = issues.iter().map(|i| i.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "network.allowHosts[0]",
            "network.allowHosts[1]",
            "network.allowHosts[2]",
            "network.allowHosts[3]",
            "network.presets[0]",
            "network.rules[0].ports",
            "network.rules[0].methods",
            "network.rules[0].methods",
            "network.rules[0].paths",
            "network.rules[0].paths",
            "network.rules[0].paths",
        ]
    );
    assert!(EgressRules::compile(&NetworkRules::default()).is_err());
}

#[test]
fn network_presets_compile_and_allow_only_get_and_head() {
    for (name, table) in PRESETS {
        let compiled = preset(name).unwrap();
        assert_eq!(compiled.len(), table.len());
        for rule in compiled {
            assert_eq!(
                (rule.methods.as_slice(), rule.ports.as_slice()),
                (&["GET".to_owned(), "HEAD".to_owned()][..], &[443][..])
            );
        }
    }
}

#[test]
fn secret_scope_covers_plain_http_only_if_it_has_the_http_scheme() {
    let host = Host::parse("api.example").unwrap();
    let scope = SecretScope::parse("api.example").unwrap();
    assert!(scope.covers(Transport::Tls, &host, 443));
    assert!(!scope.covers(Transport::Plain, &host, 443));
    assert!(!scope.covers(Transport::Plain, &host, 80));
    assert!(!scope.covers(Transport::Tls, &host, 8443));
    let scope = SecretScope::parse("http://api.example:8080").unwrap();
    assert!(scope.covers(Transport::Plain, &host, 8080));
    assert!(!scope.covers(Transport::Tls, &host, 8080));
    assert!(scope.binds(&host));
    assert!(SecretScope::parse("api.example/path").is_err());
}
