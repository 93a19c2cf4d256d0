//! Each property of the public recipe schema, in the sections `runtime`, `distribution`, mounts,
//! workspaces, plugins, components and packages: a right value is accepted or refused by name, and
//! a value of a wrong type is refused with its path.
//!
//! Rows come from the schema itself, so a property that the grammar lacks fails here.

#![allow(clippy::unwrap_used, clippy::panic)]

mod common;

use common::{FakeHost, base, issues};
use serde_json::{Map, Value, json};
use wp_codebox_recipe::{PolicyChoice, parse};

/// Name of each definition in the public schema, and JSON pointer to its object in a recipe.
const PLACES: &[(&str, &str)] = &[
    ("runtime", "/runtime"),
    ("runtimePreview", "/runtime/preview"),
    ("runtimeAssets", "/runtime/assets"),
    ("phpWasmExtensionManifest", "/runtime/extensions/0"),
    ("runtimeBackendPackage", "/runtime/backendPackage"),
    ("runtimeStack", "/runtime/stack"),
    ("mount", "/runtime/stack/mounts/0"),
    ("runtimeOverlayBundle", "/runtime/overlays/0/bundle"),
    (
        "runtimeOverlayBundleFile",
        "/runtime/overlays/0/bundle/files/0",
    ),
    (
        "runtimeOverlayBundleConfigPrelude",
        "/runtime/overlays/0/bundle/configPreludes/0",
    ),
    (
        "runtimeOverlayBundleLocalRoute",
        "/runtime/overlays/0/bundle/localRoutes/0",
    ),
    (
        "runtimeOverlayBundlePatch",
        "/runtime/overlays/0/bundle/patches/0",
    ),
    (
        "runtimeOverlayBundleCapabilities",
        "/runtime/overlays/0/bundle/capabilities",
    ),
    (
        "runtimeOverlayBundleUnsupportedGap",
        "/runtime/overlays/0/bundle/unsupportedGaps/0",
    ),
    ("distribution", "/distribution"),
    ("distributionSourceMount", "/distribution/sourceMounts/0"),
    ("distributionWordPress", "/distribution/wordpress"),
    ("distributionServiceFake", "/distribution/serviceFakes/0"),
    ("distributionRouteAlias", "/distribution/routeAliases/0"),
    ("distributionStartupProbe", "/distribution/startupProbes/0"),
    (
        "distributionSetupArtifact",
        "/distribution/setupArtifacts/0",
    ),
    ("distributionArtifact", "/distribution/artifacts/0"),
    ("distributionSafety", "/distribution/safety"),
    ("mount", "/inputs/mounts/0"),
    ("workspace", "/inputs/workspaces/0"),
    ("workspaceSeed", "/inputs/workspaces/0/seed"),
    ("workspacePreload", "/inputs/workspace_preloads/0"),
    (
        "workspacePreloadRepository",
        "/inputs/workspace_preloads/0/payload/repositories/0",
    ),
    ("extraPlugin", "/inputs/extra_plugins/0"),
    ("componentManifest", "/inputs/component_manifest"),
    (
        "componentManifestEntry",
        "/inputs/component_manifest/components/0",
    ),
    ("dependencyOverlay", "/inputs/dependency_overlays/0"),
    ("sourcePackage", "/inputs/sourcePackages/0"),
];

/// Values that the fake host can fulfil, by definition and property; `*` is every definition.
fn chosen(definition: &str, property: &str) -> Option<Value> {
    Some(match (definition, property) {
        ("runtime", "wp") => json!("7.1"),
        ("runtime", "phpVersion") => json!("8.2"),
        ("runtime", "workers") => json!(2),
        ("runtime", "bundledExtensions") => json!(["intl"]),
        ("runtime", "extensions") => json!([]),
        ("runtimeAssets", "wordpressDirectory") => json!("./dir"),
        ("runtimeAssets", "wordpressZip") => json!("./good.zip"),
        ("mount" | "distributionSourceMount", "type") => json!("directory"),
        ("mount" | "distributionSourceMount", "target") => json!("/workspace/x"),
        ("runtime", "overlays") => {
            json!([{"kind": "bundled-library", "library": "php-ai-client", "source": "./dir", "strategy": "wordpress-scoped-bundle"}])
        }
        ("distributionSafety", "allowedHosts") => json!(["a.example.org"]),
        ("distributionServiceFake", "source") => json!("./code.php"),
        ("distributionServiceFake", "sideEffectsArtifact") => json!("wp-content/fake.json"),
        ("distributionSetupArtifact", "source") => json!("./file.txt"),
        ("distributionWordPress", "root") => json!("/wordpress"),
        ("distributionWordPress", "config") => json!("wp-config.php"),
        ("distributionWordPress", "bootstrap" | "bootstrapFile") => json!("wp-load.php"),
        ("distributionStartupProbe", "type") => json!("php"),
        ("distributionStartupProbe", "code") => json!("exit( 0 );"),
        ("distributionArtifact", "path") => json!("wp-content/a.json"),
        ("distribution", "constants" | "env") => json!({"MY_NAME": 1}),
        ("runtimeOverlayBundleFile", "path") => json!("/tmp/a.php"),
        ("runtimeOverlayBundleFile", "source") => json!("./good.zip"),
        ("runtimeOverlayBundleFile", "sha256") => json!(common::ZIP_SHA256),
        ("runtimeOverlayBundleConfigPrelude", "target") => json!("wp-config.php"),
        ("runtimeOverlayBundleConfigPrelude", "source") => json!("./code.php"),
        ("workspace", "target") => json!("/workspace/y"),
        ("workspaceSeed", "type") => json!("directory"),
        ("workspacePreloadRepository", "url") => json!("https://example.org/a.git"),
        ("extraPlugin", "pluginFile") => json!("main.php"),
        ("extraPlugin" | "workspaceSeed", "slug") => json!("shop"),
        ("extraPlugin", "mountSlug") => json!("dir"),
        ("extraPlugin", "sourceSubdir" | "sourceSubpath") => json!("sub"),
        ("extraPlugin", "sha256") => json!(common::ZIP_SHA256),
        ("componentManifestEntry", "slug") => json!("shop"),
        ("componentManifestEntry", "entrypoint" | "pluginFile") => json!("main.php"),
        ("dependencyOverlay", "consumer") => json!("own"),
        ("sourcePackage", "allow") => json!(["**"]),
        ("sourcePackage", "deny") => json!(["build"]),
        ("sourcePackage", "artifact") => json!({"path": "/workspace/text/a.json"}),
        ("sourcePackage", "target") => json!("text"),
        (_, "source" | "sourcePath") => json!("./dir"),
        _ => return None,
    })
}

/// Properties that are refused by name, with the code; `*` is every property of the definition.
const REFUSED: &[(&str, &str, &str)] = &[
    ("runtime", "backendPackage", "unsupported-backend-package"),
    ("runtime", "overlays", "unsupported-runtime-overlay"),
    ("runtimeBackendPackage", "*", "unsupported-backend-package"),
    ("phpWasmExtensionManifest", "*", "unsupported-php-extension"),
    (
        "runtimeOverlayBundle",
        "localRoutes",
        "unsupported-runtime-overlay",
    ),
    (
        "runtimeOverlayBundle",
        "patches",
        "unsupported-runtime-overlay",
    ),
    (
        "runtimeOverlayBundleLocalRoute",
        "*",
        "unsupported-runtime-overlay",
    ),
    (
        "runtimeOverlayBundlePatch",
        "*",
        "unsupported-runtime-overlay",
    ),
    ("distribution", "routeAliases", "unsupported-route-alias"),
    ("distributionRouteAlias", "*", "unsupported-route-alias"),
    (
        "distributionSafety",
        "allowedHosts",
        "undeclared-distribution-network",
    ),
    (
        "distributionSafety",
        "secretEnv",
        "invalid-distribution-secret-env",
    ),
    ("workspacePreload", "*", "unsupported-workspace-preload"),
    (
        "workspacePreloadRepository",
        "*",
        "unsupported-workspace-preload",
    ),
    ("extraPlugin", "sha256", "invalid-source-sha256"),
];

struct Schema(Value);

impl Schema {
    fn load() -> Self {
        let crate_root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
        let path = std::path::Path::new(&crate_root)
            .join("../../../tests/conformance/public/recipe.schema.json");
        Self(serde_json::from_str(&std::fs::read_to_string(path).unwrap()).unwrap())
    }

    fn definition(&self, name: &str) -> &Value {
        match name {
            "runtime" => &self.0["properties"]["runtime"],
            name => &self.0["$defs"][name],
        }
    }

    /// Returns the name of the definition to which a schema refers, and the schema behind it.
    fn resolved<'a>(&'a self, name: &'a str, schema: &'a Value) -> (&'a str, &'a Value) {
        match schema["$ref"].as_str() {
            Some(reference) => {
                let name = reference.rsplit('/').next().unwrap();
                self.resolved(name, self.definition(name))
            }
            None => (name, schema),
        }
    }

    /// Returns a value that the schema accepts.
    fn value(&self, name: &str, schema: &Value) -> Value {
        let (name, schema) = self.resolved(name, schema);
        if let Some(constant) = schema.get("const") {
            return constant.clone();
        }
        if let Some(words) = schema["enum"].as_array() {
            return words[0].clone();
        }
        for list in ["oneOf", "anyOf"] {
            if schema["properties"].is_null()
                && let Some(rows) = schema[list].as_array()
            {
                return self.value(name, &rows[rows.len() - 1]);
            }
        }
        match schema["type"].as_str() {
            Some("boolean") => json!(true),
            Some("integer") => schema.get("minimum").cloned().unwrap_or(json!(1)),
            Some("array") => json!([self.value(name, &schema["items"])]),
            Some("object") => self.object(name, schema, None),
            _ if schema["properties"].is_object() => self.object(name, schema, None),
            _ => json!(match schema["pattern"].as_str() {
                Some(p) if p.starts_with("^/") => "/workspace/text",
                Some(p) if p.contains("{40,64}") => "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa",
                Some(p) if p.contains("{64}") => common::ZIP_SHA256,
                Some(p) if p.contains("A-Z_]") && !p.contains("a-z") => "API_KEY",
                Some(p) if p.contains(r"\.[0-9]") => "8.2",
                Some(p) if p.contains(")/[") || p.contains("]+/[") => "a/b",
                _ => "text",
            }),
        }
    }

    /// Returns an object with the required properties and the one named in `with`.
    fn object(&self, name: &str, schema: &Value, with: Option<&str>) -> Value {
        let mut object = Map::new();
        let required = schema["required"].as_array().into_iter().flatten();
        let mut names: Vec<&str> = required.map(|r| r.as_str().unwrap()).collect();
        // The object needs at least one of `source`, `sourcePath` and `contents`.
        if schema["anyOf"].is_array()
            && with.is_none_or(|w| !["source", "sourcePath", "contents"].contains(&w))
        {
            names.push("source");
        }
        match name {
            "componentManifestEntry" | "workspaceSeed" => names.push("source"),
            "distributionStartupProbe" => names.push("code"),
            _ => {}
        }
        names.extend(with);
        for property in names {
            let value = chosen(name, property)
                .unwrap_or_else(|| self.value(name, &schema["properties"][property]));
            object.insert(property.to_owned(), value);
        }
        Value::Object(object)
    }

    /// Returns a recipe with an object at a place, and what the objects around it require.
    fn recipe(&self, place: &str, object: &Value) -> Value {
        let mut recipe = base();
        if place.starts_with("/distribution") {
            recipe["distribution"] =
                self.object("distribution", self.definition("distribution"), None);
        }
        if place.starts_with("/runtime/overlays") {
            let bundle = self.object(
                "runtimeOverlayBundle",
                self.definition("runtimeOverlayBundle"),
                None,
            );
            recipe["runtime"] =
                json!({"overlays": [{"kind": "runtime-overlay-bundle", "bundle": bundle}]});
        }
        for (name, list) in [
            ("workspace", "workspaces"),
            ("workspacePreload", "workspace_preloads"),
        ] {
            if place.starts_with(&format!("/inputs/{list}/0/")) {
                recipe["inputs"] = json!({list: [self.object(name, self.definition(name), None)]});
            }
        }
        if place.starts_with("/inputs/dependency_overlays/") {
            recipe["inputs"] = json!({"extra_plugins": [{"source": "./needs", "slug": "own"}]});
        }
        if place.starts_with("/inputs/component_manifest/") {
            recipe["inputs"] =
                json!({"component_manifest": {"schema": "wp-codebox/component-manifest/v1"}});
        }
        let mut here = &mut recipe;
        for segment in place[1..].split('/') {
            here = match segment.parse::<usize>() {
                Ok(_) => {
                    if here.as_array().is_none_or(Vec::is_empty) {
                        *here = json!([null]);
                    }
                    &mut here[0]
                }
                Err(_) => &mut here[segment],
            };
        }
        *here = object.clone();
        recipe
    }
}

fn path_of(place: &str, property: &str) -> String {
    let mut path = "$".to_owned();
    for segment in place[1..].split('/') {
        match segment {
            "0" => path.push_str("[0]"),
            name => path.push_str(&format!(".{name}")),
        }
    }
    format!("{path}.{property}")
}

/// Calls `each` with the definition, the place, the property and its schema. Returns the number of
/// calls.
fn properties(schema: &Schema, mut each: impl FnMut(&str, &str, &str, &Value)) -> usize {
    let mut count = 0;
    for (definition, place) in PLACES {
        let found = schema.definition(definition);
        for (property, row) in found["properties"].as_object().unwrap() {
            each(definition, place, property, row);
            count += 1;
        }
    }
    count
}

#[test]
fn valid_value_of_each_public_schema_property_is_accepted_unless_listed_as_refused() {
    let (schema, host) = (Schema::load(), FakeHost::default());
    let mut wrong = Vec::new();
    let count = properties(&schema, |definition, place, property, _| {
        let object = schema.object(definition, schema.definition(definition), Some(property));
        let recipe = schema.recipe(place, &object);
        let found: Vec<_> = issues(&recipe, &host, PolicyChoice::Derived)
            .into_iter()
            .map(|i| (i.code.as_str(), i.path))
            .collect();
        let refused = REFUSED
            .iter()
            .find(|(d, p, _)| *d == definition && (*p == property || *p == "*"));
        let below = path_of(place, "");
        let good = match refused {
            None => found.is_empty(),
            Some((_, _, code)) => {
                !found.is_empty()
                    && found.iter().all(|(c, path)| {
                        c == code
                            && (path.starts_with(below.trim_end_matches('.'))
                                || below.starts_with(path.as_str()))
                    })
            }
        };
        if !good {
            wrong.push(format!(
                "{definition}.{property} at {place}: {found:?}\n   {object}"
            ));
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(count >= 150, "{count}");
}

#[test]
fn wrong_type_of_each_public_schema_property_is_refused_with_its_path() {
    let schema = Schema::load();
    let mut wrong = Vec::new();
    properties(&schema, |definition, place, property, row| {
        // A package of a backend is refused as a whole, whatever it contains.
        if definition == "runtimeBackendPackage" {
            return;
        }
        let mut object = schema.object(definition, schema.definition(definition), Some(property));
        let (_, row) = schema.resolved(definition, row);
        let text = row["type"] == "string";
        object[property] = if text { json!(7) } else { json!("\u{0}wrong") };
        let recipe = schema.recipe(place, &object);
        let found = parse(recipe.to_string().as_bytes())
            .err()
            .unwrap_or_default();
        let path = path_of(place, property);
        // Members of an overlay are alternatives, so the issue may name the overlay.
        let named = |found: &str| {
            found == path
                || (place.contains("/overlays/0") && found.starts_with("$.runtime.overlays[0]"))
        };
        if !found.iter().any(|issue| named(&issue.path)) {
            let found: Vec<_> = found.iter().map(|i| (i.code.as_str(), &i.path)).collect();
            wrong.push(format!("{definition}.{property} at {place}: {found:?}"));
        }
    });
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

#[test]
fn unknown_property_of_each_public_schema_object_is_refused_with_its_path() {
    let schema = Schema::load();
    for (definition, place) in PLACES {
        let found = schema.definition(definition);
        if found["additionalProperties"] != json!(false) {
            continue;
        }
        let mut object = schema.object(definition, found, None);
        object["zzUnknown"] = json!(1);
        let recipe = schema.recipe(place, &object);
        let found = parse(recipe.to_string().as_bytes())
            .err()
            .unwrap_or_default();
        let path = path_of(place, "zzUnknown");
        assert!(
            found
                .iter()
                .any(|i| i.path == path || i.path.starts_with("$.runtime.overlays[0]")),
            "{definition} at {place}: {found:?}"
        );
    }
}

/// Returns the path of a place as `docs/compatibility.md` writes it.
fn listed_path(place: &str, property: &str) -> String {
    let path = match property {
        "*" => path_of(place, "").trim_end_matches('.').to_owned(),
        name => path_of(place, name),
    };
    path.replace("[0]", "[]")
}

/// Whether `path` is `listed` or lies below it.
fn is_below(path: &str, listed: &str) -> bool {
    path.strip_prefix(listed)
        .is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
}

#[test]
fn differences_file_lists_exactly_the_recipe_properties_that_validation_refuses() {
    let (schema, host) = (Schema::load(), FakeHost::default());
    let crate_root = std::env::var_os("CARGO_MANIFEST_DIR").unwrap();
    let file = std::path::Path::new(&crate_root)
        .join("../../../tests/conformance/public/differences.json");
    let differences: Value = serde_json::from_str(&std::fs::read_to_string(file).unwrap()).unwrap();
    let listed: Vec<&str> = differences["recipes"]
        .as_array()
        .unwrap()
        .iter()
        .flat_map(|row| row["names"].as_array().unwrap())
        .map(|name| name.as_str().unwrap())
        .collect();
    // The property `overlays` is not refused as a whole, only the kind that `chosen` returns.
    let whole = REFUSED.iter().filter(|(d, p, code)| {
        code.starts_with("unsupported-") && (*d, *p) != ("runtime", "overlays")
    });
    let mut refused: Vec<String> = whole
        .flat_map(|(definition, property, _)| {
            let places = PLACES.iter().filter(move |(d, _)| d == definition);
            places.map(move |(_, place)| listed_path(place, property))
        })
        .collect();
    for section in ["fuzzRun", "adversarialCampaigns"] {
        let mut recipe = base();
        recipe[section] = schema.value(section, &schema.0["properties"][section]);
        let path = format!("$.{section}");
        let found = issues(&recipe, &host, PolicyChoice::Derived);
        if found
            .iter()
            .any(|i| i.path == path && i.code.as_str().starts_with("unsupported-"))
        {
            refused.push(path);
        }
    }
    for path in &refused {
        assert!(
            listed.iter().any(|l| is_below(path, l)),
            "{path} is refused and not listed"
        );
    }
    for path in &listed {
        assert!(
            refused.iter().any(|r| is_below(r, path)),
            "{path} is listed and not refused"
        );
    }
}
