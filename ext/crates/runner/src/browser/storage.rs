//! Cookies and local storage that a browser begins with.

use crate::egress::ORIGIN;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};

/// Entries of either list.
const ENTRIES: usize = 200;

/// A cookie of the site. Its value is a secret of the sandbox.
#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Cookie {
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
            "url": ORIGIN, "httpOnly": self.http_only})
    }
}

/// `{cookies: [...], origins: [{origin, localStorage: [{name, value}]}]}`.
#[derive(Debug, Clone, Default, Serialize, Deserialize)]
pub(crate) struct StorageState {
    #[serde(default)]
    pub cookies: Vec<Cookie>,
    #[serde(default)]
    pub origins: Vec<OriginState>,
}

/// Local storage of one origin.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct OriginState {
    pub origin: String,
    #[serde(rename = "localStorage", default)]
    pub local_storage: Vec<Entry>,
}

/// One entry.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub name: String,
    pub value: String,
}

impl StorageState {
    /// Reads a document; the error is a sentence.
    pub(crate) fn parse(text: &str) -> Result<Self, String> {
        let malformed = || {
            "storage-state is no {cookies: [{name, value}], origins: [{origin, localStorage}]}"
                .to_owned()
        };
        let document: Value = serde_json::from_str(text).map_err(|_| malformed())?;
        // A list would be read as the members in their order.
        if !document.is_object() {
            return Err(malformed());
        }
        let state: Self = serde_json::from_value(document).map_err(|_| malformed())?;
        let entries = state
            .origins
            .iter()
            .map(|o| o.local_storage.len())
            .sum::<usize>();
        if state.cookies.len() > ENTRIES || entries > ENTRIES {
            return Err(format!(
                "storage-state has more than {ENTRIES} cookies or entries"
            ));
        }
        Ok(state)
    }

    /// A script that fills the local storage of each origin before its pages run.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn states_are_read_and_become_scripts() {
        let state = StorageState::parse(
            r#"{"cookies":[{"name":"a","value":"secret","domain":"localhost","httpOnly":true}],
                "origins":[{"origin":"http://localhost","localStorage":[{"name":"k","value":"</script>"}]}]}"#,
        )
        .unwrap();
        assert_eq!(state.cookies[0].param()["path"], "/");
        assert!(!format!("{:?}", state.cookies).contains("secret"));
        assert!(state.script().unwrap().contains("\"http://localhost\""));
        assert!(StorageState::parse("[]").is_err());
        assert!(StorageState::default().script().is_none());
    }
}
