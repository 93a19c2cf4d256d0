//! Network rules: destinations that a guest may reach through the egress bridge.
//!
//! Rules have no wildcards. A request is allowed only if one rule alone allows its host, port,
//! method and path. The egress bridge asks this module about every request and makes no decision
//! itself.

mod address;
mod host;
mod model_paths;
mod path;
mod presets;
mod secret_scope;

pub use address::{Forbidden, check_address};
pub use host::{Authority, Host, HostError, split_port};
pub use model_paths::check_model_request;
pub use path::{Ambiguity, PathError, RequestPath};
pub use secret_scope::{SecretScope, Transport};

use presets::{METHODS, MODEL, PORT, PRESETS};
use wp_codebox_contracts::{EgressRule, NetworkRules, PolicyIssue, TlsMode};

/// Ports that a rule without ports allows.
const DEFAULT_PORTS: &[u16] = &[80, 443];
/// Maximum number of rules in a policy, expanded presets included.
const MAX_RULES: usize = 512;
/// Maximum number of entries in one list of a rule.
const MAX_ENTRIES: usize = 128;

/// Network rules of a policy in the form in which requests are checked against them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EgressRules {
    rules: Vec<Rule>,
    tls: TlsMode,
    model: ModelAccess,
}

/// Whether programs in the guest may send requests to the run's model.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ModelAccess {
    /// Requests to the model are refused.
    Closed,
    /// The policy has the preset `model`: requests are allowed.
    Open,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct Rule {
    /// Origin of the rule: list or preset, and index, e.g. `rules[2]` or `npm[0]`.
    label: String,
    host: Host,
    ports: Vec<u16>,
    /// Allowed methods; empty: every method.
    methods: Vec<String>,
    /// Allowed path prefixes; empty: every path.
    paths: Vec<String>,
}

/// The rule that allowed a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Allowed<'a> {
    /// Origin of the rule in the policy, e.g. `rules[2]` or `npm[0]`.
    pub rule: &'a str,
    /// Whether the rule restricts methods.
    pub methods: RuleScope,
    /// Whether the rule restricts paths.
    pub paths: RuleScope,
}

/// Whether a rule restricts one part of a request: its method or its path.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RuleScope {
    /// The rule allows every method or path.
    Any,
    /// The rule lists the allowed methods or paths. The bridge refuses a request with a header or
    /// parameter that makes servers use another method or path.
    Named,
}

impl RuleScope {
    const fn of(list: &[String]) -> Self {
        if list.is_empty() {
            Self::Any
        } else {
            Self::Named
        }
    }
}

/// Why no rule allows a request. If several rules were compared, the reason of the rule that
/// matched most parts of the request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refusal {
    /// No rule names the host.
    Host,
    /// A rule names the host, but not the port.
    Port,
    /// A rule names host and port, but not the method.
    Method,
    /// A rule names host, port and method, but not the path.
    Path,
    /// A rule restricts paths, and the path of the request is ambiguous.
    PathAmbiguous(Ambiguity),
    /// Rules name host and port, but each restricts methods or paths, which the bridge cannot see
    /// inside a TLS tunnel.
    TunnelHidesRequest,
}

/// The parts of a request that rules restrict.
#[derive(Debug, Clone, Copy)]
pub struct EgressRequest<'a> {
    /// Host of the request.
    pub host: &'a Host,
    /// Port of the request.
    pub port: u16,
    /// HTTP method of the request, upper case.
    pub method: &'a str,
    /// Path of the request.
    pub path: &'a RequestPath,
}

impl EgressRules {
    /// Compiles the rules and presets of a policy for checks of requests. Fails with all issues;
    /// their `field` begins with `network`.
    pub fn compile(rules: &NetworkRules) -> Result<Self, Vec<PolicyIssue>> {
        let mut issues = Issues(Vec::new());
        let mut compiled = Vec::new();
        if rules.allow_hosts.is_empty() && rules.presets.is_empty() && rules.rules.is_empty() {
            issues.add(
                "network",
                "allows no host; fill allowHosts, presets or rules, or set \"deny\"",
            );
        }
        for (index, text) in rules.allow_hosts.iter().enumerate() {
            let label = format!("allowHosts[{index}]");
            match Authority::parse(text) {
                Ok(authority) => compiled.push(Rule {
                    ports: authority
                        .port
                        .map_or_else(|| DEFAULT_PORTS.to_vec(), |port| vec![port]),
                    host: authority.host,
                    methods: Vec::new(),
                    paths: Vec::new(),
                    label,
                }),
                Err(why) => issues.add(&format!("network.{label}"), &format!("{text:?}: {why}")),
            }
        }
        let mut model = ModelAccess::Closed;
        for (index, name) in rules.presets.iter().enumerate() {
            if name == MODEL {
                model = ModelAccess::Open;
                continue;
            }
            match preset(name) {
                Ok(unfolded) => compiled.extend(unfolded),
                Err(message) => issues.add(&format!("network.presets[{index}]"), &message),
            }
        }
        for (index, rule) in rules.rules.iter().enumerate() {
            compiled.extend(compile_rule(rule, format!("rules[{index}]"), &mut issues));
        }
        if compiled.len() > MAX_RULES {
            issues.add(
                "network",
                &format!("may have at most {MAX_RULES} rules, those of presets included"),
            );
        }
        if issues.0.is_empty() {
            Ok(Self {
                rules: compiled,
                tls: rules.tls,
                model,
            })
        } else {
            Err(issues.0)
        }
    }

    /// Returns rules that allow nothing.
    #[must_use]
    pub const fn nothing() -> Self {
        Self {
            rules: Vec::new(),
            tls: TlsMode::Tunnel,
            model: ModelAccess::Closed,
        }
    }

    /// Returns these rules with TLS tunnelled and without access to the model, for traffic that the
    /// bridge cannot read. The result never allows more than `self`.
    #[must_use]
    pub fn tunnelled(self) -> Self {
        Self {
            rules: self.rules,
            tls: TlsMode::Tunnel,
            model: ModelAccess::Closed,
        }
    }

    /// Returns only those rules whose host `keep` accepts.
    #[must_use]
    pub fn narrowed(mut self, keep: impl Fn(&Host) -> bool) -> Self {
        self.rules.retain(|rule| keep(&rule.host));
        self
    }

    /// Returns how the bridge handles TLS of clients that use it as a proxy.
    #[must_use]
    pub const fn tls(&self) -> TlsMode {
        self.tls
    }

    /// Returns whether programs in the guest may send requests to the run's model.
    #[must_use]
    pub const fn model(&self) -> ModelAccess {
        self.model
    }

    /// Checks that a rule names this host, and also this port if one is given.
    pub fn names(&self, authority: &Authority) -> Result<(), Refusal> {
        let mut refusal = Refusal::Host;
        for rule in self.rules.iter().filter(|r| r.host == authority.host) {
            refusal = Refusal::Port;
            if authority.port.is_none_or(|port| rule.ports.contains(&port)) {
                return Ok(());
            }
        }
        Err(refusal)
    }

    /// Checks that a TLS tunnel to this host and port is allowed.
    pub fn tunnel(&self, host: &Host, port: u16) -> Result<Allowed<'_>, Refusal> {
        let mut refusal = Refusal::Host;
        for rule in self.rules.iter().filter(|r| r.host == *host) {
            if !rule.ports.contains(&port) {
                refusal = deeper(refusal, Refusal::Port);
            } else if !rule.methods.is_empty() || !rule.paths.is_empty() {
                refusal = deeper(refusal, Refusal::TunnelHidesRequest);
            } else {
                return Ok(rule.allowed());
            }
        }
        Err(refusal)
    }

    /// Checks a request. If several rules allow it, returns the one with the fewest restrictions.
    pub fn request(&self, request: EgressRequest<'_>) -> Result<Allowed<'_>, Refusal> {
        let mut refusal = Refusal::Host;
        let mut answer: Option<&Rule> = None;
        for rule in self.rules.iter().filter(|r| r.host == *request.host) {
            match rule.check(request) {
                Ok(()) if answer.is_none_or(|known| rule.names() < known.names()) => {
                    answer = Some(rule);
                }
                Ok(()) => {}
                Err(why) => refusal = deeper(refusal, why),
            }
        }
        answer.map(Rule::allowed).ok_or(refusal)
    }
}

impl Rule {
    fn allowed(&self) -> Allowed<'_> {
        Allowed {
            rule: &self.label,
            methods: RuleScope::of(&self.methods),
            paths: RuleScope::of(&self.paths),
        }
    }

    /// Returns how many restrictions the rule has: one for methods, one for paths.
    fn names(&self) -> usize {
        usize::from(!self.methods.is_empty()) + usize::from(!self.paths.is_empty())
    }

    fn check(&self, request: EgressRequest<'_>) -> Result<(), Refusal> {
        if !self.ports.contains(&request.port) {
            return Err(Refusal::Port);
        }
        if !self.methods.is_empty() && !self.methods.iter().any(|m| m == request.method) {
            return Err(Refusal::Method);
        }
        if self.paths.is_empty() {
            return Ok(());
        }
        let path = request.path.comparable().map_err(Refusal::PathAmbiguous)?;
        if self.paths.iter().any(|prefix| path::covers(prefix, path)) {
            Ok(())
        } else {
            Err(Refusal::Path)
        }
    }
}

/// Returns the refusal whose rule matched more parts of the request.
fn deeper(a: Refusal, b: Refusal) -> Refusal {
    const fn depth(refusal: Refusal) -> u8 {
        match refusal {
            Refusal::Host => 0,
            Refusal::Port => 1,
            Refusal::TunnelHidesRequest | Refusal::Method => 2,
            Refusal::PathAmbiguous(_) => 3,
            Refusal::Path => 4,
        }
    }
    if depth(b) > depth(a) { b } else { a }
}

struct Issues(Vec<PolicyIssue>);

impl Issues {
    fn add(&mut self, field: &str, message: &str) {
        self.0.push(PolicyIssue {
            code: "invalid-network".to_owned(),
            field: field.to_owned(),
            message: message.to_owned(),
        });
    }
}

fn compile_rule(rule: &EgressRule, label: String, issues: &mut Issues) -> Option<Rule> {
    let before = issues.0.len();
    let field = format!("network.{label}");
    let host = match Host::parse(&rule.host) {
        Ok(host) => Some(host),
        Err(why) => {
            issues.add(&format!("{field}.host"), &format!("{:?}: {why}", rule.host));
            None
        }
    };
    if rule.ports.contains(&0) {
        issues.add(
            &format!("{field}.ports"),
            "every port must be from 1 to 65535",
        );
    }
    for method in &rule.methods {
        if !is_method(method) || matches!(method.as_str(), "CONNECT" | "TRACE") {
            issues.add(
                &format!("{field}.methods"),
                &format!("{method:?} must be an HTTP method in capitals, not CONNECT or TRACE"),
            );
        }
    }
    let mut paths = Vec::with_capacity(rule.paths.len());
    for text in &rule.paths {
        match rule_path(text) {
            Ok(path) => paths.push(path),
            Err(message) => issues.add(&format!("{field}.paths"), &format!("{text:?}: {message}")),
        }
    }
    if [rule.ports.len(), rule.methods.len(), rule.paths.len()]
        .iter()
        .any(|&n| n > MAX_ENTRIES)
    {
        issues.add(
            &field,
            &format!("the lists \"ports\", \"methods\" and \"paths\" of a rule may have at most {MAX_ENTRIES} entries each"),
        );
    }
    let host = host.filter(|_| issues.0.len() == before)?;
    Some(Rule {
        label,
        host,
        ports: if rule.ports.is_empty() {
            DEFAULT_PORTS.to_vec()
        } else {
            rule.ports.clone()
        },
        methods: rule.methods.clone(),
        paths,
    })
}

/// Returns whether the bridge accepts an HTTP method: up to 20 upper-case letters and `-`.
#[must_use]
pub fn is_method(text: &str) -> bool {
    (1..=20).contains(&text.len()) && text.bytes().all(|b| b.is_ascii_uppercase() || b == b'-')
}

fn rule_path(text: &str) -> Result<String, String> {
    let path = RequestPath::parse(text).map_err(|why| why.to_string())?;
    if path.query().is_some() {
        return Err("a rule's path must not have a query".to_owned());
    }
    match path.comparable() {
        Ok(form) => Ok(form.to_owned()),
        Err(why) => Err(format!(
            "{why}; servers interpret such a path differently, so write the rule without it"
        )),
    }
}

/// Returns the names of the presets that allow hosts, which are all except `model`.
pub fn host_presets() -> impl Iterator<Item = &'static str> {
    PRESETS.iter().map(|(name, _)| *name)
}

fn preset(name: &str) -> Result<Vec<Rule>, String> {
    let Some((_, rules)) = PRESETS.iter().find(|(known, _)| *known == name) else {
        let known: Vec<&str> = host_presets().chain([MODEL]).collect();
        return Err(format!(
            "{name:?} is not a network preset; available: {}",
            known.join(", ")
        ));
    };
    let mut issues = Issues(Vec::new());
    let unfolded = rules
        .iter()
        .enumerate()
        .filter_map(|(index, row)| {
            let rule = EgressRule {
                host: row.host.to_owned(),
                ports: vec![PORT],
                methods: METHODS.iter().map(|&m| m.to_owned()).collect(),
                paths: row.paths.iter().map(|&p| p.to_owned()).collect(),
            };
            compile_rule(&rule, format!("{name}[{index}]"), &mut issues)
        })
        .collect();
    // A preset that does not compile is a defect of this program: the policy is refused.
    match issues.0.first() {
        Some(issue) => Err(format!("the preset is broken: {}", issue.message)),
        None => Ok(unfolded),
    }
}

#[cfg(test)]
mod tests;
