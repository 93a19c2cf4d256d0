//! Credits: reserved before anything starts, settled at the end, released when nothing started.

use crate::fake::Next;
use crate::server::Server;
use serde_json::json;
use wp_codebox_ledger::{
    AccountId, Amount, Grant, GrantReference, Ledger, LedgerFiles, Note, Prices, UnixMillis,
};
use wp_codebox_service::{Scopes, TokenSpec, TokenStore};

const PRICES: &str = r#"{"schema": "wp-codebox/meter-prices/v1", "unit": "EUR/1000000",
    "extensions": {"fake": {"per_second": 1, "per_creation": 100, "gpu_per_second": 0, "key": "platform"}}}"#;

#[test]
fn sandbox_needs_credits_and_is_charged_for_its_use_but_not_for_a_failed_start() {
    let temporary = tempfile::tempdir().unwrap();
    let files = LedgerFiles::in_state(temporary.path());
    let ledger = Ledger::open(&files).unwrap();
    let server = Server::with(|config| {
        config.prices = Some(Prices::parse(PRICES.as_bytes()).unwrap());
        config.ledger = Some(Ledger::open(&files).unwrap());
    });
    let tokens = TokenStore::open(&server.directory).unwrap();
    let token = tokens.create(TokenSpec {
        scopes: Scopes::everything(),
        actor: "agt:shop".parse().unwrap(),
        account: Some("shop".to_owned()),
        rate_per_minute: 1000,
        concurrency: 10,
        ttl_ms: None,
    });
    let client = server.admin().with(&token.unwrap().token);
    let account = AccountId::new("shop").unwrap();
    let balance = || {
        let balance = ledger.balance(&account).unwrap();
        (
            balance.available.get(),
            balance.reserved.get(),
            balance.settled.get(),
        )
    };
    let body = json!({"profile": "profile.shop", "ttl": "10s"});
    client
        .post("/v1/sandboxes", &body)
        .problem(402, "wp_codebox_credits_short");
    assert!(
        server.fake.sandboxes().is_empty(),
        "something started without credits"
    );
    let grant = Grant {
        account: account.clone(),
        amount: Amount::new(1000).unwrap(),
        reference: GrantReference::new("invoice-7").unwrap(),
        actor: Note::new("test").unwrap(),
        reason: Note::new("test").unwrap(),
    };
    let _ = ledger.grant(&grant, UnixMillis(1)).unwrap();
    let wait = [("prefer", "wait=60")];
    let made = client
        .post_with("/v1/sandboxes", &wait, &body)
        .expect(201)
        .json();
    assert_eq!(made["quote"]["amount"], 110);
    assert_eq!(balance(), (890, 110, 0));
    let quoted = client.post("/v1/quotes", &body).expect(200).json();
    assert_eq!(quoted["quote"]["amount"], 110);
    let at = format!("/v1/sandboxes/{}", made["id"].as_str().unwrap());
    client.delete(&at).expect(200);
    // The fake reports 1.5 seconds; each begun second is charged.
    assert_eq!(balance(), (898, 0, 102));
    client.delete(&at).expect(200);
    assert_eq!(balance(), (898, 0, 102));
    server.fake.next(Next::Refuse);
    let failed = client
        .post_with("/v1/sandboxes", &wait, &body)
        .expect(202)
        .json();
    assert_eq!(failed["state"], "failed");
    crate::server::until("the release", || (balance() == (898, 0, 102)).then_some(()));
    let meters = client.get("/v1/meters").expect(200).json();
    assert_eq!(meters["balance"]["available"], 898);
}

#[test]
fn administrator_must_name_an_account_and_a_token_may_name_only_its_own() {
    let temporary = tempfile::tempdir().unwrap();
    let files = LedgerFiles::in_state(temporary.path());
    let ledger = Ledger::open(&files).unwrap();
    let grant = Grant {
        account: AccountId::new("shop").unwrap(),
        amount: Amount::new(1000).unwrap(),
        reference: GrantReference::new("invoice-7").unwrap(),
        actor: Note::new("test").unwrap(),
        reason: Note::new("test").unwrap(),
    };
    let _ = ledger.grant(&grant, UnixMillis(1)).unwrap();
    let server = Server::with(|config| {
        config.prices = Some(Prices::parse(PRICES.as_bytes()).unwrap());
        config.ledger = Some(Ledger::open(&files).unwrap());
    });
    let bound = |account: Option<&str>| {
        let tokens = TokenStore::open(&server.directory).unwrap();
        let token = tokens.create(TokenSpec {
            scopes: Scopes::everything(),
            actor: "adm:somebody".parse().unwrap(),
            account: account.map(str::to_owned),
            rate_per_minute: 1000,
            concurrency: 10,
            ttl_ms: None,
        });
        server.admin().with(&token.unwrap().token)
    };
    let body = |account: &str| json!({"profile": "profile.shop", "ttl": "10s", "account": account});
    let without = json!({"profile": "profile.shop", "ttl": "10s"});
    // Denials first. A token with every scope is not the administrator of the machine.
    for (client, body, status, code) in [
        (server.admin(), &without, 400, "wp_codebox_account_missing"),
        (bound(None), &without, 400, "wp_codebox_account_missing"),
        (
            bound(None),
            &body("shop"),
            403,
            "wp_codebox_service_scope_missing",
        ),
        (
            bound(Some("blog")),
            &body("shop"),
            403,
            "wp_codebox_service_scope_missing",
        ),
        (
            server.admin(),
            &body("a b"),
            400,
            "wp_codebox_input_invalid",
        ),
        (
            server.admin(),
            &body("blog"),
            402,
            "wp_codebox_credits_short",
        ),
    ] {
        client.post("/v1/sandboxes", body).problem(status, code);
    }
    assert!(server.fake.sandboxes().is_empty());
    for client in [server.admin(), bound(Some("shop"))] {
        let made = client.post("/v1/sandboxes", &body("shop")).expect(202);
        assert_eq!(made.json()["account"], "shop");
    }
    let account = AccountId::new("shop").unwrap();
    assert_eq!(ledger.balance(&account).unwrap().reserved.get(), 220);
}
