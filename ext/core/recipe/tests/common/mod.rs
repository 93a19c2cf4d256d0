//! A fake host for recipe checks: its files, secrets and versions are fields of a struct.

#![allow(dead_code, clippy::unwrap_used)]

use serde_json::{Value, json};
use std::collections::BTreeMap;
use wp_codebox_recipe::{
    Context, HostFacts, Issue, ParentSite, PathKind, PolicyChoice, SecretStatus, SiteSeed, Sources,
    ZipEntry, ZipKind, ZipUnreadable, parse, validate,
};

pub struct FakeHost {
    pub files: BTreeMap<&'static str, PathKind>,
    pub secrets: Vec<&'static str>,
    pub requires_sha256: bool,
    pub facts: HostFacts,
}

impl Default for FakeHost {
    fn default() -> Self {
        use PathKind::{Denied, Directory, File, Other};
        Self {
            files: BTreeMap::from([
                ("./dir", Directory),
                ("./dir/sub", Directory),
                ("./other", Directory),
                ("./needs", Directory),
                ("./needs/composer.json", File),
                ("./needs/vendor/a/b", Directory),
                ("./file.txt", File),
                ("./code.php", File),
                ("./seed.json", File),
                ("./good.zip", File),
                ("./slip.zip", File),
                ("./bomb.zip", File),
                ("./link.zip", File),
                ("./torn.zip", File),
                ("./pipe", Other),
                ("/etc/shadow", Denied),
                ("./site-root", Denied),
            ]),
            secrets: vec!["API_KEY", "OTHER_KEY"],
            requires_sha256: false,
            facts: HostFacts {
                wordpress_version: "7.1.1".to_owned(),
                php_version: "8.2.7".to_owned(),
                php_extensions: vec!["intl".to_owned(), "mysqli".to_owned()],
                server_programs: vec!["mariadbd".to_owned()],
                parent_site: ParentSite::Absent,
                wp_fallback: Default::default(),
                theme: Some("twentytwentyfive".to_owned()),
            },
        }
    }
}

pub const ZIP_SHA256: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";

impl Sources for FakeHost {
    fn kind(&self, path: &str) -> PathKind {
        self.files.get(path).copied().unwrap_or(PathKind::Missing)
    }
    fn zip(&self, path: &str) -> Result<Vec<ZipEntry>, ZipUnreadable> {
        let entry = |name: &str, size, special| ZipEntry {
            name: name.to_owned(),
            size,
            special,
        };
        match path {
            "./good.zip" => Ok(vec![entry("shop/shop.php", 100, ZipKind::Plain)]),
            "./slip.zip" => Ok(vec![entry("../../evil.php", 1, ZipKind::Plain)]),
            "./bomb.zip" => Ok(vec![entry("shop/big", 1 << 40, ZipKind::Plain)]),
            "./link.zip" => Ok(vec![entry("shop/link", 1, ZipKind::Special)]),
            _ => Err(ZipUnreadable {
                reason: "it ends too early".to_owned(),
            }),
        }
    }
    fn sha256(&self, path: &str) -> Option<String> {
        (path == "./good.zip").then(|| ZIP_SHA256.to_owned())
    }
    fn requires_sha256(&self) -> bool {
        self.requires_sha256
    }
    fn plugin_file(&self, path: &str) -> Option<String> {
        (path == "./dir").then(|| "main.php".to_owned())
    }
    fn secret(&self, name: &str) -> SecretStatus {
        if name == "SHORT_KEY" {
            return SecretStatus::Unusable {
                rule: "must have 8 bytes or more",
            };
        }
        if self.secrets.contains(&name) {
            SecretStatus::Available {
                source: "environment",
            }
        } else {
            SecretStatus::Missing
        }
    }
    fn parent_content(&self, seed: &SiteSeed) -> Result<String, String> {
        match seed.name.as_str() {
            "unreadable" => Err("its database is closed".to_owned()),
            name => Ok(format!("{{\"name\":\"{name}\"}}")),
        }
    }
    fn facts(&self) -> &HostFacts {
        &self.facts
    }
}

/// Returns a small valid recipe.
pub fn base() -> Value {
    json!({
        "schema": "wp-codebox/workspace-recipe/v1",
        "workflow": {"steps": [{"command": "wordpress.run-php", "args": ["code=echo 1;"]}]},
    })
}

/// Returns the small valid recipe of [`base`] with `over` merged in. Objects are merged member by
/// member; any other value replaces the existing one.
pub fn with(over: &Value) -> Value {
    fn lay(under: &mut Value, over: &Value) {
        match (under, over) {
            (Value::Object(under), Value::Object(over)) => {
                for (key, value) in over {
                    lay(under.entry(key.clone()).or_insert(Value::Null), value);
                }
            }
            (under, over) => *under = over.clone(),
        }
    }
    let mut document = base();
    lay(&mut document, over);
    document
}

pub fn issues(document: &Value, host: &FakeHost, policy: PolicyChoice<'_>) -> Vec<Issue> {
    match parse(document.to_string().as_bytes()) {
        Err(issues) => issues,
        Ok(recipe) => validate(
            &recipe,
            Context {
                sources: host,
                policy,
            },
        ),
    }
}
