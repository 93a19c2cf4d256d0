//! Tests people and data of recipes: users, sessions, actors, dumps, seeds, secrets, agent bundles
//! and inherited connectors.
//!
//! The schema drives the first test: each property of these sections is accepted once, and refused
//! once with its path. A second table has the faults that a schema cannot express.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{FakeHost, issues, with};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use wp_codebox_contracts::{SecretsPolicy, WrittenFile};
use wp_codebox_recipe::{
    Context, Lowered, ParentSite, PolicyChoice, dry_run, lower, parse, recipe_schema,
};

/// Sections that this test covers.
const SECTIONS: &[&str] = &[
    "fixtureUsers",
    "userSessions",
    "browserActors",
    "fixtureDatabases",
    "siteSeeds",
    "agent_bundles",
    "inherit",
    "inheritance",
    "externalServices",
    "secretEnv",
];

/// Returns inputs that use every property of the sections. Properties that exclude each other are
/// in separate entries.
fn everything() -> Value {
    let rows = json!({"ids": [1], "maxRecords": 3});
    json!({
        "fixtureUsers": [{
            "name": "ann", "userId": 7, "username": "annie", "email": "ann@example.org", "role": "editor",
            "displayName": "Ann", "password": "correct horse", "metadata": {"a": 1},
        }],
        "userSessions": [{
            "name": "ann-session", "user": "ann", "metadata": {"a": 1},
            "artifacts": [{"kind": "storage-state", "path": "ann.json", "redactionRequired": true, "metadata": {"a": 1}}],
        }],
        "browserActors": [{"name": "writer", "userSession": "ann-session", "metadata": {"a": 1}}],
        "fixtureDatabases": [{
            "name": "shop", "version": "1", "source": "./file.txt", "format": "sql",
            "reset": {"strategy": "truncate-tables", "tables": ["wp_posts"]}, "metadata": {"a": 1},
        }],
        "siteSeeds": [{
            "type": "fixture", "name": "small", "source": "./seed.json", "format": "json",
            "deterministicIds": {"strategy": "numeric", "onUnsupported": "block"},
            "bootstrap": {
                "multisite": {"enabled": true, "install": "subdirectory", "sites": [
                    {"domain": "localhost", "path": "/shop/", "title": "Shop"},
                ]},
                "domains": [{"domain": "localhost", "path": "/shop/", "primary": true}],
            },
            "scopes": {
                "posts": {"ids": [1], "slugs": ["a"], "postTypes": ["page"], "statuses": ["publish"], "maxRecords": 3},
                "terms": {"ids": [1], "slugs": ["a"], "names": ["A"], "taxonomies": ["category"], "maxRecords": 3},
                "options": {"names": ["blogname"], "maxRecords": 3},
                "users": {"ids": [1], "names": ["a"], "roles": ["author"], "anonymize": true, "maxRecords": 3},
                "media": {"ids": [1], "slugs": ["a"], "statuses": ["inherit"], "includeFiles": false, "maxRecords": 3},
                "activePlugins": true,
                "activeTheme": true,
            },
        }, {"type": "parent_site", "name": "parent", "scopes": {"posts": rows}}],
        "agent_bundles": [
            {"source": "./file.txt", "slug": "a", "on_conflict": "skip", "owner_id": 2, "token_env": "API_KEY"},
            {"bundle": {"agent": 1}},
        ],
        "inherit": {"connectors": ["openai"], "settings": ["theme"]},
        "inheritance": {
            "connectors": [{
                "name": "openai", "status": "available", "provider": "openai", "model": "m", "secretEnv": ["OTHER_KEY"],
                "providerPluginPaths": [],
                "credentials": {
                    "schema": "wp-codebox/connector-credentials/v1", "connector": "openai", "scope": "connector",
                    "status": "available", "reason": "given", "secrets": [
                        {"name": "OTHER_KEY", "status": "available", "scope": "connector", "source": "env", "reason": "given"},
                    ],
                },
            }],
            "settings": [{"name": "theme", "status": "missing", "scope": "site"}],
        },
        "externalServices": [{
            "id": "mail", "label": "Mail", "environment": "fixture", "allowedHosts": ["a.example.org"],
            "blockedHosts": ["b.example.org"], "writes": "forbidden", "secretEnv": ["API_KEY"],
            "redaction": {"policy": "redact-fields", "fields": ["to"]}, "metadata": {"a": 1},
        }],
        "secretEnv": ["API_KEY"],
    })
}

fn host() -> FakeHost {
    let mut host = FakeHost::default();
    host.facts.parent_site = ParentSite::Present;
    host
}

fn found(inputs: &Value) -> Vec<(String, String)> {
    let document = with(&json!({ "inputs": inputs }));
    issues(&document, &host(), PolicyChoice::Derived)
        .into_iter()
        .map(|issue| (issue.code.to_string(), issue.path))
        .collect()
}

/// Collects the schema of every property below `schema`, with the pointer of its first occurrence
/// in `value`; `None` if the value lacks it.
fn properties(
    schema: &Value,
    value: Option<(&Value, String)>,
    all: &mut Vec<(String, Value, Option<String>)>,
    name: &str,
) {
    for list in ["anyOf", "oneOf"] {
        for row in schema[list].as_array().into_iter().flatten() {
            properties(row, value.clone(), all, name);
        }
    }
    if schema["items"].is_object() {
        // Properties that exclude each other are in separate entries, so every entry is searched.
        let rows = value
            .as_ref()
            .and_then(|(value, at)| Some((value.as_array()?, at)));
        let mut found = Vec::new();
        match rows {
            Some((rows, at)) => {
                for (index, row) in rows.iter().enumerate() {
                    properties(
                        &schema["items"],
                        Some((row, format!("{at}/{index}"))),
                        &mut found,
                        name,
                    );
                }
            }
            None => properties(&schema["items"], None, &mut found, name),
        }
        for (name, schema, at) in found {
            match all.iter_mut().find(|row| row.0 == name) {
                Some(row) if row.2.is_none() => row.2 = at,
                Some(_) => {}
                None => all.push((name, schema, at)),
            }
        }
    }
    for (member, sub) in schema["properties"].as_object().into_iter().flatten() {
        let own = value
            .as_ref()
            .and_then(|(value, at)| Some((value.get(member)?, format!("{at}/{member}"))));
        let full = format!("{name}.{member}");
        all.push((
            full.clone(),
            sub.clone(),
            own.as_ref().map(|own| own.1.clone()),
        ));
        properties(sub, own, all, &full);
    }
}

/// Returns the path of an issue for a pointer: `/a/0/b` gives `$.inputs.a[0].b`.
fn path(pointer: &str) -> String {
    let parts = pointer
        .split('/')
        .skip(1)
        .map(|part| match part.parse::<usize>() {
            Ok(index) => format!("[{index}]"),
            Err(_) => format!(".{part}"),
        });
    format!("$.inputs{}", parts.collect::<String>())
}

#[test]
fn each_property_of_the_tested_input_sections_is_accepted_and_refused_if_its_type_is_wrong() {
    let inputs = everything();
    assert_eq!(found(&inputs), []);
    let schema = recipe_schema();
    let mut count = 0;
    for section in SECTIONS {
        let of = &schema["properties"]["inputs"]["properties"][*section];
        assert!(of.is_object(), "{section}");
        let mut all = Vec::new();
        let own = (&inputs[*section], format!("/{section}"));
        properties(of, Some(own), &mut all, section);
        all.push((
            (*section).to_owned(),
            of.clone(),
            Some(format!("/{section}")),
        ));
        for (name, sub, pointer) in all {
            // A scope lists the properties of every kind of content; each kind accepts some.
            if name.starts_with("siteSeeds.scopes.") && pointer.is_none() {
                continue;
            }
            let pointer = pointer.unwrap_or_else(|| panic!("{name} is in no accepted recipe"));
            // No schema of these sections permits both a number and a list.
            let wrong = if sub["type"] == "array" {
                json!(1)
            } else {
                json!([[]])
            };
            let mut spoiled = inputs.clone();
            *spoiled.pointer_mut(&pointer).unwrap() = wrong;
            let issues = found(&spoiled);
            assert!(
                issues.iter().any(|(_, at)| *at == path(&pointer)),
                "{name}: {issues:?}"
            );
            count += 1;
        }
    }
    assert!(count > 110, "{count}");
}

/// A fault that the schema permits: place in [`everything`], new value, code, and path below
/// `$.inputs`.
type Row = (&'static str, Value, &'static str, &'static str);

fn faults() -> Vec<Row> {
    vec![
        (
            "/fixtureUsers/0/username",
            json!("Ann!"),
            "invalid-fixture-user",
            "fixtureUsers[0].username",
        ),
        (
            "/fixtureUsers/0/username",
            json!(" ann"),
            "invalid-fixture-user",
            "fixtureUsers[0].username",
        ),
        (
            "/fixtureUsers/0/email",
            json!("ann"),
            "invalid-fixture-user",
            "fixtureUsers[0].email",
        ),
        (
            "/fixtureUsers/0/role",
            json!("shop manager"),
            "invalid-fixture-user",
            "fixtureUsers[0].role",
        ),
        (
            "/fixtureUsers/1",
            json!({"name": "ANN"}),
            "duplicate-name",
            "fixtureUsers[1].name",
        ),
        (
            "/fixtureUsers/1",
            json!({"name": "b", "username": "annie"}),
            "duplicate-name",
            "fixtureUsers[1].username",
        ),
        (
            "/fixtureUsers/1",
            json!({"name": "annie"}),
            "duplicate-name",
            "fixtureUsers[1].username",
        ),
        (
            "/fixtureUsers/1",
            json!({"name": "b", "email": "Ann@example.org"}),
            "duplicate-name",
            "fixtureUsers[1].email",
        ),
        (
            "/fixtureUsers/1",
            json!({"name": "b", "userId": 7}),
            "duplicate-name",
            "fixtureUsers[1].userId",
        ),
        (
            "/userSessions/0/user",
            json!(" "),
            "invalid-reference",
            "userSessions[0].user",
        ),
        (
            "/userSessions/1",
            json!({"name": "ann-session", "user": "1"}),
            "duplicate-name",
            "userSessions[1].name",
        ),
        (
            "/userSessions/1",
            json!({"name": "a.storage-state", "user": "1"}),
            "invalid-user-session",
            "userSessions[1].name",
        ),
        (
            "/browserActors/0/userSession",
            json!("other"),
            "invalid-reference",
            "browserActors[0].userSession",
        ),
        (
            "/browserActors/1",
            json!({"name": "writer", "userSession": "ann-session"}),
            "duplicate-name",
            "browserActors[1].name",
        ),
        (
            "/fixtureDatabases/0/source",
            json!("./none.sql"),
            "missing-source",
            "fixtureDatabases[0].source",
        ),
        (
            "/fixtureDatabases/0/source",
            json!("./dir"),
            "not-file",
            "fixtureDatabases[0].source",
        ),
        (
            "/fixtureDatabases/0/reset/strategy",
            json!("none"),
            "invalid-fixture-reset-table",
            "fixtureDatabases[0].reset.tables",
        ),
        (
            "/fixtureDatabases/0/reset/tables",
            json!(["a", "a"]),
            "invalid-fixture-reset-table",
            "fixtureDatabases[0].reset.tables[1]",
        ),
        (
            "/fixtureDatabases/1",
            json!({"name": "shop", "version": "2", "source": "./file.txt"}),
            "duplicate-name",
            "fixtureDatabases[1].name",
        ),
        (
            "/siteSeeds/0/deterministicIds/strategy",
            json!("platform-identifiers"),
            "unsupported-deterministic-site-seed-ids",
            "siteSeeds[0].deterministicIds",
        ),
        (
            "/siteSeeds/0/bootstrap/domains/0/domain",
            json!("shop.example"),
            "unsupported-site-seed-multisite-bootstrap",
            "siteSeeds[0].bootstrap.domains[0].domain",
        ),
        (
            "/siteSeeds/0/bootstrap/domains/0/path",
            json!("/other/"),
            "unmatched-site-seed-bootstrap-domain",
            "siteSeeds[0].bootstrap.domains[0].path",
        ),
        (
            "/siteSeeds/1/name",
            json!("unreadable"),
            "unsupported-site-seed-source",
            "siteSeeds[1].type",
        ),
        (
            "/siteSeeds/1/source",
            json!("./seed.json"),
            "invalid-site-seed-source",
            "siteSeeds[1].source",
        ),
        (
            "/siteSeeds/1/format",
            json!("wxr"),
            "unsupported-site-seed-source",
            "siteSeeds[1].format",
        ),
        (
            "/agent_bundles/0/source",
            json!("./none"),
            "missing-source",
            "agent_bundles[0].source",
        ),
        (
            "/agent_bundles/0/bundle",
            json!({}),
            "invalid-agent-bundle",
            "agent_bundles[0]",
        ),
        (
            "/agent_bundles/0/slug",
            json!("a b"),
            "invalid-agent-bundle",
            "agent_bundles[0].slug",
        ),
        (
            "/agent_bundles/0/token_env",
            json!("NO_KEY"),
            "invalid-agent-bundle",
            "agent_bundles[0].token_env",
        ),
        (
            "/inherit/connectors",
            json!(["other"]),
            "unsupported-inheritance",
            "inherit.connectors[0]",
        ),
        (
            "/inherit/settings",
            json!(["other"]),
            "unsupported-inheritance",
            "inherit.settings[0]",
        ),
        (
            "/inheritance/connectors/0/providerPluginPaths",
            json!(["/srv/a"]),
            "unsupported-inheritance",
            "inheritance.connectors[0].providerPluginPaths",
        ),
        (
            "/inheritance/connectors/0/secretEnv",
            json!(["LD_PRELOAD"]),
            "invalid-secret-env",
            "inheritance.connectors[0].secretEnv[0]",
        ),
        (
            "/inheritance/settings/0/status",
            json!("available"),
            "unsupported-inheritance",
            "inheritance.settings[0]",
        ),
        (
            "/secretEnv/1",
            json!("SHORT_KEY"),
            "invalid-secret-env",
            "secretEnv[1]",
        ),
    ]
}

#[test]
fn each_listed_fault_that_the_schema_permits_is_refused_with_its_path() {
    for (at, value, code, wanted) in faults() {
        let mut inputs = everything();
        let (parent, name) = at.rsplit_once('/').unwrap();
        match inputs.pointer_mut(parent).unwrap() {
            Value::Array(rows) => match name.parse::<usize>().unwrap() {
                index if index < rows.len() => rows[index] = value.clone(),
                _ => rows.push(value.clone()),
            },
            other => other[name] = value.clone(),
        }
        let wanted = (code.to_owned(), format!("$.inputs.{wanted}"));
        assert_eq!(found(&inputs), [wanted], "{at} {value}");
    }
}

#[test]
fn actor_of_a_browser_step_is_refused_unless_its_name_or_its_user_session_is_a_session() {
    let judge = |argument: String, steps: Value| {
        let mut all = vec![json!({"command": "wordpress.browser-scenario", "args": [argument]})];
        all.extend(steps.as_array().unwrap().iter().cloned());
        let document = with(&json!({"inputs": everything(), "workflow": {"steps": all}}));
        let found = issues(&document, &host(), PolicyChoice::Derived);
        found
            .iter()
            .map(|i| format!("{} {}", i.code, i.path))
            .collect::<Vec<_>>()
    };
    let steps = |actor: &str| json!([{"kind": "click", "selector": "a", "actor": actor}]);
    let unknown = ["invalid-reference $.workflow.steps[0].args[0]"];
    for (argument, good) in [
        (format!("steps-json={}", steps("writer")), true),
        (format!("steps-json={}", steps("ann-session")), true),
        (format!("steps-json={}", steps("reader")), false),
        (
            format!("scenario-json={}", json!({"steps": steps("reader")})),
            false,
        ),
        (
            format!(
                "scenario-json={}",
                json!({"steps": steps("me"), "actors": [{"name": "me", "userSession": "writer"}]})
            ),
            true,
        ),
        (
            format!(
                "scenario-json={}",
                json!({"steps": steps("me"), "actors": [{"name": "me", "userSession": "reader"}]})
            ),
            false,
        ),
        (
            format!("scenario-json={}", json!({"url": "/", "actor": "reader"})),
            false,
        ),
    ] {
        let wanted: &[&str] = if good { &[] } else { &unknown };
        assert_eq!(judge(argument.clone(), json!([])), wanted, "{argument}");
    }
    let session =
        json!([{"command": "wordpress.session", "args": ["user=admin", "session=reader"]}]);
    assert_eq!(
        judge(format!("steps-json={}", steps("reader")), session),
        Vec::<String>::new()
    );
}

fn lowered(document: &Value, host: &FakeHost) -> Lowered {
    let recipe = parse(document.to_string().as_bytes()).unwrap();
    let context = Context {
        sources: host,
        policy: PolicyChoice::Derived,
    };
    lower(&recipe, context).unwrap()
}

#[test]
fn steps_that_create_users_seeds_and_sessions_run_in_order_and_contain_no_password() {
    let document = with(&json!({"inputs": everything()}));
    let all = lowered(&document, &host());
    let phases: Vec<_> = all
        .workflow
        .steps
        .iter()
        .map(|step| step.phase.as_str())
        .collect();
    assert_eq!(
        phases,
        [
            "fixture-database",
            "fixture-user",
            "network",
            "network",
            "seed",
            "seed",
            "user-session",
            "agent-bundle",
            "steps"
        ]
    );
    let steps = serde_json::to_string(&all.workflow.steps).unwrap();
    assert!(!steps.contains("correct horse"), "{steps}");
    let holds = |file: &&WrittenFile| file.content.contains("correct horse");
    let files: Vec<_> = all
        .workflow
        .files
        .iter()
        .filter(holds)
        .map(|f| f.target.as_str())
        .collect();
    assert_eq!(files, ["/run/codebox/staged/recipe/people.json"]);
    // The content of the parent site is read on the host; the guest gets a file.
    let parent = all
        .workflow
        .files
        .iter()
        .find(|f| f.target.ends_with("/seeds/1.json"));
    assert_eq!(parent.unwrap().content, "{\"name\":\"parent\"}");

    let recipe = parse(document.to_string().as_bytes());
    let host = host();
    let context = Context {
        sources: &host,
        policy: PolicyChoice::Derived,
    };
    let plan = dry_run(
        "recipe.json",
        recipe.as_ref().map_err(Vec::as_slice),
        context,
    );
    let text = plan.to_string();
    assert!(!text.contains("correct horse"), "{text}");
    assert_eq!(plan["plan"]["fixtureUsers"][0]["password"], "given");
    assert_eq!(
        plan["plan"]["fixtureDatabases"][0]["reset"]["tables"],
        json!(["wp_posts"])
    );
    assert_eq!(
        plan["plan"]["siteSeeds"][0]["deterministicIds"]["supported"],
        true
    );
}

#[test]
fn secret_bound_to_hosts_is_refused_if_the_recipe_opens_only_other_hosts() {
    let bound = |open: &str| {
        with(&json!({
            "inputs": {"secretEnv": ["API_KEY"], "externalServices": [{
                "id": "a", "environment": "fixture", "writes": "forbidden",
                "allowedHosts": ["a.example.org"], "secretEnv": ["API_KEY"]}]},
            "distribution": {"name": "Shop", "wordpress": {"root": "/wordpress"},
                "safety": {"network": "declared", "allowedHosts": [open]}},
        }))
    };
    let host = FakeHost::default();
    let other = bound("b.example.org");
    assert_eq!(lowered(&other, &host).policy.expose_secrets, [""; 0]);
    assert_eq!(issues(&other, &host, PolicyChoice::Derived).len(), 1);
    // Control: with its own host open, the secret is accepted.
    assert_eq!(
        issues(&bound("a.example.org"), &host, PolicyChoice::Derived),
        []
    );
}

#[test]
fn secret_is_exposed_to_the_guest_unless_the_recipe_allows_access_to_a_host_of_the_secret() {
    let plain = json!({"inputs": {"secretEnv": ["API_KEY", "NOT_THERE"]}});
    let open = json!({"distribution": {"name": "Shop", "wordpress": {"root": "/wordpress"},
        "safety": {"network": "declared", "allowedHosts": ["a.example.org"], "secretEnv": ["API_KEY"]}}});
    let closed = json!({"inputs": {"externalServices": [{
        "id": "a", "environment": "fixture", "writes": "forbidden", "allowedHosts": ["a.example.org"], "secretEnv": ["API_KEY"]}]}});
    let host = FakeHost::default();
    for (more, exposed, hosts) in [
        (json!({}), vec!["API_KEY"], vec![]),
        (closed, vec!["API_KEY"], vec![]),
        (open, vec![], vec!["a.example.org"]),
    ] {
        let mut document = with(&plain);
        for (name, value) in more.as_object().unwrap() {
            match document.get_mut(name) {
                Some(Value::Object(members)) => members.extend(value.as_object().unwrap().clone()),
                _ => document[name] = value.clone(),
            }
        }
        assert_eq!(
            issues(&document, &host, PolicyChoice::Derived),
            [],
            "{document}"
        );
        let all = lowered(&document, &host);
        assert_eq!(all.policy.expose_secrets, exposed, "{document}");
        assert_eq!(all.policy.secrets, SecretsPolicy::ConnectorScoped);
        let names: Vec<_> = all
            .secrets
            .iter()
            .map(|s| (s.name.as_str(), s.hosts.clone()))
            .collect();
        assert_eq!(
            names,
            [(
                "API_KEY",
                hosts.iter().map(|h: &&str| (*h).to_owned()).collect()
            )]
        );
    }
    // A caller's own policy is not changed.
    let policy = json!({"network": "deny", "filesystem": "sandbox", "commands": ["wordpress.run-php"], "secrets": "connector-scoped", "approvals": "never"});
    let refused = issues(&with(&plain), &host, PolicyChoice::Given(&policy));
    let codes: BTreeSet<_> = refused.iter().map(|i| i.code.as_str()).collect();
    assert_eq!(codes, BTreeSet::from(["runtime-policy-secret-withheld"]));
}

#[test]
fn derived_policy_permits_page_scripts_only_to_a_recipe_whose_steps_run_one() {
    let commands = |args: Value| {
        let document = with(
            &json!({"workflow": {"steps": [{"command": "wordpress.browser-actions", "args": args}]}}),
        );
        lowered(&document, &FakeHost::default()).policy.commands
    };
    let evaluate = "wordpress.browser-actions.evaluate".to_owned();
    let script = json!([{"kind": "evaluate", "expression": "1"}]).to_string();
    let click = json!([{"kind": "click", "selector": "a"}]).to_string();
    assert!(commands(json!(["url=/", format!("steps-json={script}")])).contains(&evaluate));
    assert!(commands(json!(["url=/", "steps-json=@./steps.json"])).contains(&evaluate));
    assert!(!commands(json!(["url=/", format!("steps-json={click}")])).contains(&evaluate));
}

#[test]
fn agent_step_without_a_model_gets_the_model_of_an_inherited_connector() {
    let args = |args: Value| {
        let connectors = json!([
            {"name": "a", "status": "available", "secretEnv": ["OTHER_KEY"]},
            {"name": "b", "status": "available", "provider": "openai", "model": "m1"},
            {"name": "c", "status": "available", "provider": "anthropic", "model": "m2"},
        ]);
        let document = with(&json!({
            "inputs": {"inheritance": {"connectors": connectors}},
            "workflow": {"steps": [{"command": "wp-codebox.agent-sandbox-run", "args": args}]},
        }));
        let mut all = lowered(&document, &FakeHost::default());
        all.workflow.steps.remove(0).call.args
    };
    for (given, wanted) in [
        (
            json!(["task=x"]),
            json!(["task=x", "provider=openai", "model=m1"]),
        ),
        (
            json!(["provider=anthropic"]),
            json!(["provider=anthropic", "model=m2"]),
        ),
        (json!(["provider=other"]), json!(["provider=other"])),
        (json!(["model=own"]), json!(["model=own"])),
    ] {
        assert_eq!(json!(args(given.clone())), wanted, "{given}");
    }
}
