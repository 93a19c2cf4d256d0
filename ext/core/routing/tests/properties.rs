//! Properties of a decision over many random worlds. The expectations are written out here and do
//! not use the ranks of the crate.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic)] // Test helpers may panic.

mod fleet;

use fleet::{Random, World, extension_ids, host, random_capabilities, random_host, random_world};
use std::collections::{BTreeMap, BTreeSet};
use wp_codebox_routing::{
    Capabilities, Decision, HostId, HostIndex, HostRecord, HostState, PriceModel, ReasonCode,
    RouteStrategy, decide,
};

/// Number of random worlds per property.
const WORLDS: u64 = 8_000;

fn decided(world: &World) -> Decision {
    decide(&world.request, &world.hosts, &world.extensions)
}

impl World {
    fn host(&self, id: &HostId) -> &HostRecord {
        self.hosts.iter().find(|host| host.id == *id).unwrap()
    }

    fn extension_of(&self, host: &HostRecord) -> &Capabilities {
        let mut all = self.extensions.iter();
        all.find(|row| row.extension == host.extension).unwrap()
    }

    fn price(&self, host: &HostRecord) -> Option<u64> {
        match (host.price_per_hour, self.extension_of(host).price_model) {
            (Some(price), _) => Some(price),
            (None, PriceModel::SelfHosted) => Some(0),
            (None, PriceModel::Metered) => None,
        }
    }

    /// Returns a sort key of a host: its position in the profile's lists, then the values that the
    /// strategy compares, without tie breaks.
    fn order(&self, host: &HostRecord) -> [u128; 5] {
        let policy = &self.request.policy;
        let last = u128::MAX;
        let index = |at: Option<usize>| at.map(|at| at as u128);
        let (prefer, fallback) = (&policy.placement.prefer, &policy.placement.fallback);
        let preferred = prefer.iter().position(|id| *id == host.id);
        let listed = fallback.iter().flatten().position(|id| *id == host.id);
        let placement = match (index(preferred), index(listed)) {
            (Some(index), _) => index,
            (None, None) => 1000,
            (None, Some(index)) => 2000 + index,
        };
        let list = policy.route.fallback.iter().flatten();
        let listed = list.clone().position(|id| *id == host.extension);
        let listed = index(listed.filter(|_| policy.extension.is_none()));
        let extension = listed.map_or(0, |index| 1 + index);
        let price = self.price(host).map_or(last, u128::from);
        let latency = host.latency_ms.map_or(last, u128::from);
        let metered = self.extension_of(host).price_model == PriceModel::Metered;
        let [first, second, third] = match policy.route.strategy {
            RouteStrategy::PreferSelfHosted => [u128::from(metered), price, latency],
            RouteStrategy::LowestCost | RouteStrategy::Explicit => [price, latency, 0],
            RouteStrategy::LowestLatency => [latency, price, 0],
        };
        [placement, extension, first, second, third]
    }
}

/// Returns the hosts that the decision accepted: the chosen one and those ranked after it.
fn accepted(decision: &Decision) -> BTreeSet<HostId> {
    let rows = decision.reasons.iter().filter(|reason| {
        let code = reason.why.code();
        code == ReasonCode::RankedAfter || code == ReasonCode::Chosen
    });
    rows.filter_map(|reason| reason.host.clone()).collect()
}

#[test]
fn chosen_host_never_falls_below_a_constraint_or_need() {
    let mut chosen = 0;
    for seed in 0..WORLDS {
        let (world, _) = random_world(seed);
        let Some(choice) = decided(&world).chosen else {
            continue;
        };
        chosen += 1;
        let host = world.host(&choice.host);
        let of = world.extension_of(host);
        let (policy, needs) = (&world.request.policy, &world.request.needs);
        let constraints = &policy.route.constraints;
        let given = host
            .isolation
            .map_or(of.isolation, |own| own.min(of.isolation));
        assert_eq!(choice.isolation, given, "{seed}");
        assert!(given >= needs.isolation, "{seed}");
        assert!(
            constraints
                .require_isolation
                .is_none_or(|least| given >= least),
            "{seed}"
        );
        if let Some(limit) = constraints.max_cost_per_hour {
            assert!(world.price(host).unwrap() <= limit, "{seed}");
        }
        if let Some(region) = &constraints.region {
            let inside = match &host.region {
                Some(own) => own.is_within(region),
                None => !of.regions.is_empty() && of.regions.iter().all(|r| r.is_within(region)),
            };
            assert!(inside, "{seed}");
        }
        assert!(of.network.meets(needs.network), "{seed}");
        assert!(
            host.network.is_none_or(|own| own.meets(needs.network)),
            "{seed}"
        );
        if let Some(needed) = &needs.architecture {
            let all = host
                .architecture
                .clone()
                .map_or(of.architectures.clone(), |one| vec![one]);
            assert!(all.iter().all(|one| one == needed), "{seed}");
        }
        assert!(
            host.gpus.unwrap_or(of.gpus).min(of.gpus) >= needs.gpus,
            "{seed}"
        );
        assert!(
            of.persistence >= needs.persistence && of.bundle >= needs.bundle,
            "{seed}"
        );
        assert!(of.snapshot || !needs.snapshot, "{seed}");
        assert!(of.restore || !needs.restore, "{seed}");
        assert!(
            needs.host.as_ref().is_none_or(|only| *only == host.id),
            "{seed}"
        );
        assert!(
            policy
                .extension
                .as_ref()
                .is_none_or(|id| *id == host.extension),
            "{seed}"
        );
        let listed = |list: &Option<Vec<_>>| {
            let mut list = list.iter().flatten();
            list.any(|id| *id == host.extension)
        };
        let metered = of.price_model == PriceModel::Metered;
        let closed = match policy.route.strategy {
            RouteStrategy::Explicit => true,
            RouteStrategy::PreferSelfHosted => metered && policy.route.fallback.is_some(),
            RouteStrategy::LowestCost | RouteStrategy::LowestLatency => false,
        };
        if closed && policy.extension.is_none() {
            assert!(listed(&policy.route.fallback), "{seed}");
        }
        if let (false, Some(fallback)) = (
            policy.placement.prefer.is_empty(),
            &policy.placement.fallback,
        ) {
            let mut placed = policy.placement.prefer.iter().chain(fallback);
            assert!(placed.any(|id| *id == host.id), "{seed}");
        }
    }
    assert!(chosen > WORLDS / 10, "only {chosen} worlds have a choice");
}

#[test]
fn drained_full_or_down_host_is_never_chosen() {
    let mut seen = BTreeMap::new();
    for seed in 0..WORLDS {
        let (mut world, mut random) = random_world(seed);
        if let Some(choice) = decided(&world).chosen {
            let host = world
                .hosts
                .iter_mut()
                .find(|host| host.id == choice.host)
                .unwrap();
            assert!(
                host.state == HostState::Ready && host.used < host.capacity,
                "{seed}"
            );
            // The host that would be chosen is closed in one of three ways.
            let code = random.of(&[
                ReasonCode::HostDraining,
                ReasonCode::HostDown,
                ReasonCode::HostFull,
            ]);
            match code {
                ReasonCode::HostDraining => host.state = HostState::Draining,
                ReasonCode::HostDown => host.state = HostState::Down,
                _ => host.used = host.capacity,
            }
            let after = decided(&world);
            assert!(
                after
                    .chosen
                    .as_ref()
                    .is_none_or(|other| other.host != choice.host),
                "{seed}"
            );
            let against = after
                .reasons
                .iter()
                .filter(|r| r.host.as_ref() == Some(&choice.host));
            let codes: Vec<_> = against.map(|reason| reason.why.code()).collect();
            assert_eq!(codes, [code], "{seed}");
            assert!(after.waiting > 0, "{seed}");
            *seen.entry(code).or_insert(0) += 1;
        }
    }
    assert!(
        seen.len() == 3 && seen.values().all(|count| *count > 100),
        "{seen:?}"
    );
}

#[test]
fn decision_does_not_depend_on_the_order_of_hosts_and_extensions() {
    for seed in 0..WORLDS {
        let (mut world, mut random) = random_world(seed);
        // Now and then two records have one id.
        if random.one_in(1, 8) && !world.hosts.is_empty() {
            let mut twin = random_host(&mut random, world.hosts[0].id.clone());
            twin.extension = random.of(&extension_ids());
            world.hosts.push(twin);
        }
        if random.one_in(1, 8) {
            let id = random.of(&extension_ids());
            world.extensions.push(random_capabilities(&mut random, id));
        }
        let first = decided(&world);
        assert_eq!(first, decided(&world), "{seed}");
        random.shuffle(&mut world.hosts);
        random.shuffle(&mut world.extensions);
        assert_eq!(first, decided(&world), "{seed}");
    }
}

#[test]
fn added_host_never_worsens_the_choice_in_the_order_of_the_strategy() {
    let mut replaced = 0;
    for seed in 0..WORLDS {
        let (mut world, mut random) = random_world(seed);
        let before = decided(&world);
        let id = host(random.of(&["a-new", "z-new", "unregistered"]));
        world.hosts.push(random_host(&mut random, id.clone()));
        let after = decided(&world);
        let Some(first) = before.chosen else {
            assert!(
                after.chosen.is_none_or(|choice| choice.host == id),
                "{seed}"
            );
            continue;
        };
        let second = after.chosen.unwrap();
        assert!(second.host == first.host || second.host == id, "{seed}");
        let order = |id| world.order(world.host(id));
        assert!(order(&second.host) <= order(&first.host), "{seed}");
        replaced += usize::from(second.host == id);
    }
    assert!(replaced > 100, "{replaced}");
}

#[test]
fn every_host_has_a_reason_and_only_the_chosen_host_has_the_reason_chosen() {
    let mut codes = BTreeSet::new();
    for seed in 0..WORLDS {
        let (world, _) = random_world(seed);
        let decision = decided(&world);
        let first = &decision.reasons[0];
        match &decision.chosen {
            Some(choice) => {
                assert_eq!(first.why.code(), ReasonCode::Chosen, "{seed}");
                assert_eq!(first.host.as_ref(), Some(&choice.host), "{seed}");
            }
            None if world.hosts.is_empty() => {
                assert_eq!(first.why.code(), ReasonCode::NoHosts, "{seed}");
            }
            None => assert_eq!(first.why.code(), ReasonCode::NoneAccepted, "{seed}"),
        }
        assert_eq!(
            decision.chosen.is_none(),
            decision.error().is_some(),
            "{seed}"
        );
        for host in &world.hosts {
            let about = decision
                .reasons
                .iter()
                .filter(|r| r.host.as_ref() == Some(&host.id));
            let about: Vec<_> = about.map(|reason| reason.why.code()).collect();
            let chosen = decision.chosen.as_ref().is_some_and(|c| c.host == host.id);
            assert!(!about.is_empty(), "{seed}: {} has no reason", host.id);
            assert_eq!(about.contains(&ReasonCode::Chosen), chosen, "{seed}");
            assert!(!chosen || about.len() == 1, "{seed}: {about:?}");
            codes.extend(about);
        }
        for reason in &decision.reasons {
            let sentence = reason.why.to_string();
            assert!(
                sentence.split(' ').count() >= 4 && !sentence.ends_with('.'),
                "{sentence}"
            );
        }
        assert_eq!(decision.accepted, accepted(&decision).len(), "{seed}");
    }
    // The first two codes are not about a single host; another test has two records of one id.
    let rest = [
        ReasonCode::NoHosts,
        ReasonCode::NoneAccepted,
        ReasonCode::AmbiguousRecord,
    ];
    let missing = ReasonCode::ALL.iter().filter(|code| !codes.contains(code));
    let missing: Vec<_> = missing.filter(|code| !rest.contains(code)).collect();
    assert!(missing.is_empty(), "no world has {missing:?}");
}

#[test]
fn choice_is_the_first_accepted_host_by_lists_then_strategy_then_load_then_id() {
    let mut by_list = 0;
    for seed in 0..WORLDS {
        let (world, _) = random_world(seed);
        let decision = decided(&world);
        let Some(choice) = &decision.chosen else {
            continue;
        };
        let chosen = world.host(&choice.host);
        let accepted = accepted(&decision);
        let others = accepted.iter().filter(|id| **id != choice.host);
        for other in others.map(|id| world.host(id)) {
            let (first, second) = (world.order(chosen), world.order(other));
            assert!(first <= second, "{seed}: {} {}", chosen.id, other.id);
            by_list += usize::from(first[..2] != second[..2]);
            if first == second {
                // Exact: the factors have at most 32 bits.
                let one = u64::from(chosen.used) * u64::from(other.capacity);
                let two = u64::from(other.used) * u64::from(chosen.capacity);
                assert!((one, &chosen.id) < (two, &other.id), "{seed}");
            }
        }
    }
    assert!(by_list > 500, "{by_list}");
}

/// Returns a host that often has the capabilities of another one, so that groups have members.
fn similar_host(random: &mut Random, hosts: &[HostRecord], id: HostId) -> HostRecord {
    if hosts.is_empty() || random.one_in(1, 3) {
        return random_host(random, id);
    }
    let mut record = random.of(hosts);
    record.id = id;
    record.latency_ms = random.maybe(&[0, 5, 90]);
    record.used = random.of(&[0, 1]);
    record.state = HostState::Ready;
    record
}

/// Changes a random part of an index and of the lists that mirror it.
fn change(random: &mut Random, world: &mut World, index: &mut HostIndex) {
    let ids: Vec<HostId> = (0..12).map(|number| host(&format!("h{number}"))).collect();
    let id = random.of(&ids);
    let position = world.hosts.iter().position(|host| host.id == id);
    let mirrored = position.map(|at| &mut world.hosts[at]);
    match (random.below(7), mirrored) {
        (0, _) => {
            let record = similar_host(random, &world.hosts, id);
            index.put_host(record.clone()).unwrap();
            world.hosts.retain(|host| host.id != record.id);
            world.hosts.push(record);
        }
        (1, Some(_)) => {
            world.hosts.retain(|host| host.id != id);
            assert!(index.remove_host(&id).is_some());
        }
        (2, Some(host)) => {
            let open = host.state == HostState::Ready && host.used < host.capacity;
            assert_eq!(index.occupy(&id).is_ok(), open);
            host.used += u32::from(open);
        }
        (3, Some(host)) => {
            index.release(&id).unwrap();
            host.used = host.used.saturating_sub(1);
        }
        (4, Some(host)) => {
            host.state = random.of(HostState::ALL);
            index.set_state(&id, host.state).unwrap();
        }
        (5, Some(host)) => {
            host.latency_ms = random.maybe(&[0, 5, 90]);
            index.set_latency(&id, host.latency_ms).unwrap();
        }
        (6, Some(_)) => {
            let id = random.of(&extension_ids());
            let row = random_capabilities(random, id.clone());
            index.put_extension(row.clone()).unwrap();
            world.extensions.retain(|other| other.extension != id);
            world.extensions.push(row);
        }
        (_, None) => {
            assert!(index.occupy(&id).is_err() && index.remove_host(&id).is_none());
        }
        (other, Some(_)) => panic!("no change {other}"),
    }
}

#[test]
fn index_decides_like_the_decide_function_after_random_changes() {
    let mut chosen = 0;
    for seed in 0..WORLDS / 20 {
        let (mut world, mut random) = random_world(seed);
        let mut index = HostIndex::new();
        for row in &world.extensions {
            index.put_extension(row.clone()).unwrap();
        }
        for row in &world.hosts {
            index.put_host(row.clone()).unwrap();
        }
        for step in 0..40 {
            change(&mut random, &mut world, &mut index);
            let ids: Vec<HostId> = world.hosts.iter().map(|host| host.id.clone()).collect();
            world.request = fleet::random_request(&mut random, &ids);
            let decision = decided(&world);
            assert_eq!(
                index.choose(&world.request),
                decision.chosen,
                "{seed} {step}"
            );
            assert_eq!(index.decide(&world.request), decision, "{seed} {step}");
            chosen += usize::from(decision.chosen.is_some());
        }
    }
    assert!(chosen > 1000, "{chosen}");
}
