//! Decisions of single requests, their reasons, documents and errors.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers may panic.

mod fleet;

use fleet::{architecture, capable, extension, host, plain, region};
use serde_json::json;
use wp_codebox_contracts::{CodedError, ErrorCode};
use wp_codebox_routing::{
    Capabilities, Decision, HostIndex, HostRecord, HostState, IndexError, IsolationClass,
    NetworkControl, NetworkNeed, PriceModel, ReasonCode, RouteRequest, RouteStrategy, decide,
};

fn own(id: &str) -> HostRecord {
    HostRecord::new(host(id), extension("native"), 4)
}

fn metered(id: &str, price: Option<u64>) -> HostRecord {
    let mut record = HostRecord::new(host(id), extension("ext.daytona"), 4);
    record.price_per_hour = price;
    record
}

fn extensions() -> Vec<Capabilities> {
    vec![
        capable("native", PriceModel::SelfHosted),
        capable("ext.daytona", PriceModel::Metered),
        capable("ext.compose-ssh", PriceModel::SelfHosted),
    ]
}

fn chosen(decision: &Decision) -> Option<&str> {
    decision.chosen.as_ref().map(|choice| choice.host.as_str())
}

fn choice(request: &RouteRequest, hosts: &[HostRecord]) -> Option<String> {
    let decision = decide(request, hosts, &extensions());
    chosen(&decision).map(str::to_owned)
}

fn codes(decision: &Decision, id: &str) -> Vec<ReasonCode> {
    let id = Some(host(id));
    let about = decision.reasons.iter().filter(|reason| reason.host == id);
    about.map(|reason| reason.why.code()).collect()
}

fn by(strategy: RouteStrategy) -> RouteRequest {
    let mut request = plain();
    request.policy.route.strategy = strategy;
    request
}

#[test]
fn route_strategies_choose_hosts_by_price_model_or_cost_or_latency_or_fallback_order() {
    let mut near = metered("near", Some(9));
    near.latency_ms = Some(1);
    let mut far = own("far");
    far.latency_ms = Some(80);
    far.price_per_hour = Some(20);
    let mut cheap = metered("cheap", Some(2));
    cheap.latency_ms = Some(90);
    let hosts = [near, far, cheap];
    for (strategy, expected) in [
        (RouteStrategy::PreferSelfHosted, "far"),
        (RouteStrategy::LowestCost, "cheap"),
        (RouteStrategy::LowestLatency, "near"),
    ] {
        assert_eq!(choice(&by(strategy), &hosts).as_deref(), Some(expected));
    }
    let mut explicit = by(RouteStrategy::Explicit);
    assert_eq!(choice(&explicit, &hosts), None);
    let list = |ids: &[&str]| Some(ids.iter().map(|id| extension(id)).collect());
    explicit.policy.route.fallback = list(&["ext.compose-ssh", "ext.daytona", "native"]);
    assert_eq!(choice(&explicit, &hosts).as_deref(), Some("cheap"));
    explicit.policy.route.fallback = list(&["native", "ext.daytona"]);
    assert_eq!(choice(&explicit, &hosts).as_deref(), Some("far"));
}

#[test]
fn prefer_self_hosted_uses_only_metered_extensions_that_the_fallback_lists() {
    let mut request = by(RouteStrategy::PreferSelfHosted);
    let hosts = [metered("burst", Some(1))];
    assert_eq!(choice(&request, &hosts).as_deref(), Some("burst"));
    request.policy.route.fallback = Some(Vec::new());
    let decision = decide(&request, &hosts, &extensions());
    assert_eq!(codes(&decision, "burst"), [ReasonCode::ExtensionNotListed]);
    request.policy.route.fallback = Some(vec![extension("ext.daytona")]);
    assert_eq!(choice(&request, &hosts).as_deref(), Some("burst"));
}

#[test]
fn pinned_extension_is_the_only_one_that_is_used() {
    let hosts = [own("a"), metered("b", Some(5))];
    let mut request = plain();
    request.policy.extension = Some(extension("ext.daytona"));
    let decision = decide(&request, &hosts, &extensions());
    assert_eq!(chosen(&decision), Some("b"));
    assert_eq!(codes(&decision, "a"), [ReasonCode::ExtensionNotPinned]);
    request.policy.extension = Some(extension("native"));
    request.policy.route.strategy = RouteStrategy::Explicit;
    assert_eq!(choice(&request, &hosts).as_deref(), Some("a"));
}

#[test]
fn placement_prefer_sets_the_order_and_with_a_fallback_no_unlisted_host_is_chosen() {
    let hosts = [own("a"), own("b"), own("c"), own("d")];
    let closed = |ids: &[&str]| {
        let mut hosts = hosts.clone();
        for record in &mut hosts {
            if ids.contains(&record.id.as_str()) {
                record.state = HostState::Down;
            }
        }
        hosts
    };
    let ids = |ids: &[&str]| ids.iter().map(|id| host(id)).collect::<Vec<_>>();
    let mut request = plain();
    request.policy.placement.prefer = ids(&["c", "b"]);
    assert_eq!(choice(&request, &hosts).as_deref(), Some("c"));
    assert_eq!(choice(&request, &closed(&["c"])).as_deref(), Some("b"));
    assert_eq!(choice(&request, &closed(&["b", "c"])).as_deref(), Some("a"));
    request.policy.placement.fallback = Some(ids(&["d"]));
    assert_eq!(choice(&request, &closed(&["b", "c"])).as_deref(), Some("d"));
    let none = decide(&request, &closed(&["b", "c", "d"]), &extensions());
    assert_eq!(chosen(&none), None);
    assert_eq!(codes(&none, "a"), [ReasonCode::HostNotPlaced]);
    // Without `prefer`, `fallback` excludes no host; the hosts that it lists come last.
    request.policy.placement.prefer = Vec::new();
    request.policy.placement.fallback = Some(ids(&["a", "b"]));
    assert_eq!(choice(&request, &hosts).as_deref(), Some("c"));
    assert_eq!(choice(&request, &closed(&["c", "d"])).as_deref(), Some("a"));
}

#[test]
fn unknown_price_or_region_does_not_meet_a_constraint() {
    let mut request = plain();
    request.policy.route.constraints.max_cost_per_hour = Some(10);
    let hosts = [metered("unknown", None), metered("dear", Some(11))];
    let decision = decide(&request, &hosts, &extensions());
    assert_eq!(codes(&decision, "unknown"), [ReasonCode::CostUnknown]);
    assert_eq!(codes(&decision, "dear"), [ReasonCode::CostAboveLimit]);
    assert_eq!(
        choice(&request, &[metered("exact", Some(10))]).as_deref(),
        Some("exact")
    );
    assert_eq!(choice(&request, &[own("free")]).as_deref(), Some("free"));

    let mut request = plain();
    request.policy.route.constraints.region = Some(region("eu"));
    let mut inside = own("inside");
    inside.region = Some(region("eu-west-1"));
    let decision = decide(&request, &[own("nowhere"), inside], &extensions());
    assert_eq!(chosen(&decision), Some("inside"));
    assert_eq!(codes(&decision, "nowhere"), [ReasonCode::RegionOutside]);
}

#[test]
fn native_host_never_meets_microvm_and_one_with_policy_isolation_does_not_meet_container() {
    let mut request = plain();
    request.policy.route.constraints.require_isolation = Some(IsolationClass::Microvm);
    let mut lying = own("lying");
    lying.isolation = Some(IsolationClass::Microvm);
    let decision = decide(&request, &[own("a"), lying.clone()], &extensions());
    assert_eq!(chosen(&decision), None);
    assert_eq!(codes(&decision, "lying"), [ReasonCode::IsolationTooWeak]);
    assert!(lying.validate().is_err());
    let mut claim = Capabilities::native(architecture("x86_64"));
    assert!(claim.validate().is_ok());
    claim.isolation = IsolationClass::Microvm;
    assert!(claim.validate().is_err());
    let mut other = capable("ext.vm-packer", PriceModel::SelfHosted);
    other.isolation = IsolationClass::Microvm;
    let vm = HostRecord::new(host("vm"), extension("ext.vm-packer"), 1);
    assert_eq!(chosen(&decide(&request, &[vm], &[other])), Some("vm"));

    request.policy.route.constraints.require_isolation = Some(IsolationClass::Container);
    let mut reduced = own("reduced");
    reduced.isolation = Some(IsolationClass::Policy);
    assert_eq!(choice(&request, std::slice::from_ref(&reduced)), None);
    request.policy.route.constraints.require_isolation = None;
    assert_eq!(choice(&request, &[reduced]).as_deref(), Some("reduced"));
}

#[test]
fn extension_is_used_only_if_its_network_control_meets_the_network_need() {
    let mut open = capable("ext.daytona", PriceModel::Metered);
    open.network = NetworkControl::Open;
    let hosts = [metered("a", Some(1))];
    let decision = decide(&plain(), &hosts, &[open.clone()]);
    assert_eq!(codes(&decision, "a"), [ReasonCode::NetworkUnsupported]);
    open.network = NetworkControl::Hosts;
    let mut request = plain();
    request.needs.network = NetworkNeed::Hosts;
    assert_eq!(
        chosen(&decide(&request, &hosts, &[open.clone()])),
        Some("a")
    );
    request.needs.network = NetworkNeed::Requests;
    assert_eq!(chosen(&decide(&request, &hosts, &[open])), None);
}

#[test]
fn hosts_or_extensions_with_two_records_are_not_used() {
    let twice = [own("a"), own("a"), own("b")];
    let decision = decide(&plain(), &twice, &extensions());
    assert_eq!(chosen(&decision), Some("b"));
    let ambiguous = ReasonCode::AmbiguousRecord;
    assert_eq!(codes(&decision, "a"), [ambiguous, ambiguous]);
    let mut both = extensions();
    both.extend(extensions());
    let decision = decide(&plain(), &[own("b")], &both);
    assert_eq!(codes(&decision, "b"), [ambiguous]);
    assert_eq!(
        codes(&decide(&plain(), &[own("b")], &[]), "b"),
        [ReasonCode::ExtensionUnknown]
    );
}

#[test]
fn equal_hosts_are_chosen_by_share_of_used_capacity_and_then_by_id() {
    let mut half = own("a");
    half.used = 2;
    let mut third = own("b");
    (third.used, third.capacity) = (1, 3);
    assert_eq!(
        choice(&plain(), &[half.clone(), third]).as_deref(),
        Some("b")
    );
    let mut same = own("z");
    (same.used, same.capacity) = (500, 1000);
    let decision = decide(&plain(), &[same, half], &extensions());
    assert_eq!(chosen(&decision), Some("a"));
    let sentence = decision.reasons[1].why.to_string();
    assert_eq!(
        sentence,
        "it meets everything, but host a comes first by id"
    );
}

#[test]
fn decision_document_lists_the_chosen_host_first_and_counts_omitted_reasons() {
    let mut down = own("b");
    down.state = HostState::Down;
    let decision = decide(&plain(), &[own("a"), down, own("c")], &extensions());
    let document = decision.document(2);
    assert_eq!(
        document,
        json!({
            "schema": "wp-codebox/route-decision/v1",
            "strategy": "prefer-self-hosted",
            "chosen": {"host": "a", "extension": "native", "isolation": "container",
                "price_per_hour": 0, "latency_ms": null},
            "hosts": 3, "accepted": 2, "waiting": 1,
            "counts": [{"code": "chosen", "count": 1}, {"code": "ranked-after", "count": 1},
                {"code": "host-down", "count": 1}],
            "reasons": [
                {"code": "chosen", "host": "a", "extension": "native",
                    "sentence": "it is the first of 2 accepted hosts in the order of strategy prefer-self-hosted; 3 hosts were compared"},
                {"code": "host-down", "host": "b", "extension": "native",
                    "sentence": "it did not answer its last health check"}],
            "reasons_omitted": 1,
        })
    );
    assert!(decision.error().is_none());
}

#[test]
fn request_fails_with_no_capacity_only_if_a_full_host_would_otherwise_meet_it() {
    let mut full = own("a");
    full.used = full.capacity;
    let error = decide(&plain(), &[full.clone(), metered("b", None)], &[])
        .error()
        .unwrap();
    assert_eq!(error.code, ErrorCode::RouteUnsatisfied);
    let error = decide(&plain(), &[full.clone()], &extensions())
        .error()
        .unwrap();
    assert_eq!(error.code, ErrorCode::RouteNoCapacity);
    assert!(error.message.contains("full, draining or down"), "{error}");
    assert_eq!(error.data.unwrap()["decision"]["waiting"], 1);
    let mut pinned = plain();
    pinned.policy.extension = Some(extension("remote"));
    let error = decide(&pinned, &[full], &extensions()).error().unwrap();
    assert_eq!(error.code, ErrorCode::RouteUnsatisfied);
    assert!(
        error.message.contains("extension-not-pinned (1)"),
        "{error}"
    );
    let error = decide(&plain(), &[], &extensions()).error().unwrap();
    assert_eq!(error.code, ErrorCode::RouteUnsatisfied);
}

#[test]
fn index_refuses_sandboxes_on_full_and_unknown_hosts() {
    let mut index = HostIndex::new();
    for row in extensions() {
        index.put_extension(row).unwrap();
    }
    let id = host("a");
    let unknown = IndexError::UnknownHost { host: id.clone() };
    assert_eq!(index.occupy(&id), Err(unknown.clone()));
    assert_eq!(index.release(&id), Err(unknown));
    let mut record = own("a");
    record.capacity = 1;
    index.put_host(record).unwrap();
    assert_eq!(index.occupy(&id), Ok(()));
    assert_eq!(index.choose(&plain()), None);
    let error = index.occupy(&id).unwrap_err();
    assert_eq!(error.code(), ErrorCode::RouteNoCapacity);
    assert_eq!(error.body().code, ErrorCode::RouteNoCapacity);
    index.release(&id).unwrap();
    assert_eq!(index.choose(&plain()).unwrap().host, id);
    let mut invalid = own("b");
    invalid.capacity = 0;
    assert!(index.put_host(invalid).is_err());
    assert!(index.host(&host("b")).is_none());
}
