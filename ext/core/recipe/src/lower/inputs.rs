//! Converts mounts, workspaces, plugins, service fakes and files to a run request.

use super::lowered::Lowered;
use super::scaffold;
use crate::blueprint::PackageSource;
use crate::layout::{self, PluginSource};
use crate::model::{
    Access, FakeLoad, LoadAs, Metadata, Recipe, SeedKind, SourceKind, SourceMode, Workspace,
};
use crate::overlay::{self, Content};
use crate::packages;
use crate::places::{self, FileView};
use crate::sources::{PathKind, Sources};
use serde_json::json;
use std::collections::BTreeMap;
use wp_codebox_contracts::{
    CollectedFile, Component, ComponentLoad, GeneratedDirectory, GeneratedFrom, GitChoice,
    MountAccess, MountRequest, StagedFile, WrittenFile,
};

/// Source path of a mount or component whose files are generated. A request must state an existing
/// host path as source, but the run never reads this one.
const NOTHING: &str = "/dev/null";

pub(super) fn add(recipe: &Recipe, sources: &dyn Sources, all: &mut Lowered) {
    if let Some(distribution) = &recipe.distribution {
        for mount in &distribution.source_mounts {
            let mut metadata = mount.metadata.clone().unwrap_or_default();
            for (name, value) in [("role", &mount.role), ("ref", &mount.reference)] {
                if let Some(value) = value {
                    metadata.insert(name.to_owned(), json!(value));
                }
            }
            place(
                all,
                sources,
                Placed {
                    kind: mount.kind,
                    source: &mount.source,
                    target: &mount.target,
                    mode: access(mount.mode, Access::Readonly),
                    git: GitChoice::Auto,
                    metadata,
                },
            );
        }
        for (index, fake) in distribution.service_fakes.iter().enumerate() {
            match fake.load.unwrap_or(FakeLoad::MuPlugin) {
                FakeLoad::MuPlugin => fake_service(all, index, &fake.name, &fake.source),
                // The settings file, which `wp-config.php` requires, loads a `PreBootstrap` fake.
                // Code of the recipe itself must load a `Manual` fake.
                FakeLoad::PreBootstrap | FakeLoad::Manual => {
                    stage(all, &fake.source, layout::staged_fake(index));
                }
            }
        }
        for (index, dump) in distribution.setup_artifacts.iter().enumerate() {
            stage(all, &dump.source, layout::staged_dump(index));
        }
    }
    for (index, (_, mount)) in places::mounts(recipe).into_iter().enumerate() {
        let mode = access(mount.mode, Access::Readwrite);
        let is_file = places::is_file(mount.kind, &mount.source, sources);
        let uncaptured = mount.capture_artifacts == Some(false);
        if is_file {
            // Validation has refused a file that must be writable where guests cannot write.
            match places::file_view(&mount.target, mount.mode).unwrap_or(FileView::Shown) {
                FileView::Shown => stage(all, &mount.source, mount.target.clone()),
                FileView::Copied => {
                    stage(all, &mount.source, places::staged_mount(index));
                    if !uncaptured {
                        collect_file(all, format!("mount-{index}"), mount.target.clone());
                    }
                }
            }
            continue;
        }
        if uncaptured && mode == MountAccess::Readwrite {
            all.workflow.uncaptured.push(mount.target.clone());
        }
        place(
            all,
            sources,
            Placed {
                kind: mount.kind,
                source: &mount.source,
                target: &mount.target,
                mode,
                git: mount.git.unwrap_or_default(),
                metadata: mount.metadata.clone().unwrap_or_default(),
            },
        );
    }
    add_overlays(recipe, all);
    add_source_packages(recipe, all);
    add_packages(recipe, sources, all);
    for workspace in &recipe.inputs.workspaces {
        add_workspace(all, workspace);
    }
    add_plugins(recipe, sources, all);
    add_dependencies(recipe, sources, all);
    for staged in &recipe.inputs.staged_files {
        stage(all, &staged.source, staged.target.clone());
    }
    for placed in layout::setup(recipe)
        .iter()
        .chain(&layout::workflow(recipe))
        .chain(&layout::probes(recipe))
    {
        for file in placed.files() {
            stage(all, file.host, file.target);
        }
    }
}

fn stage(all: &mut Lowered, source: &str, target: String) {
    all.workflow.staged.push(StagedFile {
        source: source.to_owned(),
        target,
    });
}

struct Placed<'a> {
    kind: Option<SourceKind>,
    source: &'a str,
    target: &'a str,
    mode: MountAccess,
    git: GitChoice,
    metadata: Metadata,
}

/// Adds a directory as a mount, or a file as a read-only copy.
fn place(all: &mut Lowered, sources: &dyn Sources, placed: Placed<'_>) {
    let is_file = match placed.kind {
        Some(SourceKind::File) => true,
        Some(SourceKind::Directory) => false,
        None => sources.kind(placed.source) == PathKind::File,
    };
    if is_file {
        stage(all, placed.source, placed.target.to_owned());
        return;
    }
    all.mounts.push(MountRequest {
        source: placed.source.to_owned(),
        target: placed.target.to_owned(),
        mode: placed.mode,
        exclude: Vec::new(),
        git: placed.git,
        metadata: (!placed.metadata.is_empty()).then_some(placed.metadata),
    });
}

fn add_workspace(all: &mut Lowered, workspace: &Workspace) {
    // Validation has refused a workspace without a target.
    let Some(target) = layout::workspace_target(workspace) else {
        return;
    };
    let seed = &workspace.seed;
    let from = match seed.kind {
        SeedKind::Plugin => Some(GeneratedFrom::Files {
            files: scaffold::plugin(seed),
        }),
        SeedKind::Theme => Some(GeneratedFrom::Files {
            files: scaffold::theme(seed),
        }),
        SeedKind::Directory if seed.exclude_paths.is_empty() => None,
        SeedKind::Directory => Some(GeneratedFrom::Copy {
            without: seed
                .exclude_paths
                .iter()
                .map(|p| p.strip_suffix("/**").unwrap_or(p).to_owned())
                .collect(),
        }),
    };
    if let Some(from) = from {
        all.workflow.made.push(GeneratedDirectory {
            of: target.clone(),
            from,
        });
    }
    let source_mode = workspace.source_mode.unwrap_or(SourceMode::Repo);
    let mut metadata = Metadata::new();
    metadata.insert("kind".to_owned(), json!("workspace"));
    metadata.insert("seed".to_owned(), json!(seed.kind));
    metadata.insert("sourceMode".to_owned(), json!(source_mode));
    all.mounts.push(MountRequest {
        source: seed.source.clone().unwrap_or_else(|| NOTHING.to_owned()),
        target,
        mode: access(workspace.mode, Access::Readwrite),
        exclude: Vec::new(),
        git: workspace.git.unwrap_or_default(),
        metadata: Some(metadata),
    });
}

fn add_plugins(recipe: &Recipe, sources: &dyn Sources, all: &mut Lowered) {
    for (_, plugin) in packages::plugins(recipe) {
        let placed = layout::place_plugin(&plugin, sources);
        let source = match placed.from {
            PluginSource::Zip => {
                all.workflow.made.push(GeneratedDirectory {
                    of: placed.directory.clone(),
                    from: GeneratedFrom::Archive {
                        sha256: plugin.sha256.clone(),
                        subdir: layout::plugin_subdir(&plugin).map(str::to_owned),
                    },
                });
                placed.source.to_owned()
            }
            // Validation has refused every source that is neither a zip archive nor a directory.
            PluginSource::Directory
            | PluginSource::Remote
            | PluginSource::Missing
            | PluginSource::Denied
            | PluginSource::Other => layout::plugin_root(&plugin, placed.source),
        };
        let entry = placed
            .file
            .strip_prefix(&format!("{}/", placed.directory))
            .map(str::to_owned);
        all.components.push(Component {
            slug: placed.directory,
            source,
            load_as: match placed.load_as {
                LoadAs::Plugin => ComponentLoad::Plugin,
                LoadAs::MuPlugin => ComponentLoad::MuPlugin,
            },
            entry,
            // A separate step activates all plugins, so that a failed activation is recorded as a
            // failed step.
            activate: false,
            required: true,
            readiness_probe: None,
        });
    }
}

/// Adds the changed content of a single file to the files that the run collects.
fn collect_file(all: &mut Lowered, name: String, path: String) {
    all.workflow.collect.push(CollectedFile {
        name,
        path,
        required: false,
        parse_json: false,
        typed: Metadata::new(),
    });
}

fn add_overlays(recipe: &Recipe, all: &mut Lowered) {
    let mut add = |content: &Content, target: String| match content {
        Content::Source(source) => all.workflow.staged.push(StagedFile {
            source: source.clone(),
            target,
        }),
        Content::Text(text) => all.workflow.files.push(WrittenFile {
            target,
            content: text.clone(),
        }),
    };
    for (index, file) in overlay::files(recipe).into_iter().enumerate() {
        let view = places::file_view(&file.target, Some(file.mode));
        let copied = view == Some(FileView::Copied);
        add(
            &file.content,
            if copied {
                overlay::staged(index)
            } else {
                file.target
            },
        );
    }
    for (index, prelude) in overlay::preludes(recipe).into_iter().enumerate() {
        add(&prelude.content, overlay::staged_prelude(index));
    }
}

fn add_source_packages(recipe: &Recipe, all: &mut Lowered) {
    for package in packages::source_packages(recipe) {
        let metadata = Metadata::from_iter([
            ("kind".to_owned(), json!("source-package")),
            ("name".to_owned(), json!(package.name)),
        ]);
        all.workflow.made.push(GeneratedDirectory {
            of: package.target.clone(),
            from: GeneratedFrom::Copy {
                without: package.deny,
            },
        });
        all.mounts
            .push(shown(package.source, package.target, metadata));
        if let Some(artifact) = package.artifact {
            all.workflow.collect.push(CollectedFile {
                name: artifact.name,
                path: artifact.path,
                required: artifact.required,
                parse_json: false,
                typed: Metadata::new(),
            });
        }
    }
}

/// Adds the plugins and themes that the blueprint installs from the host or from its own text.
fn add_packages(recipe: &Recipe, sources: &dyn Sources, all: &mut Lowered) {
    for package in crate::blueprint::packages(recipe, sources) {
        let target = package.target();
        let source = match &package.source {
            PackageSource::Local(source) => source.clone(),
            PackageSource::Files(_) => NOTHING.to_owned(),
        };
        let from = match package.source {
            PackageSource::Files(files) => Some(GeneratedFrom::Files { files }),
            PackageSource::Local(_) if sources.kind(&source) == PathKind::File => {
                Some(GeneratedFrom::Archive {
                    sha256: None,
                    subdir: None,
                })
            }
            PackageSource::Local(_) => None,
        };
        if let Some(from) = from {
            all.workflow.made.push(GeneratedDirectory {
                of: target.clone(),
                from,
            });
        }
        let metadata = Metadata::from_iter([
            ("kind".to_owned(), json!("blueprint-package")),
            ("step".to_owned(), json!(package.path)),
        ]);
        all.mounts.push(shown(source, target, metadata));
    }
}

/// Adds the directories that replace Composer packages of plugins.
fn add_dependencies(recipe: &Recipe, sources: &dyn Sources, all: &mut Lowered) {
    let plugins = packages::plugins(recipe);
    for overlay in packages::dependency_overlays(recipe) {
        let placed = plugins
            .iter()
            .map(|(_, plugin)| layout::place_plugin(plugin, sources))
            .find(|p| p.slug == overlay.consumer || p.directory == overlay.consumer);
        // Validation has refused an overlay of a plugin that the recipe does not add.
        let Some(placed) = placed else {
            continue;
        };
        let mut metadata = Metadata::from_iter([
            ("kind".to_owned(), json!("composer-package")),
            ("package".to_owned(), json!(overlay.package)),
        ]);
        if let Some(reference) = overlay.reference {
            metadata.insert("reference".to_owned(), json!(reference));
        }
        let target = format!("{}/vendor/{}", placed.target, overlay.package);
        all.mounts.push(shown(overlay.source, target, metadata));
    }
}

/// Returns a read-only mount without a git repository.
fn shown(source: String, target: String, metadata: Metadata) -> MountRequest {
    MountRequest {
        source,
        target,
        mode: MountAccess::Readonly,
        exclude: Vec::new(),
        git: GitChoice::None,
        metadata: Some(metadata),
    }
}

/// Adds a service fake: a PHP file that the guest's WordPress loads as a must-use plugin.
fn fake_service(all: &mut Lowered, index: usize, name: &str, source: &str) {
    let staged = layout::staged_fake(index);
    let slug = format!("fake-{index}-{name}");
    let loader = format!(
        "<?php\n// Loads a stand-in for a service.\nrequire rtrim( dirname( ABSPATH ), '/' ) . '{staged}';\n"
    );
    all.workflow.made.push(GeneratedDirectory {
        of: slug.clone(),
        from: GeneratedFrom::Files {
            files: BTreeMap::from([("load.php".to_owned(), loader)]),
        },
    });
    all.components.push(Component {
        slug,
        source: NOTHING.to_owned(),
        load_as: ComponentLoad::MuPlugin,
        entry: Some("load.php".to_owned()),
        activate: false,
        required: true,
        readiness_probe: None,
    });
    stage(all, source, staged);
}

const fn access(given: Option<Access>, default: Access) -> MountAccess {
    let access = match given {
        Some(access) => access,
        None => default,
    };
    match access {
        Access::Readonly => MountAccess::Readonly,
        Access::Readwrite => MountAccess::Readwrite,
    }
}
