//! Cookies and local storage that a browser starts with.

use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use wp_codebox_contracts::{SITE_ORIGIN, parse_json};

/// Maximum number of cookies; also the maximum number of local storage entries of all origins
/// together.
const ENTRIES: usize = 200;

/// Cookie of the site. Its value can log a browser in, so it is treated as a secret.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Cookie {
    pub name: String,
    pub value: String,
    #[serde(default = "root")]
    pub path: String,
    #[serde(default)]
    pub http_only: bool,
}

impl std::fmt::Debug for Cookie {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cookie")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

fn root() -> String {
    "/".to_owned()
}

impl Cookie {
    pub(super) fn param(&self) -> Value {
        json!({"name": self.name, "value": self.value, "path": self.path,
            "url": SITE_ORIGIN, "httpOnly": self.http_only})
    }
}

/// Cookies and local storage that a browser starts with, in the JSON form `{cookies: [...],
/// origins: [{origin, localStorage: [{name, value}]}]}`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub struct StorageState {
    #[serde(default)]
    /// Cookies that the browser starts with.
    pub cookies: Vec<Cookie>,
    #[serde(default)]
    /// Local storage that the browser starts with, by origin.
    pub origins: Vec<OriginState>,
}

/// Local storage of one origin, e.g. `https://example.org`.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct OriginState {
    pub origin: String,
    #[serde(rename = "localStorage", default)]
    pub local_storage: Vec<Entry>,
}

/// One entry of a local storage: key and value.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Entry {
    pub name: String,
    pub value: String,
}

impl StorageState {
    /// Parses a storage state from JSON; the error text is one sentence.
    pub fn parse(text: &str) -> Result<Self, String> {
        let malformed = || {
            "storage-state must be {cookies: [{name, value}], origins: [{origin, localStorage}]}"
                .to_owned()
        };
        let document: Value = parse_json(text.as_bytes()).map_err(|_| malformed())?;
        // serde would also accept a list with the members' values in order.
        if !document.is_object() {
            return Err(malformed());
        }
        known(&document)?;
        let state: Self = serde_json::from_value(document).map_err(|_| malformed())?;
        let entries = state
            .origins
            .iter()
            .map(|o| o.local_storage.len())
            .sum::<usize>();
        if state.cookies.len() > ENTRIES || entries > ENTRIES {
            return Err(format!(
                "storage-state has more than {ENTRIES} cookies or local storage entries"
            ));
        }
        Ok(state)
    }

    /// Returns a script that fills the local storage of a page's origin; the browser runs it before
    /// the page's own scripts. `None` if there is nothing to fill.
    pub(super) fn script(&self) -> Option<String> {
        let rows: Vec<Value> = self
            .origins
            .iter()
            .map(|o| {
                json!([
                    o.origin.trim_end_matches('/'),
                    o.local_storage
                        .iter()
                        .map(|e| json!([e.name, e.value]))
                        .collect::<Vec<_>>()
                ])
            })
            .collect();
        (!rows.is_empty()).then(|| {
            format!(
                "for (const [origin, entries] of {}) if (location.origin === origin) for (const [name, value] of entries) try {{ localStorage.setItem(name, value); }} catch (e) {{}}",
                Value::Array(rows)
            )
        })
    }
}

/// Refuses unknown members. `domain`, `expires`, `secure`, `sameSite` and `partitionKey`, which
/// exported storage states contain, are accepted and ignored: every cookie is set for the site, and
/// the browser ends with its command.
fn known(document: &Value) -> Result<(), String> {
    let rows = |value: &Value, name: &str| {
        let rows = value.get(name).and_then(Value::as_array);
        rows.cloned().unwrap_or_default()
    };
    let only = |place: String, value: &Value, names: &[&str]| {
        let mut members = value
            .as_object()
            .into_iter()
            .flat_map(|object| object.keys());
        match members.find(|name| !names.contains(&name.as_str())) {
            Some(name) => Err(format!(
                "storage-state: {place} has no member {:?}; it takes {}",
                name.chars().take(100).collect::<String>(),
                names.join(", ")
            )),
            None => Ok(()),
        }
    };
    only("it".to_owned(), document, &["cookies", "origins"])?;
    for (index, cookie) in rows(document, "cookies").iter().enumerate() {
        only(
            format!("cookies[{index}]"),
            cookie,
            &[
                "name",
                "value",
                "path",
                "httpOnly",
                "domain",
                "expires",
                "secure",
                "sameSite",
                "partitionKey",
            ],
        )?;
    }
    for (index, origin) in rows(document, "origins").iter().enumerate() {
        only(
            format!("origins[{index}]"),
            origin,
            &["origin", "localStorage"],
        )?;
        for (at, entry) in rows(origin, "localStorage").iter().enumerate() {
            only(
                format!("origins[{index}].localStorage[{at}]"),
                entry,
                &["name", "value"],
            )?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn storage_state_script_contains_the_origin_and_errors_for_unknown_members_contain_no_value() {
        let state = StorageState::parse(
            r#"{"cookies":[{"name":"a","value":"secret","domain":"localhost","httpOnly":true}],
                "origins":[{"origin":"http://localhost","localStorage":[{"name":"k","value":"</script>"}]}]}"#,
        )
        .unwrap();
        assert_eq!(state.cookies[0].param()["path"], "/");
        assert!(!format!("{:?}", state.cookies).contains("secret"));
        assert!(state.script().unwrap().contains("\"http://localhost\""));
        assert!(StorageState::parse("[]").is_err());
        for (json, place) in [
            (r#"{"cookie":[]}"#, "it has no member \"cookie\""),
            (
                r#"{"cookies":[{"name":"a","value":"secret","http_only":true}]}"#,
                "cookies[0] has no member",
            ),
            (
                r#"{"origins":[{"origin":"http://localhost","local_storage":[]}]}"#,
                "origins[0] has no member",
            ),
            (
                r#"{"origins":[{"origin":"http://localhost","localStorage":[{"name":"k","value":"secret","x":1}]}]}"#,
                "origins[0].localStorage[0] has no member",
            ),
        ] {
            let error = StorageState::parse(json).unwrap_err();
            assert!(
                error.contains(place) && !error.contains("secret"),
                "{error}"
            );
        }
        let public = r#"{"cookies":[{"name":"a","value":"b","domain":"localhost","path":"/","expires":-1,"httpOnly":true,"secure":false,"sameSite":"Lax"}],"origins":[]}"#;
        assert!(StorageState::parse(public).is_ok());
        assert!(StorageState::default().script().is_none());
    }
}
