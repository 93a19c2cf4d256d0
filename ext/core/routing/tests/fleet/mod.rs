//! Random requests, hosts and extensions from a seed.
#![allow(dead_code)] // Each test file uses a part.

use wp_codebox_routing::{
    ArchitectureName, BundleTrust, Capabilities, ExtensionId, HostId, HostRecord, HostState,
    IsolationClass, NetworkControl, NetworkNeed, Persistence, Placement, PriceModel, RegionName,
    Route, RouteConstraints, RoutePolicy, RouteRequest, RouteStrategy, SandboxNeeds,
};

/// SplitMix64: a small, seedable generator with equal results on every platform.
pub struct Random(u64);

impl Random {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// Returns a number below `bound`.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % u64::try_from(bound).unwrap()).unwrap()
    }

    pub fn of<T: Clone>(&mut self, items: &[T]) -> T {
        items[self.below(items.len())].clone()
    }

    /// Returns true in `part` of `whole` cases.
    pub fn one_in(&mut self, part: usize, whole: usize) -> bool {
        self.below(whole) < part
    }

    pub fn maybe<T: Clone>(&mut self, items: &[T]) -> Option<T> {
        self.one_in(1, 2).then(|| self.of(items))
    }

    pub fn shuffle<T>(&mut self, items: &mut [T]) {
        for index in (1..items.len()).rev() {
            items.swap(index, self.below(index + 1));
        }
    }

    /// Returns some of the items in random order.
    pub fn some<T: Clone>(&mut self, items: &[T]) -> Vec<T> {
        let mut all = items.to_vec();
        self.shuffle(&mut all);
        all.truncate(self.below(items.len() + 1));
        all
    }
}

pub fn extension(text: &str) -> ExtensionId {
    ExtensionId::new(text).unwrap()
}

pub fn host(text: &str) -> HostId {
    HostId::new(text).unwrap()
}

pub fn region(text: &str) -> RegionName {
    RegionName::new(text).unwrap()
}

pub fn architecture(text: &str) -> ArchitectureName {
    ArchitectureName::new(text).unwrap()
}

pub fn extension_ids() -> Vec<ExtensionId> {
    [
        "native",
        "remote",
        "ext.compose-ssh",
        "ext.daytona",
        "ext.e2b",
    ]
    .map(extension)
    .to_vec()
}

pub fn regions() -> Vec<RegionName> {
    ["eu", "eu-west-1", "eu-central-1", "us", "us-east-1"]
        .map(region)
        .to_vec()
}

pub fn architectures() -> Vec<ArchitectureName> {
    ["x86_64", "aarch64"].map(architecture).to_vec()
}

/// Returns an extension that meets most needs.
pub fn capable(id: &str, price_model: PriceModel) -> Capabilities {
    let mut all = Capabilities::native(architecture("x86_64"));
    all.extension = extension(id);
    all.price_model = price_model;
    all
}

/// Returns a request with the default policy and the weakest needs.
pub fn plain() -> RouteRequest {
    RouteRequest {
        policy: RoutePolicy::default(),
        needs: SandboxNeeds::new(IsolationClass::Policy),
    }
}

pub fn random_capabilities(random: &mut Random, id: ExtensionId) -> Capabilities {
    let snapshot = random.one_in(2, 3);
    let native = id == ExtensionId::native();
    let isolation = random.of(IsolationClass::ALL);
    let mut regions = random.some(&regions());
    regions.truncate(2);
    let one = random.of(&architectures());
    let capabilities = Capabilities {
        extension: id,
        isolation: match isolation {
            IsolationClass::Microvm if native => IsolationClass::Container,
            other => other,
        },
        persistence: if snapshot {
            random.of(&[Persistence::HostLocal, Persistence::Portable])
        } else {
            random.of(Persistence::ALL)
        },
        network: random.of(&[
            NetworkControl::None,
            NetworkControl::Hosts,
            NetworkControl::Requests,
            NetworkControl::Requests,
            NetworkControl::Requests,
            NetworkControl::Open,
        ]),
        architectures: random.of(&[vec![one], architectures()]),
        gpus: random.of(&[0, 0, 1, 4]),
        regions,
        price_model: random.of(PriceModel::ALL),
        bundle: random.of(BundleTrust::ALL),
        snapshot,
        restore: snapshot && random.one_in(1, 2),
        ..Capabilities::native(architecture("x86_64"))
    };
    capabilities.validate().unwrap();
    capabilities
}

pub fn random_host(random: &mut Random, id: HostId) -> HostRecord {
    let capacity = random.of(&[1, 2, 4, 1000]);
    let extension = random.of(&extension_ids());
    let isolation = random.maybe(&[IsolationClass::Policy, IsolationClass::Container]);
    let mut record = HostRecord::new(id, extension, capacity);
    record.region = random.maybe(&regions());
    record.architecture = random.maybe(&architectures());
    record.isolation = isolation.filter(|_| random.one_in(1, 3));
    record.network = random
        .maybe(NetworkControl::ALL)
        .filter(|_| random.one_in(1, 4));
    record.gpus = random.maybe(&[0, 1, 8]);
    record.used = random.of(&[0, 0, 1, capacity / 2, capacity]);
    record.state = random.of(&[
        HostState::Ready,
        HostState::Ready,
        HostState::Ready,
        HostState::Draining,
        HostState::Down,
    ]);
    record.latency_ms = random.maybe(&[0, 5, 5, 40, 200]);
    record.price_per_hour = random.maybe(&[0, 10, 10, 250, u64::MAX]);
    record.validate().unwrap();
    record
}

/// Returns a random request whose policy and needs may name these hosts.
pub fn random_request(random: &mut Random, hosts: &[HostId]) -> RouteRequest {
    let mut named = random.some(hosts);
    let fallback = named.split_off(random.below(named.len() + 1));
    let pinned = random
        .maybe(&extension_ids())
        .filter(|_| random.one_in(1, 3));
    let lists = pinned.is_none() && random.one_in(1, 2);
    let strategy = random.of(RouteStrategy::ALL);
    let mut request = RouteRequest {
        policy: RoutePolicy {
            extension: pinned,
            placement: Placement {
                prefer: if random.one_in(1, 3) {
                    named
                } else {
                    Vec::new()
                },
                fallback: random.one_in(1, 3).then_some(fallback),
            },
            route: Route {
                strategy,
                fallback: lists.then(|| random.some(&extension_ids())),
                constraints: RouteConstraints::default(),
            },
        },
        needs: SandboxNeeds::new(random.of(&[
            IsolationClass::Policy,
            IsolationClass::Policy,
            IsolationClass::Container,
        ])),
    };
    let constraints = &mut request.policy.route.constraints;
    let rarely = |random: &mut Random| random.one_in(1, 6);
    if rarely(random) {
        constraints.max_cost_per_hour = Some(random.of(&[0, 10, 100]));
    }
    if rarely(random) {
        constraints.require_isolation = Some(random.of(IsolationClass::ALL));
    }
    if rarely(random) {
        constraints.region = Some(random.of(&regions()));
    }
    let needs = &mut request.needs;
    if rarely(random) {
        needs.network = random.of(NetworkNeed::ALL);
    }
    if random.one_in(1, 12) {
        needs.architecture = Some(random.of(&architectures()));
    }
    if random.one_in(1, 20) {
        needs.gpus = random.of(&[1, 2]);
    }
    if random.one_in(1, 20) {
        needs.persistence = random.of(Persistence::ALL);
    }
    needs.snapshot = random.one_in(1, 20);
    needs.restore = random.one_in(1, 20);
    if random.one_in(1, 20) {
        needs.bundle = random.of(BundleTrust::ALL);
    }
    if random.one_in(1, 30) && !hosts.is_empty() {
        needs.host = Some(random.of(hosts));
    }
    request
}

/// A request with the hosts and extensions that it chooses from.
#[derive(Debug, Clone)]
pub struct World {
    pub request: RouteRequest,
    pub hosts: Vec<HostRecord>,
    pub extensions: Vec<Capabilities>,
}

pub fn random_world(seed: u64) -> (World, Random) {
    let mut random = Random::new(seed);
    let count = random.below(9);
    let mut ids: Vec<HostId> = (0..count).map(|index| host(&format!("h{index}"))).collect();
    random.shuffle(&mut ids);
    let hosts = ids.iter().map(|id| random_host(&mut random, id.clone()));
    let hosts: Vec<HostRecord> = hosts.collect();
    // A missing extension makes its hosts unusable.
    let mut known = extension_ids();
    if random.one_in(1, 3) {
        known.remove(random.below(known.len()));
    }
    let extensions = known
        .into_iter()
        .map(|id| random_capabilities(&mut random, id))
        .collect();
    ids.push(host("unregistered"));
    let request = random_request(&mut random, &ids);
    let world = World {
        request,
        hosts,
        extensions,
    };
    (world, random)
}
