//! Arguments of the call of a browser command, with those that a JSON document of the call gives.

use serde_json::{Map, Value};
use std::collections::BTreeMap;
use std::time::Duration;
use wp_codebox_contracts::{CommandCall, parse_json};
use wp_codebox_policy::{arg_value, arg_values, browser_duration, check_browser_scenario};

/// Members of `browser-environment-json`, and the argument that each stands for.
const ENVIRONMENT: &[(&str, &str)] = &[
    ("profile", "profile"),
    ("device", "device"),
    ("viewport", "viewport"),
    ("deviceScaleFactor", "device-scale-factor"),
    ("isMobile", "is-mobile"),
    ("hasTouch", "has-touch"),
    ("locale", "locale"),
    ("timezone", "timezone"),
    ("timezoneId", "timezone"),
    ("userAgent", "user-agent"),
    ("permissions", "permissions"),
    ("throttle", "throttle"),
    ("geolocationPermission", "geolocation-permission"),
    ("colorScheme", "color-scheme"),
    ("reducedMotion", "reduced-motion"),
];
/// Members of `geolocation` in `browser-environment-json`.
const GEOLOCATION: &[(&str, &str)] = &[
    ("latitude", "geolocation-latitude"),
    ("longitude", "geolocation-longitude"),
    ("accuracy", "geolocation-accuracy"),
    ("permission", "geolocation-permission"),
];
/// Members of a scenario that stand for an argument.
const SCENARIO: &[(&str, &str)] = &[
    ("url", "url"),
    ("capture", "capture"),
    ("viewport", "viewport"),
    ("device", "device"),
    ("locale", "locale"),
    ("timezone", "timezone"),
    ("auth", "auth"),
    ("userAgent", "user-agent"),
    ("stepTimeout", "step-timeout"),
    ("timeout", "timeout"),
];

/// Arguments of a call. An argument of the call has priority over the members of its documents.
pub(super) struct Arguments<'c> {
    call: &'c CommandCall,
    more: BTreeMap<&'static str, String>,
}

impl<'c> Arguments<'c> {
    /// Reads the documents of the call; the error text is one sentence.
    pub(super) fn of(call: &'c CommandCall) -> Result<Self, String> {
        let mut more = BTreeMap::new();
        if let Some(text) = filled(call, "browser-environment-json") {
            let document = object("browser-environment-json", &text)?;
            for (name, value) in &document {
                if name == "geolocation" {
                    let place = value.as_object().ok_or("geolocation must be an object")?;
                    for (name, value) in place {
                        add(&mut more, GEOLOCATION, "geolocation", name, value)?;
                    }
                } else {
                    add(
                        &mut more,
                        ENVIRONMENT,
                        "browser-environment-json",
                        name,
                        value,
                    )?;
                }
            }
        }
        if let Some(text) = filled(call, "scenario-json") {
            let document = object("scenario-json", &text)?;
            // A scenario with faults is refused when its steps are read.
            if check_browser_scenario(&Value::Object(document.clone())).is_empty() {
                for (name, argument) in SCENARIO {
                    if let Some(value) = document.get(*name) {
                        more.insert(*argument, written(name, value)?);
                    }
                }
            }
        }
        Ok(Self { call, more })
    }

    /// Returns the id of the command.
    pub(super) fn command(&self) -> &'c str {
        &self.call.command
    }

    /// Returns the value of an argument; `None` if it is absent or empty.
    pub(super) fn value(&self, name: &str) -> Option<String> {
        filled(self.call, name).or_else(|| self.more.get(name).cloned())
    }

    /// Returns the values of an argument that may be given several times.
    pub(super) fn all(&self, name: &str) -> Vec<String> {
        arg_values(self.call, name).map(str::to_owned).collect()
    }

    /// Returns the value of an argument that is a duration.
    pub(super) fn time(&self, name: &str) -> Result<Option<Duration>, String> {
        self.value(name)
            .map(|text| {
                browser_duration(&text).ok_or_else(|| {
                    format!("{name} must be a duration such as 500ms or 1.5s, up to 10 minutes")
                })
            })
            .transpose()
    }

    /// Returns the value of a boolean argument.
    pub(super) fn flag(&self, name: &str) -> Result<Option<bool>, String> {
        self.value(name).map(|text| truth(name, &text)).transpose()
    }

    /// Returns the value of an argument that is a whole number.
    pub(super) fn count(&self, name: &str, default: usize) -> Result<usize, String> {
        self.value(name).map_or(Ok(default), |text| {
            text.parse()
                .map_err(|_| format!("{name} {text:?} is not a whole number"))
        })
    }
}

/// Reads a boolean value.
pub(super) fn truth(name: &str, text: &str) -> Result<bool, String> {
    match text {
        "1" | "true" | "yes" | "on" => Ok(true),
        "0" | "false" | "no" | "off" => Ok(false),
        other => Err(format!("{name} is {other:?}, but must be true or false")),
    }
}

fn filled(call: &CommandCall, name: &str) -> Option<String> {
    arg_value(call, name)
        .map(str::to_owned)
        .filter(|value| !value.is_empty())
}

fn object(name: &str, text: &str) -> Result<Map<String, Value>, String> {
    match parse_json(text.as_bytes()) {
        Ok(Value::Object(members)) => Ok(members),
        Ok(_) => Err(format!("{name} must be a JSON object")),
        Err(error) => Err(format!("{name}: {error}")),
    }
}

fn add(
    more: &mut BTreeMap<&'static str, String>,
    table: &[(&str, &'static str)],
    place: &str,
    name: &str,
    value: &Value,
) -> Result<(), String> {
    let Some((_, argument)) = table.iter().find(|row| row.0 == name) else {
        let known: Vec<&str> = table.iter().map(|row| row.0).collect();
        return Err(format!(
            "{place} has no member {:?}; it takes {}",
            name.chars().take(100).collect::<String>(),
            known.join(", ")
        ));
    };
    more.insert(*argument, written(name, value)?);
    Ok(())
}

/// Returns a member's value as the argument is written: a viewport as `WIDTHxHEIGHT`, a list with
/// commas.
fn written(name: &str, value: &Value) -> Result<String, String> {
    Ok(match value {
        Value::String(text) => text.clone(),
        Value::Bool(_) | Value::Number(_) => value.to_string(),
        Value::Array(rows) => rows
            .iter()
            .map(|row| {
                row.as_str()
                    .ok_or_else(|| format!("{name} must be a list of texts"))
            })
            .collect::<Result<Vec<_>, _>>()?
            .join(","),
        Value::Object(members) => {
            let side = |side: &str| members.get(side).and_then(Value::as_u64);
            match (side("width"), side("height"), members.len()) {
                (Some(width), Some(height), 2) if name == "viewport" => format!("{width}x{height}"),
                _ => {
                    return Err(format!(
                        "{name} must be text (viewport may also be {{width, height}})"
                    ));
                }
            }
        }
        Value::Null => String::new(),
    })
}
