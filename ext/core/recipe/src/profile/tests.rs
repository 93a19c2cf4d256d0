use super::*;
use serde_json::json;
use wp_codebox_contracts::{
    GitChoice, IsolationClass, IsolationLevel, MountAccess, NetworkNeed, RoutePolicy,
    RouteStrategy, SandboxScope,
};

const FULL: &str = r#"
# What the agents of the shop get.
id: profile.shop
version: "1.2.0-beta.1"
extension: native
isolation: { level: full }
network:
  default: deny
  egress:
    - api.example.org
    - { host: packages.example.org, ports: [443], methods: [GET] }
    - preset: npm
workspace: { mode: mirror, access: rw, source: /srv/shop, target: /workspace/shop, git: history }
scope_default: agent
ttl: { default: 4h, max: 24h, idle_reap: 15m }
resources: { cpu: null, memory_mb: 512, disk_mb: 256, pids: 64 }
setup:
  instructions: |
    Run the tests before you say that you are done.
    rm -rf /
  commands:
    - { command: wordpress.wp-cli, args: ["command=option get home"] }
  secret_refs:
    - API_KEY
    - { name: OTHER, hosts: [api.example.org] }
reachability: { exec: true, preview: true }
metadata: { cost_class: self-hosted, latency_class: standard }
"#;

fn issues(text: &str) -> Vec<(String, String)> {
    let found = parse_profile(text.as_bytes()).unwrap_err();
    found
        .into_iter()
        .map(|issue| (issue.path, issue.message))
        .collect()
}

#[test]
fn profile_in_yaml_or_in_json_yields_the_same_result() {
    let profile = parse_profile(FULL.as_bytes()).unwrap();
    assert_eq!(
        (profile.id.as_str(), profile.version.as_str()),
        ("profile.shop", "1.2.0-beta.1")
    );
    assert_eq!(profile.ttl.default_ms, 4 * 3_600_000);
    assert_eq!(profile.ttl.idle_ms, Some(900_000));
    assert_eq!(profile.resources.memory_bytes, Some(512 << 20));
    assert_eq!(profile.scope_default, SandboxScope::Agent);
    assert_eq!(profile.workspace.access, Some(MountAccess::Readwrite));
    assert_eq!(profile.workspace.git, GitChoice::History);
    assert!(profile.setup.instructions.contains("rm -rf /\n"));
    assert_eq!(
        profile.setup.secret_refs[0].hosts,
        ["api.example.org", "packages.example.org"]
    );
    let json =
        r#"{"id": "a", "version": "1.0.0", "extension": "native", "ttl": {"default": "90s"}}"#;
    let small = parse_profile(json.as_bytes()).unwrap();
    let yaml = "id: a\nversion: 1.0.0\nextension: native\nttl:\n  default: 90s\n";
    let same = parse_profile(yaml.as_bytes()).unwrap();
    assert_eq!(
        Profile {
            sha256: same.sha256.clone(),
            ..small
        },
        same
    );
    assert_eq!(same.ttl.max_ms, 4 * 3_600_000);
    assert!(same.reachability.exec && !same.reachability.preview);
}

#[test]
fn each_profile_problem_is_reported_with_its_path() {
    let text = "id: Bad Id\nversion: '1.0'\nextension: Ext!\n\
        placement: { prefer: [Host, 7], fallback: [b, b], labels: x }\n\
        route: { strategy: random, fallback: native, constraints: { max_cost_per_hour: -1, require_isolation: vm, region: EU, zone: a } }\n\
        isolation: { level: total }\nnetwork: { default: allow, egress: [7] }\n\
        workspace: { access: rw, mode: remote-canonical, git: clone }\nscope_default: world\n\
        ttl: { default: 4h, max: 1h, idle_reap: 3w }\n\
        resources: { cpu: two, memory_mb: 1, pids: many }\n\
        setup: { commands: [{ command: no.such }], secret_refs: [lower, GOOD] }\n\
        reachability: { exec: maybe }\nmetadata: { price: 3 }\n";
    let found = issues(text);
    let paths: Vec<&str> = found.iter().map(|(path, _)| path.as_str()).collect();
    for path in [
        "$.id",
        "$.version",
        "$.extension",
        "$.placement.prefer[0]",
        "$.placement.prefer[1]",
        "$.placement.fallback[1]",
        "$.placement.labels",
        "$.route.strategy",
        "$.route.fallback",
        "$.route.constraints.max_cost_per_hour",
        "$.route.constraints.require_isolation",
        "$.route.constraints.region",
        "$.route.constraints.zone",
        "$.isolation.level",
        "$.network.default",
        "$.network.egress[0]",
        "$.workspace.access",
        "$.workspace.git",
        "$.scope_default",
        "$.ttl.default",
        "$.ttl.idle_reap",
        "$.resources.cpu",
        "$.resources.memory_mb",
        "$.resources.pids",
        "$.setup.commands[0]",
        "$.setup.secret_refs[0]",
        "$.setup.secret_refs[1]",
        "$.reachability.exec",
        "$.metadata.price",
    ] {
        assert!(paths.contains(&path), "{path} is missing in {found:#?}");
    }
    let extension = found
        .iter()
        .find(|(path, _)| path == "$.extension")
        .unwrap();
    assert!(extension.1.contains("not a valid extension id"));
}

const HEAD: &str = "id: a\nversion: 1.0.0\n";

#[test]
fn profile_without_extension_gets_the_default_route_policy_and_needs_container_isolation() {
    let profile = parse_profile(HEAD.as_bytes()).unwrap();
    assert_eq!(profile.routing, RoutePolicy::default());
    assert_eq!(
        profile.routing.route.strategy,
        RouteStrategy::PreferSelfHosted
    );
    let shown = serde_json::to_value(&profile).unwrap();
    assert!(shown.get("extension").is_none());
    assert_eq!(shown["route"]["strategy"], "prefer-self-hosted");
    let request = profile.route_request();
    assert_eq!(request.needs.isolation, IsolationClass::Container);
    assert_eq!(request.needs.network, NetworkNeed::None);
}

#[test]
fn placement_and_route_of_a_profile_are_read_into_its_route_request() {
    let text = format!(
        "{HEAD}placement: {{ prefer: [sandboxer01], fallback: [core-2] }}\n\
         network: {{ egress: [api.example.org] }}\n\
         route:\n  strategy: lowest-cost\n  fallback: [ext.compose-ssh, native]\n  \
         constraints: {{ max_cost_per_hour: 250, require_isolation: microvm, region: eu }}\n"
    );
    let request = parse_profile(text.as_bytes()).unwrap().route_request();
    let policy = json!(request.policy);
    assert_eq!(
        policy,
        json!({
            "placement": {"prefer": ["sandboxer01"], "fallback": ["core-2"]},
            "route": {"strategy": "lowest-cost", "fallback": ["ext.compose-ssh", "native"],
                "constraints": {"max_cost_per_hour": 250, "require_isolation": "microvm", "region": "eu"}},
        })
    );
    assert_eq!(request.needs.network, NetworkNeed::Hosts);
    let absent = "placement: { prefer: [], fallback: null }\nroute: { constraints: { max_cost_per_hour: null } }\n";
    let profile = parse_profile(format!("{HEAD}{absent}").as_bytes()).unwrap();
    assert_eq!(profile.routing, RoutePolicy::default());
}

#[test]
fn profile_with_an_extension_may_not_list_fallback_extensions() {
    let pinned = format!("{HEAD}extension: ext.compose-ssh\n");
    let profile = parse_profile(pinned.as_bytes()).unwrap();
    let id = profile.routing.extension.unwrap();
    assert_eq!(id.as_str(), "ext.compose-ssh");
    let both = issues(&format!("{pinned}route: {{ fallback: [native] }}\n"));
    assert_eq!(both.len(), 1, "{both:?}");
    assert_eq!(both[0].0, "$.route.fallback");
    parse_profile(format!("{pinned}route: {{ strategy: explicit }}\n").as_bytes()).unwrap();
}

#[test]
fn explicit_route_without_fallback_and_a_host_in_both_placement_lists_are_refused() {
    for list in ["", ", fallback: []"] {
        let found = issues(&format!("{HEAD}route: {{ strategy: explicit{list} }}\n"));
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, "$.route.strategy");
    }
    let listed = format!("{HEAD}route: {{ strategy: explicit, fallback: [native] }}\n");
    parse_profile(listed.as_bytes()).unwrap();
    let twice = issues(&format!(
        "{HEAD}placement: {{ prefer: [a], fallback: [b, a] }}\n"
    ));
    assert_eq!(twice.len(), 1, "{twice:?}");
    assert_eq!(twice[0].0, "$.placement.fallback[1]");
}

#[test]
fn required_isolation_raises_the_level_of_native_sandboxes_and_never_lowers_it() {
    use IsolationClass::{Container, Microvm, Policy};
    use IsolationLevel::{Full, Reduced};
    for (level, required, expected, constraint) in [
        ("reduced", "null", Reduced, None),
        ("policy", "null", Reduced, None),
        ("container", "null", Full, None),
        ("reduced", "policy", Reduced, Some(Policy)),
        ("reduced", "container", Full, Some(Container)),
        ("reduced", "full", Full, Some(Container)),
        ("full", "reduced", Full, Some(Policy)),
        ("reduced", "microvm", Full, Some(Microvm)),
        ("microvm", "policy", Full, Some(Microvm)),
    ] {
        let text = format!(
            "{HEAD}isolation: {{ level: {level} }}\nroute: {{ constraints: {{ require_isolation: {required} }} }}\n"
        );
        let profile = parse_profile(text.as_bytes()).unwrap();
        assert_eq!(profile.isolation, expected, "{level} {required}");
        let constraints = &profile.routing.route.constraints;
        assert_eq!(
            constraints.require_isolation, constraint,
            "{level} {required}"
        );
        let needed = profile.route_request().needs.isolation;
        assert_eq!(needed.level(), Some(expected), "{level} {required}");
    }
}

#[test]
fn profile_with_git_setting_but_without_workspace_access_is_refused() {
    let head = "id: a\nversion: 1.0.0\nextension: native\n";
    let of = |workspace: &str| format!("{head}workspace: {{ {workspace}git: baseline }}\n");
    let found = issues(&of(""));
    assert_eq!(found[0].0, "$.workspace.git");
    assert_eq!(found.len(), 1);
    parse_profile(of("access: ro, ").as_bytes()).unwrap();
}

#[test]
fn profile_text_with_yaml_aliases_tags_repeated_keys_excess_size_or_wrong_syntax_is_refused() {
    let head = "id: a\nversion: 1.0.0\nextension: native\n";
    parse_profile(head.as_bytes()).unwrap();
    let laughs = "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n";
    let deep = format!("{head}metadata: {}{}", "[".repeat(5000), "]".repeat(5000));
    let large = format!("{head}description: {}\n", "x".repeat(MAX_PROFILE_BYTES));
    for (what, text) in [
        ("anchors", laughs.to_owned()),
        ("unknown anchor", format!("{head}metadata: *m\n")),
        (
            "tags",
            format!("{head}description: !!python/object:os.system x\n"),
        ),
        ("merge keys", format!("{head}metadata:\n  <<: {{}}\n")),
        ("twice", format!("{head}id: b\n")),
        (
            "twice",
            format!("{head}ttl: {{default: 1h, default: 2h}}\n"),
        ),
        ("one document", format!("{head}---\n{head}")),
        ("recursion limit", deep),
        ("at most", large),
        ("text", format!("{head}? [a]\n: b\n")),
        ("not YAML", format!("{head}description: \"open\n")),
        ("object", "just words".to_owned()),
        ("empty", String::new()),
        ("strict JSON", "{\"id\": \"a\",}".to_owned()),
    ] {
        let found = issues(&text);
        assert!(
            found.iter().any(|(_, message)| message.contains(what)),
            "{what}: {found:?}"
        );
    }
    let twice = issues("{\"id\": \"a\", \"id\": \"b\"}");
    assert_eq!(twice[0].0, "$.id");
}

#[test]
fn invalid_profile_durations_versions_and_ids_are_refused() {
    let longest = |time: &str| {
        let text = format!("id: a\nversion: 1.0.0\nextension: native\nttl: {{max: {time:?}}}\n");
        parse_profile(text.as_bytes()).map(|profile| profile.ttl.max_ms)
    };
    for (text, time) in [
        ("3600000ms", 3_600_000),
        ("4h", 14_400_000),
        ("1d", 86_400_000),
        ("1.5h", 5_400_000),
    ] {
        assert_eq!(longest(text).unwrap(), time);
    }
    for text in ["", "4", "h", "-1h", "+1h", "25h", "99999999999999999999h"] {
        assert!(longest(text).is_err(), "{text}");
    }
    for version in ["1.0.0", "0.1.2-rc.1+build.5"] {
        assert!(text::is_version(version));
    }
    for version in ["1.0", "1.0.0.0", "01.0.0", "1.0.0-", "v1.0.0", "1.0.x"] {
        assert!(!text::is_version(version), "{version}");
    }
    for id in ["a", "profile.compose-e2e", "x_1"] {
        assert!(text::is_id(id));
    }
    for id in ["", ".a", "a..b", "A", "a/b", &"a".repeat(65)] {
        assert!(!text::is_id(id), "{id}");
    }
}
