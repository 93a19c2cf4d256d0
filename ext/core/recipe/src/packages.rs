//! Plugins that a recipe adds beside `inputs.extra_plugins`, and host directories that it copies or
//! that replace Composer packages.

use crate::model::{ExtraPlugin, LoadAs, Recipe};
use crate::places::normal;
use serde_json::Value;

/// Returns all plugins that the run adds, with their JSON paths: `inputs.extra_plugins`, then the
/// components of `inputs.component_manifest` that have a source. Components that describe a plugin
/// of `inputs.extra_plugins` are left out.
pub(crate) fn plugins(recipe: &Recipe) -> Vec<(String, ExtraPlugin)> {
    let own = recipe.inputs.extra_plugins.iter().enumerate();
    let mut all: Vec<(String, ExtraPlugin)> = own
        .map(|(index, plugin)| (format!("$.inputs.extra_plugins[{index}]"), plugin.clone()))
        .collect();
    for (path, row) in components(recipe) {
        if known(recipe, row) {
            continue;
        }
        if let Some(plugin) = component(row) {
            all.push((path, plugin));
        }
    }
    all
}

/// Returns the components and providers of the recipe's manifest with their JSON paths.
pub(crate) fn components(recipe: &Recipe) -> Vec<(String, &Value)> {
    let mut all = Vec::new();
    for list in ["components", "providers"] {
        let manifest = recipe.inputs.component_manifest.as_ref();
        let rows = manifest.and_then(|m| m.get(list)).and_then(Value::as_array);
        for (index, row) in rows.into_iter().flatten().enumerate() {
            all.push((format!("$.inputs.component_manifest.{list}[{index}]"), row));
        }
    }
    all
}

/// Returns whether `inputs.extra_plugins` has the plugin that a component describes.
pub(crate) fn known(recipe: &Recipe, row: &Value) -> bool {
    let slug = row.get("slug").and_then(Value::as_str);
    let rows = &recipe.inputs.extra_plugins;
    slug.is_some()
        && rows
            .iter()
            .any(|p| p.slug.as_deref() == slug || p.mount_slug.as_deref() == slug)
}

/// Returns a component as a plugin; `None` if it has no source.
fn component(row: &Value) -> Option<ExtraPlugin> {
    let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
    let load_as = match text("loadAs").as_deref() {
        Some("plugin") => LoadAs::Plugin,
        _ => LoadAs::MuPlugin,
    };
    Some(ExtraPlugin {
        source: Some(text("source")?),
        source_path: None,
        source_root: None,
        source_subpath: None,
        source_subdir: None,
        original_source: text("requestedPath"),
        slug: text("slug"),
        mount_slug: None,
        plugin_file: text("pluginFile").or_else(|| text("entrypoint")),
        activate: Some(
            row.get("activate")
                .and_then(Value::as_bool)
                .unwrap_or(false),
        ),
        load_as: Some(load_as),
        composer: None,
        sha256: None,
        metadata: None,
    })
}

/// A directory of the host that the guest gets as a read-only copy without some of its entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct SourcePackage {
    /// JSON path of the package's entry in the recipe.
    pub path: String,
    pub name: String,
    pub source: String,
    pub target: String,
    pub deny: Vec<String>,
    /// A file of the package that becomes an artifact.
    pub artifact: Option<PackageArtifact>,
}

/// A file that becomes an artifact of the run.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct PackageArtifact {
    pub name: String,
    pub path: String,
    /// Whether the run fails if the file is missing.
    pub required: bool,
}

/// Returns the source packages of the recipe. A relative target lies below `/workspace`.
pub(crate) fn source_packages(recipe: &Recipe) -> Vec<SourcePackage> {
    let rows = recipe.inputs.source_packages.iter().enumerate();
    rows.map(|(index, row)| {
        let text = |name: &str| {
            row.get(name)
                .and_then(Value::as_str)
                .unwrap_or_default()
                .to_owned()
        };
        let target = text("target");
        let target = match target.starts_with('/') {
            true => normal(&target),
            false => normal(&format!("/workspace/{target}")),
        };
        let deny = row
            .get("deny")
            .and_then(Value::as_array)
            .into_iter()
            .flatten();
        let artifact = row.get("artifact");
        let file = artifact.and_then(|a| a.get("path")).and_then(Value::as_str);
        let own = artifact.and_then(|a| a.get("name")).and_then(Value::as_str);
        let required = artifact
            .and_then(|a| a.get("required"))
            .and_then(Value::as_bool);
        SourcePackage {
            path: format!("$.inputs.sourcePackages[{index}]"),
            name: text("name"),
            source: text("source"),
            target,
            deny: deny
                .filter_map(Value::as_str)
                .map(|p| p.trim_end_matches("/**").trim_end_matches('/').to_owned())
                .collect(),
            artifact: file.map(|file| PackageArtifact {
                name: own.map_or_else(|| text("name"), str::to_owned),
                path: normal(file),
                required: required.unwrap_or(false),
            }),
        }
    })
    .collect()
}

/// A Composer package of a plugin that a directory of the host replaces.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct DependencyOverlay {
    /// JSON path of the overlay's entry in the recipe.
    pub path: String,
    pub package: String,
    pub source: String,
    pub consumer: String,
    pub reference: Option<String>,
}

/// Returns the dependency overlays of the recipe.
pub(crate) fn dependency_overlays(recipe: &Recipe) -> Vec<DependencyOverlay> {
    let rows = recipe.inputs.dependency_overlays.iter().enumerate();
    rows.map(|(index, row)| {
        let text = |name: &str| row.get(name).and_then(Value::as_str).map(str::to_owned);
        DependencyOverlay {
            path: format!("$.inputs.dependency_overlays[{index}]"),
            package: text("package").unwrap_or_default(),
            source: text("source").unwrap_or_default(),
            consumer: text("consumer").unwrap_or_default(),
            reference: text("reference"),
        }
    })
    .collect()
}
