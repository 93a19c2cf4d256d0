//! Every operation of the API for every kind of client, from one rule for each operation. An
//! operation without a rule fails the test.

use crate::fake::bundle;
use crate::http::{Answer, Client};
use crate::server::Server;
use serde_json::json;
use std::collections::BTreeSet;
use wp_codebox_ledger::{
    AccountId, Amount, Grant, GrantReference, Ledger, LedgerFiles, Note, Prices, UnixMillis,
};

const PRICES: &str = r#"{"schema": "wp-codebox/meter-prices/v1", "unit": "EUR/1000000",
    "extensions": {"fake": {"per_second": 1, "per_creation": 100, "gpu_per_second": 0, "key": "platform"}}}"#;
/// Every scope for objects of the client's own actor.
const OWN: &[&str] = &["*"];
/// Scopes that add the objects of other actors.
const OTHERS: [&str; 3] = ["sandboxes:all", "runs:all", "artifacts:all"];
const UNKNOWN: &str = "run_00000000000000000000000000000000";

/// To whom the answer of an operation belongs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Rule {
    /// Everybody may ask, also without a token.
    Public,
    /// Every token may ask; the answer is about the token.
    Token,
    /// The machine: the scope decides, and it cannot be limited to a profile.
    Machine,
    /// A profile: a token that is limited to another profile is refused.
    Profile,
    /// A list of profiles: it contains only those that the token may use.
    Profiles,
    /// One object of an actor; every other actor gets this code, as for an unknown id.
    Object(&'static str),
    /// A list of objects: it contains and counts only those of the token's actor and profiles.
    List,
    /// Something new of a profile, which the token's account pays for.
    New,
    /// One object of an actor, whose account is charged; others get this code.
    Charged(&'static str),
    /// Objects of the very token.
    OfToken,
}

/// One operation: its id in the OpenAPI document, the scopes that it needs, its rule.
struct Row(&'static str, &'static [&'static str], Rule);

const SANDBOX: &str = "wp_codebox_sandbox_not_found";
const SNAPSHOT: &str = "wp_codebox_snapshot_not_found";
const RUN: &str = "wp_codebox_run_not_found";
const ARTIFACT: &str = "wp_codebox_artifact_not_found";

const ROWS: &[Row] = &[
    Row("listProfiles", &["profiles:read"], Rule::Profiles),
    Row("getProfile", &["profiles:read"], Rule::Profile),
    Row("listExtensions", &["extensions:read"], Rule::Machine),
    Row("getExtension", &["extensions:read"], Rule::Machine),
    Row("listHosts", &["hosts:read"], Rule::Machine),
    Row("registerHost", &["hosts:write"], Rule::Machine),
    Row("getHost", &["hosts:read"], Rule::Machine),
    Row("drainHost", &["hosts:write"], Rule::Machine),
    Row("removeHost", &["hosts:write"], Rule::Machine),
    Row("createSandbox", &["sandboxes:create"], Rule::New),
    Row("listSandboxes", &["sandboxes:read"], Rule::List),
    Row("getSandbox", &["sandboxes:read"], Rule::Object(SANDBOX)),
    Row(
        "destroySandbox",
        &["sandboxes:destroy"],
        Rule::Object(SANDBOX),
    ),
    Row("exec", &["sandboxes:exec"], Rule::Object(SANDBOX)),
    Row("listFiles", &["files:read"], Rule::Object(SANDBOX)),
    Row("readFile", &["files:read"], Rule::Object(SANDBOX)),
    Row("writeFile", &["files:write"], Rule::Object(SANDBOX)),
    Row("deleteFile", &["files:write"], Rule::Object(SANDBOX)),
    Row("readJournal", &["sandboxes:read"], Rule::Object(SANDBOX)),
    Row("extendTtl", &["sandboxes:write"], Rule::Charged(SANDBOX)),
    Row("takeSnapshot", &["snapshots:write"], Rule::Object(SANDBOX)),
    Row(
        "restoreSnapshot",
        &["sandboxes:write"],
        Rule::Object(SANDBOX),
    ),
    Row(
        "recreateSandbox",
        &["sandboxes:destroy", "sandboxes:create"],
        Rule::Charged(SANDBOX),
    ),
    Row("listSnapshots", &["snapshots:read"], Rule::List),
    Row(
        "removeSnapshot",
        &["snapshots:write"],
        Rule::Object(SNAPSHOT),
    ),
    Row("decideRoute", &["routes:read"], Rule::Profile),
    Row("quoteSandbox", &["routes:read"], Rule::Profile),
    Row("listMeters", &["meters:read"], Rule::List),
    Row("streamEvents", &["events:read"], Rule::List),
    Row("listWebhooks", &["webhooks:read"], Rule::OfToken),
    Row("createWebhook", &["webhooks:write"], Rule::Machine),
    Row("removeWebhook", &["webhooks:write"], Rule::OfToken),
    Row("listRuns", &["runs:read"], Rule::List),
    Row("startRun", &["runs:write"], Rule::New),
    Row("getRun", &["runs:read"], Rule::Object(RUN)),
    Row("cancelRun", &["runs:write"], Rule::Object(RUN)),
    Row("listRunEvents", &["runs:read"], Rule::Object(RUN)),
    Row("listArtifacts", &["artifacts:read"], Rule::List),
    Row("getArtifact", &["artifacts:read"], Rule::Object(ARTIFACT)),
    Row(
        "verifyArtifact",
        &["artifacts:read"],
        Rule::Object(ARTIFACT),
    ),
    Row("getOpenApi", &[], Rule::Public),
    Row("whoAmI", &[], Rule::Token),
    Row("isAlive", &[], Rule::Public),
    Row("isReady", &[], Rule::Public),
    Row("readMetrics", &["metrics:read"], Rule::Machine),
];

/// A server that charges credits, with two accounts that can pay.
struct World {
    server: Server,
    /// The actor to whom the objects of [`Objects`] belong, with every scope.
    own: Client,
    _ledger: tempfile::TempDir,
}

/// Fresh objects of the actor `agt:shop`.
struct Objects {
    sandbox: String,
    snapshot: String,
    ended: String,
    run: String,
    webhook: String,
}

impl World {
    fn new() -> Self {
        let temporary = tempfile::tempdir().unwrap();
        let files = LedgerFiles::in_state(temporary.path());
        let ledger = Ledger::open(&files).unwrap();
        for account in ["shop", "other"] {
            let grant = Grant {
                account: AccountId::new(account).unwrap(),
                amount: Amount::new(1_000_000_000).unwrap(),
                reference: GrantReference::new(format!("invoice-{account}")).unwrap(),
                actor: Note::new("test").unwrap(),
                reason: Note::new("test").unwrap(),
            };
            let _ = ledger.grant(&grant, UnixMillis(1)).unwrap();
        }
        let server = Server::with(|config| {
            config.prices = Some(Prices::parse(PRICES.as_bytes()).unwrap());
            config.ledger = Some(Ledger::open(&files).unwrap());
        });
        let own = server.paying("agt:shop", OWN, "shop");
        Self {
            server,
            own,
            _ledger: temporary,
        }
    }

    fn objects(&self) -> Objects {
        let text = |answer: Answer, name: &str| answer.json()[name].as_str().unwrap().to_owned();
        let own = &self.own;
        let sandbox = own.ready("profile.shop");
        let file = format!("/v1/sandboxes/{sandbox}/files/workspace/x");
        own.send("PUT", &file, &[], b"x").expect(200);
        let snapshots = format!("/v1/sandboxes/{sandbox}/snapshots");
        let snapshot = text(own.post(&snapshots, &json!({})).expect(201), "id");
        let ended = own.ready("profile.shop");
        own.delete(&format!("/v1/sandboxes/{ended}")).expect(200);
        let start = own.post("/v1/runs?profile=profile.shop", &json!({"goal": "g"}));
        let run = text(start.expect(202), "run_id");
        let hook = own.post("/v1/webhooks", &json!({"url": "https://hooks.example/"}));
        let webhook = text(hook.expect(201), "id");
        let spare = json!({"id": "spare", "extension": "fake",
            "state": "draining", "capacity": 1});
        self.server.admin().post("/v1/hosts", &spare).expect(201);
        Objects {
            sandbox,
            snapshot,
            ended,
            run,
            webhook,
        }
    }

    /// Removes the webhook, of which a token may have only a few.
    fn tidy(&self, objects: &Objects) {
        self.own
            .delete(&format!("/v1/webhooks/{}", objects.webhook));
    }
}

/// Sends the request of an operation about these objects.
fn ask(client: &Client, operation: &str, of: &Objects) -> Answer {
    let sandbox = |rest: &str| format!("/v1/sandboxes/{}{rest}", of.sandbox);
    let file = sandbox("/files/workspace/x");
    let profile = json!({"profile": "profile.shop"});
    match operation {
        "listProfiles" => client.get("/v1/profiles"),
        "getProfile" => client.get("/v1/profiles/profile.shop"),
        "listExtensions" => client.get("/v1/extensions"),
        "getExtension" => client.get("/v1/extensions/fake"),
        "listHosts" => client.get("/v1/hosts"),
        "registerHost" => client.post(
            "/v1/hosts",
            &json!({"id": "spare", "extension": "fake",
                "state": "draining", "capacity": 1}),
        ),
        "getHost" => client.get("/v1/hosts/spare"),
        "removeHost" => client.delete("/v1/hosts/spare"),
        "drainHost" => client.post("/v1/hosts/spare/drain", &json!({})),
        "createSandbox" => client.post("/v1/sandboxes", &profile),
        "listSandboxes" => client.get("/v1/sandboxes?limit=200"),
        "getSandbox" => client.get(&sandbox("")),
        "destroySandbox" => client.delete(&sandbox("")),
        "exec" => client.post(&sandbox("/exec"), &json!({"argv": ["/bin/true"]})),
        "listFiles" => client.get(&sandbox("/files")),
        "readFile" => client.get(&file),
        "writeFile" => client.send("PUT", &file, &[], b"y"),
        "deleteFile" => client.delete(&file),
        "readJournal" => client.get(&sandbox("/journal")),
        "extendTtl" => client.post(&sandbox("/extend-ttl"), &json!({"ttl": "2h"})),
        "takeSnapshot" => client.post(&sandbox("/snapshots"), &json!({})),
        "restoreSnapshot" => client.post(&sandbox("/restore"), &json!({"snapshot": of.snapshot})),
        "recreateSandbox" => client.post(&sandbox("/recreate"), &json!({})),
        "listSnapshots" => client.get("/v1/snapshots"),
        "removeSnapshot" => client.delete(&format!("/v1/snapshots/{}", of.snapshot)),
        "decideRoute" => client.post("/v1/routes", &profile),
        "quoteSandbox" => client.post("/v1/quotes", &profile),
        "listMeters" => client.get("/v1/meters?limit=200"),
        "streamEvents" => client.get("/v1/events?after=0&follow=now"),
        "listWebhooks" => client.get("/v1/webhooks"),
        "createWebhook" => client.post("/v1/webhooks", &json!({"url": "https://hooks.example/"})),
        "removeWebhook" => client.delete(&format!("/v1/webhooks/{}", of.webhook)),
        "listRuns" => client.get("/v1/runs?limit=200"),
        "startRun" => client.post("/v1/runs?profile=profile.shop", &json!({"goal": "g"})),
        "getRun" => client.get(&format!("/v1/runs/{}", of.run)),
        "cancelRun" => client.delete(&format!("/v1/runs/{}", of.run)),
        "listRunEvents" => client.get(&format!("/v1/runs/{}/events", of.run)),
        "listArtifacts" => client.get("/v1/artifacts?limit=200"),
        "getArtifact" => client.get(&format!("/v1/artifacts/{}", of.run)),
        "verifyArtifact" => client.get(&format!("/v1/artifacts/{}/verify", of.run)),
        "getOpenApi" => client.get("/v1/openapi.json"),
        "whoAmI" => client.get("/v1/whoami"),
        "isAlive" => client.get("/healthz"),
        "isReady" => client.get("/readyz"),
        "readMetrics" => client.get("/metrics"),
        other => panic!("the operation {other} has no request; add one"),
    }
}

/// What a list operation lists of these objects.
fn listed<'a>(operation: &str, of: &'a Objects) -> &'a str {
    match operation {
        "listSandboxes" | "streamEvents" => &of.sandbox,
        "listSnapshots" => &of.snapshot,
        "listMeters" => &of.ended,
        "listRuns" | "listArtifacts" => &of.run,
        other => panic!("{other} is no list of objects of an actor"),
    }
}

fn code(answer: &Answer) -> String {
    answer.json()["code"]
        .as_str()
        .unwrap_or_default()
        .to_owned()
}

#[track_caller]
fn succeeds(what: &str, answer: &Answer) {
    assert!(answer.status < 300, "{what}: {}", answer.text());
}

#[track_caller]
fn refused(what: &str, answer: &Answer, wanted: &str) {
    assert!(answer.status >= 400, "{what}: {}", answer.text());
    assert_eq!(code(answer), wanted, "{what}: {}", answer.text());
}

const SCOPE_MISSING: &str = "wp_codebox_service_scope_missing";
const ACCOUNT_MISSING: &str = "wp_codebox_account_missing";

#[test]
fn every_operation_of_the_openapi_document_has_a_rule_and_names_its_scope() {
    let server = Server::start();
    let openapi = server.admin().get("/v1/openapi.json").expect(200).json();
    let mut described = BTreeSet::new();
    for item in openapi["paths"].as_object().unwrap().values() {
        for operation in item.as_object().unwrap().values() {
            let id = operation["operationId"].as_str().unwrap();
            described.insert(id);
            let row = ROWS.iter().find(|row| row.0 == id);
            let row = row.unwrap_or_else(|| panic!("the operation {id} has no rule; add one"));
            let text = operation["description"].as_str().unwrap_or_default();
            match row.1.first() {
                None => assert!(!text.contains("Needs the scope"), "{id}: {text}"),
                Some(scope) => assert!(text.contains(&format!("`{scope}`")), "{id}: {text}"),
            }
        }
    }
    let rows: BTreeSet<&str> = ROWS.iter().map(|row| row.0).collect();
    assert_eq!(rows, described, "a rule without an operation");
}

#[test]
fn owner_of_an_object_may_use_every_operation() {
    let world = World::new();
    for Row(id, _, rule) in ROWS {
        let objects = world.objects();
        let answer = ask(&world.own, id, &objects);
        succeeds(id, &answer);
        if *rule == Rule::List {
            assert!(answer.text().contains(listed(id, &objects)), "{id}");
        }
        world.tidy(&objects);
    }
}

#[test]
fn another_actor_cannot_tell_an_object_from_an_unknown_id_and_finds_it_in_no_list() {
    let world = World::new();
    let objects = world.objects();
    let unknown = Objects {
        sandbox: UNKNOWN.to_owned(),
        snapshot: "snap_00000000000000000000000000000000".to_owned(),
        ended: UNKNOWN.to_owned(),
        run: UNKNOWN.to_owned(),
        webhook: "hook_000000000000000000000000".to_owned(),
    };
    let other = world.server.paying("agt:other", OWN, "other");
    for Row(id, _, rule) in ROWS {
        let answer = ask(&other, id, &objects);
        match rule {
            Rule::Object(hidden) | Rule::Charged(hidden) => {
                refused(id, &answer, hidden);
                let none = ask(&other, id, &unknown);
                assert_eq!(answer.comparable(), none.comparable(), "{id}");
            }
            Rule::List => {
                succeeds(id, &answer);
                let text = answer.text();
                assert!(!text.contains(listed(id, &objects)), "{id}: {text}");
                let total = answer.header("content-type") == Some("application/json");
                if total && answer.json().get("total").is_some() {
                    // The other actor made runs itself, above in this loop.
                    let made = answer.json()["total"].as_u64().unwrap();
                    assert!(made <= 3, "{id} counts objects of others: {text}");
                }
            }
            Rule::OfToken if *id == "removeWebhook" => {
                refused(id, &answer, "wp_codebox_service_not_found");
            }
            Rule::OfToken => assert!(!answer.text().contains(&objects.webhook), "{id}"),
            Rule::Public
            | Rule::Token
            | Rule::Machine
            | Rule::Profile
            | Rule::Profiles
            | Rule::New => succeeds(id, &answer),
        }
    }
}

#[test]
fn another_actor_with_the_scope_all_of_the_group_may_use_every_object() {
    let world = World::new();
    let scopes: Vec<&str> = OWN.iter().copied().chain(OTHERS).collect();
    let support = world.server.paying("adm:support", &scopes, "other");
    for Row(id, _, rule) in ROWS {
        let objects = world.objects();
        let answer = ask(&support, id, &objects);
        match rule {
            Rule::OfToken => {}
            _ => succeeds(id, &answer),
        }
        if *rule == Rule::List {
            assert!(answer.text().contains(listed(id, &objects)), "{id}");
        }
        world.tidy(&objects);
    }
}

#[test]
fn same_actor_with_a_token_for_another_profile_sees_and_makes_nothing_of_the_profile() {
    let world = World::new();
    let objects = world.objects();
    let groups = [
        "profiles:*@profile.other",
        "sandboxes:*@profile.other",
        "sandboxes:all@profile.other",
        "files:*@profile.other",
        "snapshots:*@profile.other",
        "routes:*@profile.other",
        "meters:*@profile.other",
        "events:*@profile.other",
        "runs:*@profile.other",
        "runs:all@profile.other",
        "artifacts:*@profile.other",
        "artifacts:all@profile.other",
    ];
    let limited = world.server.paying("agt:shop", &groups, "shop");
    for Row(id, _, rule) in ROWS {
        let answer = ask(&limited, id, &objects);
        match rule {
            Rule::Object(hidden) | Rule::Charged(hidden) => refused(id, &answer, hidden),
            Rule::List => {
                succeeds(id, &answer);
                assert!(!answer.text().contains(listed(id, &objects)), "{id}");
            }
            Rule::Profiles => {
                assert!(!answer.text().contains("profile.shop"), "{id}");
                assert!(answer.text().contains("profile.other"), "control: {id}");
            }
            Rule::Profile | Rule::New | Rule::Machine => refused(id, &answer, SCOPE_MISSING),
            Rule::OfToken => refused(id, &answer, SCOPE_MISSING),
            Rule::Public | Rule::Token => succeeds(id, &answer),
        }
    }
    // Positive control: the profile of the token.
    limited.ready("profile.other");
    let made = limited.post("/v1/runs?profile=profile.other", &json!({"goal": "g"}));
    let run = made.expect(202).json()["run_id"]
        .as_str()
        .unwrap()
        .to_owned();
    let run = &world.server.host.started()[&run];
    assert_eq!(run.profile.as_deref(), Some("profile.other"));
    // A run without a profile needs a scope without one.
    limited
        .post("/v1/runs", &json!({"goal": "g"}))
        .problem(403, SCOPE_MISSING);
}

#[test]
fn token_without_an_account_uses_its_objects_but_makes_and_prolongs_nothing() {
    let world = World::new();
    let poor = world.server.token("agt:shop", OWN);
    for Row(id, _, rule) in ROWS {
        let objects = world.objects();
        let answer = ask(&poor, id, &objects);
        match rule {
            Rule::New | Rule::Charged(_) => refused(id, &answer, ACCOUNT_MISSING),
            Rule::OfToken => {}
            _ => succeeds(id, &answer),
        }
        world.tidy(&objects);
    }
    let started = world.server.host.started().len();
    poor.post("/v1/runs", &json!({"goal": "g"}))
        .problem(400, ACCOUNT_MISSING);
    assert_eq!(world.server.host.started().len(), started, "a run started");
}

#[test]
fn each_scope_alone_allows_the_operations_that_need_only_it_and_refuses_all_others() {
    let world = World::new();
    let scopes: BTreeSet<&str> = ROWS.iter().flat_map(|row| row.1).copied().collect();
    let mut objects = world.objects();
    for scope in scopes.iter().copied().chain(OTHERS) {
        let client = world.server.paying("agt:shop", &[scope], "shop");
        for Row(id, needs, rule) in ROWS {
            let what = format!("{id} with {scope}");
            let answer = ask(&client, id, &objects);
            let is_allowed = needs.iter().all(|need| *need == scope);
            match rule {
                Rule::Public | Rule::Token => succeeds(&what, &answer),
                _ if !is_allowed => refused(&what, &answer, SCOPE_MISSING),
                // The object belongs to another token of the same actor.
                Rule::OfToken if *id == "removeWebhook" => {
                    refused(&what, &answer, "wp_codebox_service_not_found");
                }
                _ => succeeds(&what, &answer),
            }
            if is_allowed && !needs.is_empty() {
                // The operation may have ended or changed its object.
                world.tidy(&objects);
                objects = world.objects();
            }
        }
    }
}

#[test]
fn objects_without_an_actor_are_visible_only_with_the_scope_all_and_no_profile() {
    let world = World::new();
    let legacy = "run_00000000000000000000000000001234";
    world.server.host.add(legacy);
    let limited = ["runs:*", "runs:all@profile.shop", "artifacts:*"];
    let all = ["runs:*", "runs:all", "artifacts:*", "artifacts:all"];
    for (scopes, sees) in [(&["*"][..], false), (&limited[..], false), (&all[..], true)] {
        let client = world.server.token("agt:shop", scopes);
        for path in ["/v1/runs", "/v1/artifacts"] {
            let list = client.get(path).expect(200);
            assert_eq!(list.text().contains(legacy), sees, "{scopes:?}");
            assert_eq!(list.json()["total"] == 0, !sees, "{scopes:?}");
        }
        for path in [
            format!("/v1/runs/{legacy}"),
            format!("/v1/runs/{legacy}/events"),
            format!("/v1/artifacts/{legacy}"),
            format!("/v1/artifacts/{}", bundle(legacy)),
            format!("/v1/artifacts/{legacy}/verify"),
        ] {
            let status = client.get(&path).status;
            assert_eq!(status, if sees { 200 } else { 404 }, "{scopes:?} {path}");
        }
    }
    assert_eq!(world.server.admin().get("/v1/runs").json()["total"], 1);
}

#[test]
fn role_of_a_tenant_allows_every_operation_on_its_objects_and_none_on_the_machine() {
    let world = World::new();
    let scopes: Vec<String> = wp_codebox_service::Scopes::tenant(&["profile.shop"])
        .unwrap()
        .into();
    let scopes: Vec<&str> = scopes.iter().map(String::as_str).collect();
    let tenant = world.server.paying("agt:shop", &scopes, "shop");
    for Row(id, _, rule) in ROWS {
        let objects = world.objects();
        let answer = ask(&tenant, id, &objects);
        match rule {
            Rule::Machine | Rule::OfToken => refused(id, &answer, SCOPE_MISSING),
            _ => succeeds(id, &answer),
        }
        world.tidy(&objects);
    }
}
