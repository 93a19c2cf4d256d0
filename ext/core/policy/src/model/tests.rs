use super::*;
use crate::network::Forbidden;
use wp_codebox_contracts::{ErrorCode, ModelApi};

fn model(base_url: &str) -> ModelEndpoint {
    ModelEndpoint {
        provider: "example".to_owned(),
        model: "example-large".to_owned(),
        api: ModelApi::OpenaiChat,
        base_url: base_url.to_owned(),
        secret: None,
        private: true,
        context_tokens: None,
        max_output_tokens: None,
        prices: None,
    }
}

fn base(text: &str) -> ModelBase {
    check_model(&model(text)).unwrap_or_else(|e| panic!("{text}: {e}"))
}

fn refused(model: &ModelEndpoint) -> String {
    let body = check_model(model).unwrap_err().body();
    assert_eq!(body.code, ErrorCode::ModelInvalid);
    body.message
}

#[test]
fn model_base_urls_parse_to_one_canonical_form() {
    for (given, kept) in [
        ("https://api.example.org/v1", "https://api.example.org/v1/x"),
        ("https://API.example.org:443", "https://api.example.org/x"),
        (
            "https://api.example.org:8443/a/b",
            "https://api.example.org:8443/a/b/x",
        ),
        ("http://127.0.0.1:11434/v1", "http://127.0.0.1:11434/v1/x"),
        ("http://[::1]:8080", "http://[::1]:8080/x"),
        ("http://LOCALHOST", "http://localhost/x"),
        ("http://ollama:11434/v1", "http://ollama:11434/v1/x"),
        ("http://gpu.local", "http://gpu.local/x"),
        (
            "http://host.docker.internal:1234",
            "http://host.docker.internal:1234/x",
        ),
        ("http://192.168.1.7", "http://192.168.1.7/x"),
        ("http://[fd12::1]", "http://[fd12::1]/x"),
        ("https://10.0.0.1", "https://10.0.0.1/x"),
        ("https://203.0.113.7", "https://203.0.113.7/x"),
    ] {
        assert_eq!(base(given).url("/x"), kept);
    }
}

#[test]
fn malformed_and_forbidden_model_base_urls_are_refused() {
    let long = format!("https://example.org/{}", "a".repeat(2_100));
    for given in [
        "",
        "api.example.org",
        "HTTPS://api.example.org",
        "ftp://api.example.org",
        "https://",
        "https:///v1",
        "https://user:key@api.example.org",
        "https://api.example.org/v1/",
        "https://api.example.org/",
        "https://api.example.org//v1",
        "https://api.example.org/../v1",
        "https://api.example.org/./v1",
        "https://api.example.org/v1?key=1",
        "https://api.example.org?key=1",
        "https://api.example.org/v1#a",
        "https://api.example.org/%2e%2e/v1",
        "https://api.example.org/v 1",
        "https://api.example.org\\v1",
        "https://api.example.org/v1\n",
        "https://api.example.org:0",
        "https://api.example.org:",
        "https://api.example.org:99999",
        "https://api.example.org.",
        "https://127.1",
        "https://0x7f000001",
        "http://api.example.org/v1",
        "http://203.0.113.7",
        "http://localhost.example.org",
        "http://evil.internal.example.org",
        "http://169.254.169.254",
        "https://169.254.169.254/latest",
        "https://[fe80::1]",
        "http://[fd00:ec2::254]",
        "https://[fd00:ec2::254]",
        "https://168.63.129.16",
        "https://0.0.0.0",
        "http://0.0.0.0:8080",
        "https://[::]",
        "http://[::]:8080",
        "https://[::ffff:10.0.0.1]",
        "https://224.0.0.1",
        "https://[::ffff:127.0.0.1]",
        long.as_str(),
    ] {
        refused(&model(given));
    }
}

#[test]
fn model_key_needs_tls_or_a_loopback_address() {
    let keyed = |base_url: &str| ModelEndpoint {
        secret: Some("MODEL_KEY".to_owned()),
        ..model(base_url)
    };
    for given in [
        "https://api.example.org",
        "https://ollama",
        "http://127.0.0.1:8080",
        "http://localhost:8080",
        "http://[::1]:8080",
    ] {
        check_model(&keyed(given)).unwrap();
    }
    for given in [
        "http://192.168.1.7",
        "http://ollama:11434",
        "http://gpu.local",
    ] {
        check_model(&model(given)).unwrap();
        let message = refused(&keyed(given));
        assert!(message.contains("in the clear"), "{message}");
    }
}

#[test]
fn resolved_address_that_the_model_base_url_does_not_permit_is_refused() {
    let judge = |text: &str, address: &str| base(text).check_address(address.parse().unwrap());
    assert_eq!(judge("http://localhost", "127.0.0.1"), Ok(()));
    assert_eq!(judge("http://localhost", "::1"), Ok(()));
    assert_eq!(
        judge("http://localhost", "192.168.0.1"),
        Err(AddressRefusal::NotHere)
    );
    assert_eq!(
        judge("http://localhost", "8.8.8.8"),
        Err(AddressRefusal::NotHere)
    );
    assert_eq!(judge("http://ollama", "172.17.0.2"), Ok(()));
    assert_eq!(judge("http://ollama", "127.0.0.1"), Ok(()));
    assert_eq!(judge("http://ollama", "fd12::2"), Ok(()));
    assert_eq!(
        judge("http://ollama", "8.8.8.8"),
        Err(AddressRefusal::Public)
    );
    assert_eq!(judge("https://api.example.org", "8.8.8.8"), Ok(()));
    assert_eq!(judge("https://api.example.org", "10.1.2.3"), Ok(()));
    assert_eq!(judge("https://api.example.org", "100.64.0.9"), Ok(()));
    for name in [
        "http://metadata.google.internal",
        "https://metadata.google.internal",
    ] {
        let found = judge(name, "169.254.169.254");
        assert_eq!(found, Err(AddressRefusal::Forbidden(Forbidden::LinkLocal)));
        let found = judge(name, "fd00:ec2::254");
        assert_eq!(found, Err(AddressRefusal::Forbidden(Forbidden::Metadata)));
        let found = judge(name, "::ffff:10.0.0.1");
        assert_eq!(found, Err(AddressRefusal::Forbidden(Forbidden::Embedded)));
    }
}

#[test]
fn private_model_addresses_need_the_operators_permission() {
    let public = |text: &str| ModelEndpoint {
        private: false,
        ..model(text)
    };
    for given in [
        "http://127.0.0.1:11434/v1",
        "http://localhost",
        "http://ollama:11434/v1",
        "http://192.168.1.7",
        "https://127.0.0.1",
        "https://10.0.0.1",
        "https://[::1]",
        "https://[fd12::1]",
        "https://100.64.0.9",
    ] {
        base(given);
        let message = refused(&public(given));
        assert!(message.contains("wp_codebox.private_models"), "{message}");
    }
    let public = check_model(&public("https://api.example.org")).unwrap();
    let named = base("https://api.example.org");
    for address in ["127.0.0.1", "::1", "10.1.2.3", "fd12::2", "100.64.0.9"] {
        let address = address.parse().unwrap();
        assert_eq!(
            public.check_address(address),
            Err(AddressRefusal::Private),
            "{address}"
        );
        assert_eq!(named.check_address(address), Ok(()), "{address}");
    }
    assert_eq!(public.check_address("8.8.8.8".parse().unwrap()), Ok(()));
    let found = public.check_address("169.254.169.254".parse().unwrap());
    assert_eq!(found, Err(AddressRefusal::Forbidden(Forbidden::LinkLocal)));
}

#[test]
fn every_issue_of_model_settings_is_reported_without_quoting_keys() {
    let bad = ModelEndpoint {
        provider: " ".to_owned(),
        model: "two\nlines".to_owned(),
        secret: Some("sk-very-secret-key".to_owned()),
        context_tokens: Some(100),
        max_output_tokens: Some(5_000_000),
        prices: Some(ModelPrices {
            input: u64::MAX,
            cached_input: Some(u64::MAX),
            output: u64::MAX,
        }),
        ..model("ftp://x")
    };
    let error = check_model(&bad).unwrap_err();
    let ModelError::Model { issues } = &error else {
        panic!("{error}")
    };
    let fields: Vec<&str> = issues.iter().map(|i| i.field.as_str()).collect();
    assert_eq!(
        fields,
        [
            "provider",
            "model",
            "secret",
            "context_tokens",
            "max_output_tokens",
            "max_output_tokens",
            "prices.input",
            "prices.output",
            "prices.cached_input",
            "base_url",
        ]
    );
    assert!(!error.to_string().contains("sk-very"), "{error}");
    check_model(&ModelEndpoint {
        secret: Some("MODEL_KEY".to_owned()),
        context_tokens: Some(200_000),
        max_output_tokens: Some(8_192),
        ..model("https://api.example.org")
    })
    .unwrap();
}

#[test]
fn agent_budget_outside_bounds_and_cost_limit_without_prices_are_refused() {
    check_budget(&AgentBudget::default()).unwrap();
    let default = AgentBudget::default();
    for bad in [
        AgentBudget {
            turns: 0,
            ..default
        },
        AgentBudget {
            turns: 1_001,
            ..default
        },
        AgentBudget {
            input_tokens: 0,
            ..default
        },
        AgentBudget {
            output_tokens: u64::MAX,
            ..default
        },
        AgentBudget {
            cost_microusd: Some(0),
            ..default
        },
        AgentBudget {
            cost_microusd: Some(u64::MAX),
            ..default
        },
    ] {
        let body = check_budget(&bad).unwrap_err().body();
        assert_eq!(body.code, ErrorCode::BudgetInvalid, "{bad:?}");
    }
    let priced = ModelEndpoint {
        prices: Some(ModelPrices {
            input: 1,
            cached_input: None,
            output: 2,
        }),
        ..model("https://api.example.org")
    };
    let mut agent = ModelAgent::default();
    let code = |agent: &ModelAgent, model: Option<&ModelEndpoint>| {
        check_model_agent(agent, model).map_err(|e| e.body().code)
    };
    let plain = model("https://api.example.org");
    assert_eq!(code(&agent, None), Err(ErrorCode::ModelMissing));
    code(&agent, Some(&plain)).unwrap();
    agent.budget.cost_microusd = Some(1_000_000);
    assert_eq!(code(&agent, Some(&plain)), Err(ErrorCode::BudgetInvalid));
    code(&agent, Some(&priced)).unwrap();
    agent.instructions = Some("x".repeat(65 * 1024));
    assert_eq!(code(&agent, Some(&priced)), Err(ErrorCode::InputInvalid));
}
