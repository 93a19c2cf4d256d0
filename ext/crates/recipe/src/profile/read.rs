//! From values to a profile; every problem is kept.

use super::text::{is_id, is_version};
use super::{PROFILE_SCHEMA, Profile, ProfileIssue, Ttl, Workspace, WorkspaceMode};
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    EgressRule, GitChoice, GuestPath, IsolationLevel, LimitsRequest, MountAccess, NetworkPolicy,
    NetworkPosture, NetworkRules, SandboxScope, Sha256Hex,
};
use wp_codebox_policy::EgressRules;

const HOUR: u64 = 3_600_000;
/// Longest life of a run.
const LONGEST: u64 = 24 * HOUR;
/// Longest text.
const TEXT: usize = 32 * 1024;
/// Most entries of a list.
const ENTRIES: usize = 64;

#[derive(Default)]
pub(super) struct Reader {
    pub(super) issues: Vec<ProfileIssue>,
}

impl Reader {
    pub(super) fn profile(&mut self, value: &Value, sha256: Sha256Hex) -> Option<Profile> {
        let keys = [
            "schema",
            "id",
            "version",
            "description",
            "extension",
            "isolation",
            "network",
            "workspace",
            "scope_default",
            "ttl",
            "resources",
            "setup",
            "reachability",
            "metadata",
        ];
        let Value::Object(_) = value else {
            self.issue("$", "a profile is an object with id, version and extension");
            return None;
        };
        let top = self.object(value, "$", &keys);
        let schema = self.optional(&top, "$.schema", "schema");
        if schema.is_some_and(|schema| schema != PROFILE_SCHEMA) {
            let message = format!("must be {PROFILE_SCHEMA:?} or left out");
            self.issue("$.schema", &message);
        }
        let id = self.required(&top, "$.id", "id");
        if !id.is_empty() && !is_id(&id) {
            self.issue("$.id", "must be 1 to 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit");
        }
        let version = self.required(&top, "$.version", "version");
        if !version.is_empty() && !is_version(&version) {
            self.issue(
                "$.version",
                "must be a semantic version in quotes such as \"1.0.0\"",
            );
        }
        let extension = self.required(&top, "$.extension", "extension");
        if !extension.is_empty() && extension != "native" {
            self.issue(
                "$.extension",
                &format!("there is no backend {extension:?} here; this host has \"native\""),
            );
        }
        let isolation = self.isolation(&top);
        let network = self.network(&top);
        let workspace = self.workspace(&top);
        let reachability = self.reachability(&top);
        let setup = self.setup(&top, &network);
        Some(Profile {
            schema: PROFILE_SCHEMA,
            id,
            version,
            description: self
                .optional(&top, "$.description", "description")
                .unwrap_or_default(),
            extension: "native",
            isolation,
            network,
            workspace,
            scope_default: self.scope(&top),
            ttl: self.ttl(&top),
            resources: self.resources(&top),
            setup,
            reachability,
            metadata: self.metadata(&top),
            sha256,
        })
    }

    pub(super) fn issue(&mut self, path: &str, message: &str) {
        self.issues.push(ProfileIssue {
            path: path.to_owned(),
            message: message.to_owned(),
        });
    }

    /// The members of an object that are not null; anything else is told.
    pub(super) fn object(
        &mut self,
        value: &Value,
        path: &str,
        keys: &[&str],
    ) -> Map<String, Value> {
        let members = match value {
            Value::Object(members) => members,
            Value::Null => return Map::new(),
            _ => {
                self.issue(path, "must be an object");
                return Map::new();
            }
        };
        for key in members.keys().filter(|key| !keys.contains(&key.as_str())) {
            let shown: String = key.chars().take(64).collect();
            self.issue(
                &format!("{path}.{shown}"),
                &format!("there is no such member; accepted are: {}", keys.join(", ")),
            );
        }
        let there = members.iter().filter(|(_, value)| !value.is_null());
        there
            .map(|(key, value)| (key.clone(), value.clone()))
            .collect()
    }

    pub(super) fn part(
        &mut self,
        top: &Map<String, Value>,
        name: &str,
        keys: &[&str],
    ) -> Map<String, Value> {
        let value = top.get(name).cloned().unwrap_or_default();
        self.object(&value, &format!("$.{name}"), keys)
    }

    pub(super) fn optional(
        &mut self,
        from: &Map<String, Value>,
        path: &str,
        name: &str,
    ) -> Option<String> {
        match from.get(name)? {
            Value::String(text) if text.len() <= TEXT => Some(text.clone()),
            Value::String(_) => {
                self.issue(path, &format!("is longer than {TEXT} bytes"));
                None
            }
            _ => {
                self.issue(path, "must be text; put it in quotes");
                None
            }
        }
    }

    pub(super) fn required(&mut self, from: &Map<String, Value>, path: &str, name: &str) -> String {
        if !from.contains_key(name) {
            self.issue(path, "is missing");
        }
        let text = self.optional(from, path, name);
        if text.as_deref() == Some("") {
            self.issue(path, "is empty");
        }
        text.unwrap_or_default()
    }

    /// One of several words.
    fn word<T: Copy>(
        &mut self,
        from: &Map<String, Value>,
        path: &str,
        name: &str,
        words: &[(&str, T)],
        default: T,
    ) -> T {
        let Some(text) = self.optional(from, path, name) else {
            return default;
        };
        let found = words.iter().find(|(word, _)| *word == text);
        found.map_or_else(
            || {
                let accepted: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
                let shown: String = text.chars().take(64).collect();
                self.issue(
                    path,
                    &format!(
                        "{shown:?} is not offered here; accepted are: {}",
                        accepted.join(", ")
                    ),
                );
                default
            },
            |(_, value)| *value,
        )
    }

    pub(super) fn flag(
        &mut self,
        from: &Map<String, Value>,
        path: &str,
        name: &str,
        default: bool,
    ) -> bool {
        match from.get(name) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.issue(path, "must be true or false");
                default
            }
        }
    }

    pub(super) fn list<'v>(
        &mut self,
        from: &'v Map<String, Value>,
        path: &str,
        name: &str,
    ) -> &'v [Value] {
        match from.get(name) {
            None => &[],
            Some(Value::Array(items)) if items.len() <= ENTRIES => items,
            Some(Value::Array(_)) => {
                self.issue(path, &format!("has more than {ENTRIES} entries"));
                &[]
            }
            Some(_) => {
                self.issue(path, "must be a list");
                &[]
            }
        }
    }

    pub(super) fn texts(
        &mut self,
        from: &Map<String, Value>,
        path: &str,
        name: &str,
    ) -> Vec<String> {
        let mut all = Vec::new();
        for (index, item) in self.list(from, path, name).iter().enumerate() {
            match item.as_str() {
                Some(text) => all.push(text.to_owned()),
                None => self.issue(&format!("{path}[{index}]"), "must be text"),
            }
        }
        all
    }

    fn isolation(&mut self, top: &Map<String, Value>) -> IsolationLevel {
        let part = self.part(top, "isolation", &["level"]);
        let words = [
            ("full", IsolationLevel::Full),
            ("reduced", IsolationLevel::Reduced),
        ];
        self.word(
            &part,
            "$.isolation.level",
            "level",
            &words,
            IsolationLevel::Full,
        )
    }

    fn network(&mut self, top: &Map<String, Value>) -> NetworkPolicy {
        let part = self.part(top, "network", &["default", "egress", "tls"]);
        self.word(&part, "$.network.default", "default", &[("deny", ())], ());
        let mut rules = NetworkRules::default();
        let path = "$.network.egress";
        for (index, item) in self.list(&part, path, "egress").iter().enumerate() {
            let at = format!("{path}[{index}]");
            match item {
                Value::String(host) => rules.allow_hosts.push(host.clone()),
                Value::Object(members) if members.contains_key("preset") => {
                    let row = self.object(item, &at, &["preset"]);
                    rules
                        .presets
                        .push(self.required(&row, &format!("{at}.preset"), "preset"));
                }
                Value::Object(_) => match serde_json::from_value::<EgressRule>(item.clone()) {
                    Ok(rule) => rules.rules.push(rule),
                    Err(error) => self.issue(
                        &at,
                        &format!("is no rule {{host, ports, methods, paths}}: {error}"),
                    ),
                },
                _ => self.issue(
                    &at,
                    "must be host[:port], a rule {host, ports, methods, paths} or {preset}",
                ),
            }
        }
        let none =
            rules.allow_hosts.is_empty() && rules.presets.is_empty() && rules.rules.is_empty();
        if let Some(tls) = part.get("tls") {
            match serde_json::from_value(tls.clone()) {
                Ok(mode) => rules.tls = mode,
                Err(_) => self.issue("$.network.tls", "must be tunnel or terminate"),
            }
        }
        if none {
            return NetworkPolicy::Posture(NetworkPosture::Deny);
        }
        for issue in EgressRules::compile(&rules).err().into_iter().flatten() {
            self.issue(path, &format!("{}: {}", issue.field, issue.message));
        }
        NetworkPolicy::Rules(rules)
    }

    fn workspace(&mut self, top: &Map<String, Value>) -> Workspace {
        let keys = ["mode", "access", "source", "target", "git"];
        let part = self.part(top, "workspace", &keys);
        let modes = [
            ("mirror", WorkspaceMode::Mirror),
            ("remote-canonical", WorkspaceMode::RemoteCanonical),
        ];
        let mode = self.word(
            &part,
            "$.workspace.mode",
            "mode",
            &modes,
            WorkspaceMode::Mirror,
        );
        let ways = [
            ("none", None),
            ("ro", Some(MountAccess::Readonly)),
            ("rw", Some(MountAccess::Readwrite)),
        ];
        let access = self.word(&part, "$.workspace.access", "access", &ways, None);
        let source = self.optional(&part, "$.workspace.source", "source");
        let target = self.optional(&part, "$.workspace.target", "target");
        let target = target.unwrap_or_else(|| "/workspace/project".to_owned());
        if GuestPath::new(target.clone()).is_err() {
            self.issue(
                "$.workspace.target",
                "must be an absolute path without . and ..",
            );
        }
        match (mode, &access, &source) {
            (WorkspaceMode::RemoteCanonical, Some(_), _) => self.issue(
                "$.workspace.access",
                "must be none in mode remote-canonical: nothing of the host is shown",
            ),
            (WorkspaceMode::RemoteCanonical, None, Some(_))
            | (WorkspaceMode::Mirror, None, Some(_)) => {
                self.issue(
                    "$.workspace.source",
                    "has no use without access ro or rw in mode mirror",
                );
            }
            _ => {}
        }
        let git = self.word(
            &part,
            "$.workspace.git",
            "git",
            &GitChoice::WORDS,
            GitChoice::Auto,
        );
        if access.is_none() && part.contains_key("git") {
            self.issue(
                "$.workspace.git",
                "has no use without access ro or rw in mode mirror",
            );
        }
        if source
            .as_ref()
            .is_some_and(|source| !source.starts_with('/'))
        {
            self.issue("$.workspace.source", "must be an absolute path of the host");
        }
        Workspace {
            mode,
            access,
            source,
            target,
            git,
        }
    }

    fn scope(&mut self, top: &Map<String, Value>) -> SandboxScope {
        let words = [
            ("session", SandboxScope::Session),
            ("agent", SandboxScope::Agent),
            ("shared", SandboxScope::Shared),
        ];
        self.word(
            top,
            "$.scope_default",
            "scope_default",
            &words,
            SandboxScope::Session,
        )
    }

    fn time(&mut self, from: &Map<String, Value>, path: &str, name: &str) -> Option<u64> {
        let text = self.optional(from, path, name)?;
        let time = humantime::parse_duration(&text).ok();
        let time = time
            .and_then(|time| u64::try_from(time.as_millis()).ok())
            .filter(|time| (1000..=LONGEST).contains(time));
        if time.is_none() {
            self.issue(
                path,
                "must be a time from 1s to 24h, such as 90s, 15m or 4h",
            );
        }
        time
    }

    fn ttl(&mut self, top: &Map<String, Value>) -> Ttl {
        let part = self.part(top, "ttl", &["default", "max", "idle_reap"]);
        let default = self.time(&part, "$.ttl.default", "default");
        let most = self.time(&part, "$.ttl.max", "max");
        let idle_ms = self.time(&part, "$.ttl.idle_reap", "idle_reap");
        let default_ms = default.unwrap_or_else(|| most.unwrap_or(HOUR).min(HOUR));
        let max_ms = most.unwrap_or_else(|| default_ms.max(4 * HOUR));
        if default_ms > max_ms {
            self.issue("$.ttl.default", "is longer than ttl.max");
        }
        Ttl {
            default_ms,
            max_ms,
            idle_ms,
        }
    }

    fn resources(&mut self, top: &Map<String, Value>) -> LimitsRequest {
        let part = self.part(
            top,
            "resources",
            &["cpu", "memory_mb", "disk_mb", "pids", "output_mb"],
        );
        if part.contains_key("cpu") {
            self.issue(
                "$.resources.cpu",
                "no share of the processor can be reserved or limited here; leave it out",
            );
        }
        let mut number = |name: &str, factor: u64| {
            let value = part.get(name)?;
            let number = value.as_u64().and_then(|number| number.checked_mul(factor));
            if number.is_none() {
                self.issue(&format!("$.resources.{name}"), "must be a whole number");
            }
            number
        };
        let mib = 1024 * 1024;
        let limits = LimitsRequest {
            wall_clock_ms: None,
            processes: number("pids", 1),
            memory_bytes: number("memory_mb", mib),
            disk_bytes: number("disk_mb", mib),
            output_bytes: number("output_mb", mib),
        };
        if let Err(error) = limits.resolve() {
            let name = match error.field {
                "processes" => "pids",
                "memory_bytes" => "memory_mb",
                "disk_bytes" => "disk_mb",
                _ => "output_mb",
            };
            let factor = if name == "pids" { 1 } else { mib };
            let (least, most) = (error.min.div_ceil(factor), error.max / factor);
            self.issue(
                &format!("$.resources.{name}"),
                &format!("must be from {least} to {most}"),
            );
        }
        limits
    }
}
