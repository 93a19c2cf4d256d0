//! Converts parsed values to a profile and collects all problems.

use super::text::{is_id, is_version};
use super::{PROFILE_SCHEMA, Profile, ProfileIssue, Ttl, Workspace, WorkspaceMode};
use serde_json::{Map, Value};
use wp_codebox_contracts::{
    EgressRule, GitChoice, GuestPath, LimitsRequest, MountAccess, NetworkPolicy, NetworkPosture,
    NetworkRules, SandboxScope, Sha256Hex,
};
use wp_codebox_policy::EgressRules;

const HOUR: u64 = 3_600_000;
/// Maximum lifetime of a sandbox, in milliseconds; equals the maximum duration of a run.
const LONGEST: u64 = 24 * HOUR;
/// Maximum length of one text in a profile, in bytes.
const TEXT: usize = 32 * 1024;
/// Maximum number of entries of one list in a profile.
const ENTRIES: usize = 64;

#[derive(Default)]
pub(super) struct Reader {
    pub(super) issues: Vec<ProfileIssue>,
}

/// An object of the profile with its path; null members are omitted.
pub(super) struct Section {
    path: String,
    members: Map<String, Value>,
}

impl Section {
    /// Returns the path of the member `name`.
    pub(super) fn at(&self, name: &str) -> String {
        format!("{}.{name}", self.path)
    }

    pub(super) fn has(&self, name: &str) -> bool {
        self.members.contains_key(name)
    }
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
            "placement",
            "route",
        ];
        let Value::Object(_) = value else {
            self.issue("$", "a profile must be an object with id and version");
            return None;
        };
        let top = self.object(value, "$", &keys);
        let schema = self.optional(&top, "schema");
        if schema.is_some_and(|schema| schema != PROFILE_SCHEMA) {
            let message = format!("must be {PROFILE_SCHEMA:?} or absent");
            self.issue("$.schema", &message);
        }
        let id = self.required(&top, "id");
        if !id.is_empty() && !is_id(&id) {
            self.issue("$.id", "must be 1 to 64 lower-case letters, digits, '.', '_' and '-', beginning with a letter or digit, without '..'");
        }
        let version = self.required(&top, "version");
        if !version.is_empty() && !is_version(&version) {
            self.issue(
                "$.version",
                "must be a semantic version in quotes such as \"1.0.0\"",
            );
        }
        let (isolation, routing) = self.route_policy(&top);
        let network = self.network(&top);
        let workspace = self.workspace(&top);
        let reachability = self.reachability(&top);
        let setup = self.setup(&top, &network);
        Some(Profile {
            schema: PROFILE_SCHEMA,
            id,
            version,
            description: self.optional(&top, "description").unwrap_or_default(),
            routing,
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

    /// Reads an object that may have only these members; reports an issue for anything else.
    pub(super) fn object(&mut self, value: &Value, path: &str, keys: &[&str]) -> Section {
        let mut section = Section {
            path: path.to_owned(),
            members: Map::new(),
        };
        match value {
            Value::Object(members) => section.members = members.clone(),
            Value::Null => {}
            _ => self.issue(path, "must be an object"),
        }
        for key in section.members.keys() {
            if !keys.contains(&key.as_str()) {
                let shown: String = key.chars().take(64).collect();
                self.issue(
                    &section.at(&shown),
                    &format!("unknown member; accepted are: {}", keys.join(", ")),
                );
            }
        }
        section.members.retain(|_, value| !value.is_null());
        section
    }

    pub(super) fn part(&mut self, top: &Section, name: &str, keys: &[&str]) -> Section {
        let value = top.members.get(name).unwrap_or(&Value::Null);
        self.object(value, &top.at(name), keys)
    }

    pub(super) fn optional(&mut self, from: &Section, name: &str) -> Option<String> {
        match from.members.get(name)? {
            Value::String(text) if text.len() <= TEXT => return Some(text.clone()),
            Value::String(_) => {
                self.issue(
                    &from.at(name),
                    &format!("the text has more than {TEXT} bytes; shorten it"),
                );
            }
            _ => self.issue(&from.at(name), "must be text; put it in quotes"),
        }
        None
    }

    pub(super) fn required(&mut self, from: &Section, name: &str) -> String {
        if !from.has(name) {
            self.issue(&from.at(name), "this required member is missing");
        }
        let text = self.optional(from, name);
        if text.as_deref() == Some("") {
            self.issue(&from.at(name), "the text must not be empty");
        }
        text.unwrap_or_default()
    }

    /// Reads a text that must be one of `words`, and returns the value paired with that word.
    pub(super) fn word<T: Copy>(
        &mut self,
        from: &Section,
        name: &str,
        words: &[(&str, T)],
        default: T,
    ) -> T {
        let Some(text) = self.optional(from, name) else {
            return default;
        };
        if let Some((_, value)) = words.iter().find(|(word, _)| *word == text) {
            return *value;
        }
        let accepted: Vec<&str> = words.iter().map(|(word, _)| *word).collect();
        let shown: String = text.chars().take(64).collect();
        let accepted = accepted.join(", ");
        self.issue(
            &from.at(name),
            &format!("{shown:?} is not supported here; accepted are: {accepted}"),
        );
        default
    }

    pub(super) fn flag(&mut self, from: &Section, name: &str, default: bool) -> bool {
        match from.members.get(name) {
            None => default,
            Some(Value::Bool(flag)) => *flag,
            Some(_) => {
                self.issue(&from.at(name), "must be true or false");
                default
            }
        }
    }

    /// Reads an optional number without sign and fraction.
    pub(super) fn whole_number(&mut self, from: &Section, name: &str) -> Option<u64> {
        let number = from.members.get(name)?.as_u64();
        if number.is_none() {
            self.issue(&from.at(name), "must be a whole number");
        }
        number
    }

    /// Reads a list; returns each entry with its path.
    pub(super) fn list(&mut self, from: &Section, name: &str) -> Vec<(String, Value)> {
        let path = from.at(name);
        match from.members.get(name) {
            None => {}
            Some(Value::Array(items)) if items.len() <= ENTRIES => {
                let entry =
                    |(index, item): (usize, &Value)| (format!("{path}[{index}]"), item.clone());
                return items.iter().enumerate().map(entry).collect();
            }
            Some(Value::Array(_)) => {
                self.issue(
                    &path,
                    &format!("the list has more than {ENTRIES} entries; remove some"),
                );
            }
            Some(_) => self.issue(&path, "must be a list"),
        }
        Vec::new()
    }

    pub(super) fn texts(&mut self, from: &Section, name: &str) -> Vec<String> {
        let mut all = Vec::new();
        for (path, item) in self.list(from, name) {
            match item {
                Value::String(text) => all.push(text),
                _ => self.issue(&path, "must be text"),
            }
        }
        all
    }

    fn network(&mut self, top: &Section) -> NetworkPolicy {
        let part = self.part(top, "network", &["default", "egress", "tls"]);
        self.word(&part, "default", &[("deny", ())], ());
        let mut rules = NetworkRules::default();
        for (at, item) in self.list(&part, "egress") {
            match &item {
                Value::String(host) => rules.allow_hosts.push(host.clone()),
                Value::Object(members) if members.contains_key("preset") => {
                    let row = self.object(&item, &at, &["preset"]);
                    rules.presets.push(self.required(&row, "preset"));
                }
                Value::Object(_) => match serde_json::from_value::<EgressRule>(item) {
                    Ok(rule) => rules.rules.push(rule),
                    Err(error) => self.issue(
                        &at,
                        &format!(
                            "the object is not a rule {{host, ports, methods, paths}}: {error}"
                        ),
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
        if let Some(tls) = part.members.get("tls") {
            match serde_json::from_value(tls.clone()) {
                Ok(mode) => rules.tls = mode,
                Err(_) => self.issue("$.network.tls", "must be tunnel or terminate"),
            }
        }
        if none {
            return NetworkPolicy::Posture(NetworkPosture::Deny);
        }
        for issue in EgressRules::compile(&rules).err().into_iter().flatten() {
            self.issue(
                &part.at("egress"),
                &format!("{}: {}", issue.field, issue.message),
            );
        }
        NetworkPolicy::Rules(rules)
    }

    fn workspace(&mut self, top: &Section) -> Workspace {
        let keys = ["mode", "access", "source", "target", "git"];
        let part = self.part(top, "workspace", &keys);
        let modes = [
            ("mirror", WorkspaceMode::Mirror),
            ("remote-canonical", WorkspaceMode::RemoteCanonical),
        ];
        let mode = self.word(&part, "mode", &modes, WorkspaceMode::Mirror);
        let ways = [
            ("none", None),
            ("ro", Some(MountAccess::Readonly)),
            ("rw", Some(MountAccess::Readwrite)),
        ];
        let access = self.word(&part, "access", &ways, None);
        let source = self.optional(&part, "source");
        let target = self.optional(&part, "target");
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
                "must be none in mode remote-canonical, which exposes no host directory",
            ),
            (WorkspaceMode::RemoteCanonical, None, Some(_))
            | (WorkspaceMode::Mirror, None, Some(_)) => {
                self.issue(
                    "$.workspace.source",
                    "a source requires access ro or rw in mode mirror",
                );
            }
            _ => {}
        }
        let git = self.word(&part, "git", &GitChoice::WORDS, GitChoice::Auto);
        if access.is_none() && part.has("git") {
            self.issue(
                "$.workspace.git",
                "a git repository requires access ro or rw in mode mirror",
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

    fn scope(&mut self, top: &Section) -> SandboxScope {
        let words = [
            ("session", SandboxScope::Session),
            ("agent", SandboxScope::Agent),
            ("shared", SandboxScope::Shared),
        ];
        self.word(top, "scope_default", &words, SandboxScope::Session)
    }

    fn time(&mut self, from: &Section, name: &str) -> Option<u64> {
        let text = self.optional(from, name)?;
        let time = humantime::parse_duration(&text).ok();
        let time = time
            .and_then(|time| u64::try_from(time.as_millis()).ok())
            .filter(|time| (1000..=LONGEST).contains(time));
        if time.is_none() {
            self.issue(
                &from.at(name),
                "must be a time from 1s to 24h, such as 90s, 15m or 4h",
            );
        }
        time
    }

    fn ttl(&mut self, top: &Section) -> Ttl {
        let part = self.part(top, "ttl", &["default", "max", "idle_reap"]);
        let default = self.time(&part, "default");
        let most = self.time(&part, "max");
        let idle_ms = self.time(&part, "idle_reap");
        let default_ms = default.unwrap_or_else(|| most.unwrap_or(HOUR).min(HOUR));
        let max_ms = most.unwrap_or_else(|| default_ms.max(4 * HOUR));
        if default_ms > max_ms {
            self.issue(
                "$.ttl.default",
                "ttl.default is longer than ttl.max; shorten it, or raise ttl.max",
            );
        }
        Ttl {
            default_ms,
            max_ms,
            idle_ms,
        }
    }

    fn resources(&mut self, top: &Section) -> LimitsRequest {
        let part = self.part(
            top,
            "resources",
            &["cpu", "memory_mb", "disk_mb", "pids", "output_mb"],
        );
        let cpu = part.members.get("cpu").filter(|value| !value.is_null());
        let cpu = cpu.map(|value| {
            let milli = value.as_f64().map(|cpus| (cpus * 1000.0).round());
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "casts of floats saturate, and resolve() below checks the range"
            )]
            milli.map(|milli| milli as u64)
        });
        if cpu == Some(None) {
            self.issue(
                "$.resources.cpu",
                "must be a number of processors, e.g. 1.5",
            );
        }
        let mut number = |name: &str, factor: u64| {
            let value = part.members.get(name)?;
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
            cpu_milli: cpu.flatten(),
        };
        if let Err(error) = limits.resolve() {
            let name = match error.field {
                "processes" => "pids",
                "memory_bytes" => "memory_mb",
                "disk_bytes" => "disk_mb",
                "cpu_milli" => "cpu",
                _ => "output_mb",
            };
            let range = match name {
                "cpu" => format!("0.{:03} to {}", error.min, error.max / 1000),
                "pids" => format!("{} to {}", error.min, error.max),
                _ => format!("{} to {}", error.min.div_ceil(mib), error.max / mib),
            };
            self.issue(
                &format!("$.resources.{name}"),
                &format!("must be from {range}"),
            );
        }
        limits
    }
}
