//! Reads the sections of a profile that say where its sandboxes may run.

use super::read::{Reader, Section};
use std::collections::BTreeSet;
use std::fmt::Display;
use wp_codebox_contracts::{
    ExtensionId, HostId, InvalidId, IsolationClass, IsolationLevel, Placement, RegionName, Route,
    RouteConstraints, RoutePolicy, RouteStrategy,
};

/// Words for the isolation of a sandbox. `full` and `reduced` are the levels of native sandboxes;
/// the others are isolation classes, by which sandboxes of all extensions can be compared.
const ISOLATION_WORDS: [(&str, IsolationClass); 5] = [
    ("full", IsolationClass::Container),
    ("reduced", IsolationClass::Policy),
    ("container", IsolationClass::Container),
    ("policy", IsolationClass::Policy),
    ("microvm", IsolationClass::Microvm),
];

impl Reader {
    /// Reads isolation, extension, placement and route. Returns the minimum isolation level of a
    /// native sandbox, which is never below the isolation that the route requires.
    pub(super) fn route_policy(&mut self, top: &Section) -> (IsolationLevel, RoutePolicy) {
        let extension = self.id(top, "extension", ExtensionId::new);
        let placement = self.placement(top);
        let mut route = self.route(top, extension.as_ref());
        let part = self.part(top, "isolation", &["level"]);
        let class = self.word(&part, "level", &ISOLATION_WORDS, IsolationClass::Container);
        let required = &mut route.constraints.require_isolation;
        if class.level().is_none() {
            *required = Some(class);
        }
        let strictest = required.map_or(class, |required| required.max(class));
        let policy = RoutePolicy {
            extension,
            placement,
            route,
        };
        (strictest.level().unwrap_or(IsolationLevel::Full), policy)
    }

    fn placement(&mut self, top: &Section) -> Placement {
        let part = self.part(top, "placement", &["prefer", "fallback"]);
        let prefer = self.ids(&part, "prefer", HostId::new);
        let fallback = self.ids(&part, "fallback", HostId::new);
        let prefer = prefer.unwrap_or_default();
        for (index, host) in fallback.iter().flatten().enumerate() {
            if prefer.contains(host) {
                self.issue(
                    &format!("{}[{index}]", part.at("fallback")),
                    &format!("host {host} is also in \"prefer\"; remove one of the two entries"),
                );
            }
        }
        Placement { prefer, fallback }
    }

    fn route(&mut self, top: &Section, pinned: Option<&ExtensionId>) -> Route {
        let part = self.part(top, "route", &["strategy", "fallback", "constraints"]);
        let words = RouteStrategy::ALL.iter().map(|word| (word.as_str(), *word));
        let words: Vec<_> = words.collect();
        let strategy = self.word(&part, "strategy", &words, RouteStrategy::default());
        let fallback = self.ids(&part, "fallback", ExtensionId::new);
        if let (Some(pinned), Some(_)) = (pinned, &fallback) {
            self.issue(
                &part.at("fallback"),
                &format!("\"extension\" of the profile allows only {pinned}; remove this list, or remove \"extension\" and list its value here"),
            );
        }
        let empty = fallback.as_ref().is_none_or(Vec::is_empty);
        if strategy == RouteStrategy::Explicit && pinned.is_none() && empty {
            self.issue(
                &part.at("strategy"),
                "the strategy \"explicit\" requires the extensions in their order in \"route.fallback\", or one in \"extension\"",
            );
        }
        Route {
            strategy,
            fallback,
            constraints: self.constraints(&part),
        }
    }

    fn constraints(&mut self, route: &Section) -> RouteConstraints {
        let keys = ["max_cost_per_hour", "require_isolation", "region"];
        let part = self.part(route, "constraints", &keys);
        let words = ISOLATION_WORDS.map(|(word, class)| (word, Some(class)));
        RouteConstraints {
            max_cost_per_hour: self.whole_number(&part, "max_cost_per_hour"),
            require_isolation: self.word(&part, "require_isolation", &words, None),
            region: self.id(&part, "region", RegionName::new),
        }
    }

    /// Reads an optional id.
    fn id<T>(
        &mut self,
        from: &Section,
        name: &str,
        new: impl Fn(String) -> Result<T, InvalidId>,
    ) -> Option<T> {
        let id = new(self.optional(from, name)?);
        id.map_err(|error| self.issue(&from.at(name), &error.to_string()))
            .ok()
    }

    /// Reads an optional list of different ids.
    fn ids<T: Clone + Ord + Display>(
        &mut self,
        from: &Section,
        name: &str,
        new: impl Fn(String) -> Result<T, InvalidId>,
    ) -> Option<Vec<T>> {
        if !from.has(name) {
            return None;
        }
        let mut seen = BTreeSet::new();
        let mut all = Vec::new();
        for (at, item) in self.list(from, name) {
            let Some(text) = item.as_str() else {
                self.issue(&at, "must be text; put it in quotes");
                continue;
            };
            match new(text.to_owned()) {
                Ok(id) if seen.insert(id.clone()) => all.push(id),
                Ok(id) => {
                    let message = format!("{id} is listed twice; remove one of the entries");
                    self.issue(&at, &message);
                }
                Err(error) => self.issue(&at, &error.to_string()),
            }
        }
        Some(all)
    }
}
