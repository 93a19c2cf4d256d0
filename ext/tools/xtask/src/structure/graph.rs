//! Dependency graph between the source files of a crate, and its cycles.
//!
//! An arrow leads from a file to the file that *defines* the used name, through any re-exports.
//! A `mod.rs` or `lib.rs` that only declares and re-exports its children is a facade: it has no
//! arrows and is in no cycle. Naming a module alone is not a use; paths through the module are.
//! `use parent::*` counts as a use of those names of the parent that occur in the importing
//! file.

use super::source::{self, Path, Source};
use crate::findings::TaskError;
use crate::tree;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path as FilePath, PathBuf};

/// Maximum length of a `use` chain; longer ones are treated as circular and dropped.
const MAX_REEXPORTS: usize = 32;

struct Module {
    file: usize,
    parent: Option<usize>,
    children: BTreeMap<String, usize>,
    source: Source,
}

#[derive(Clone, Copy)]
enum Target {
    Module(usize),
    /// An item (function, type, constant), given as the index of the file that defines it.
    Item(usize),
}

/// The files of one crate and the arrows (uses) between them.
#[derive(Default)]
pub(super) struct Graph {
    /// Paths of the crate's files, relative to its `src`.
    pub(super) files: Vec<String>,
    /// Number of lines of all files together, without unit tests.
    pub(super) lines: usize,
    /// Uses of one file by another: the key is `(user, used)` as indexes of `files`, the value the
    /// paths in the source code that cause the use.
    pub(super) arrows: BTreeMap<(usize, usize), BTreeSet<String>>,
    modules: Vec<Module>,
}

impl Graph {
    /// Reads a crate, starting with the root module in its `src` directory.
    pub(super) fn read(src: &FilePath) -> Result<Graph, TaskError> {
        let mut graph = Graph::default();
        for root in ["lib.rs", "main.rs"] {
            if src.join(root).is_file() {
                graph.file(src, src, &src.join(root), None)?;
            }
        }
        let modules = 0..graph.modules.len();
        for (arrow, path) in modules
            .flat_map(|module| graph.arrows_of(module))
            .collect::<Vec<_>>()
        {
            graph.arrows.entry(arrow).or_default().insert(path);
        }
        Ok(graph)
    }

    /// Reads the file of a module; the files of its child modules are below `directory`.
    fn file(
        &mut self,
        src: &FilePath,
        directory: &FilePath,
        file: &FilePath,
        parent: Option<usize>,
    ) -> Result<usize, TaskError> {
        let text = tree::read(file)?;
        let source = source::read(&text)
            .map_err(|error| TaskError::Findings(vec![format!("{}: {error}", file.display())]))?;
        self.lines += text.lines().count().saturating_sub(source.test_lines);
        self.files.push(tree::shown(src, file));
        self.module(src, directory, source, parent)
    }

    /// Adds a module that is in the most recently added file, then its child modules.
    fn module(
        &mut self,
        src: &FilePath,
        directory: &FilePath,
        mut source: Source,
        parent: Option<usize>,
    ) -> Result<usize, TaskError> {
        let files = std::mem::take(&mut source.files);
        let inline = std::mem::take(&mut source.inline);
        let index = self.modules.len();
        let mut children = BTreeMap::new();
        self.modules.push(Module {
            file: self.files.len() - 1,
            parent,
            children: BTreeMap::new(),
            source,
        });
        for (name, source) in inline {
            let child = self.module(src, &directory.join(&name), source, Some(index))?;
            children.insert(name, child);
        }
        for name in files {
            let below = directory.join(&name);
            let nested = below.join("mod.rs");
            let file: PathBuf = if nested.is_file() {
                nested
            } else {
                below.with_extension("rs")
            };
            let child = self.file(src, &below, &file, Some(index))?;
            children.insert(name, child);
        }
        self.modules[index].children = children;
        Ok(index)
    }

    /// Returns the arrows that start in a module, each with the path in the source code that causes
    /// it.
    fn arrows_of(&self, module: usize) -> Vec<((usize, usize), String)> {
        let Module { file, source, .. } = &self.modules[module];
        let imported = source.imports.iter().filter_map(|(name, import)| {
            (!import.reexported || source.words.contains(name)).then_some(&import.path)
        });
        let mut used: Vec<(Option<Target>, String)> = imported
            .chain(&source.paths)
            .map(|path| (self.resolve(module, path, 0), path.join("::")))
            .collect();
        for path in &source.globs {
            if let Some(Target::Module(parent)) = self.resolve(module, path, 0) {
                let words = source.words.iter();
                used.extend(words.map(|word| (self.name(parent, word, 0), word.clone())));
            }
        }
        let others = used.into_iter().filter_map(|(target, path)| match target? {
            Target::Item(used) if used != *file => Some(((*file, used), path)),
            _ => None,
        });
        others.collect()
    }

    /// Returns what a path in `module` refers to; `None` if it leads out of the crate.
    fn resolve(&self, module: usize, path: &Path, depth: usize) -> Option<Target> {
        let mut at = Target::Module(module);
        for (index, segment) in path.iter().enumerate() {
            let Target::Module(here) = at else { break };
            at = match segment.as_str() {
                "crate" if index == 0 => Target::Module(self.root(here)),
                "self" if index == 0 => at,
                "super" => Target::Module(self.modules[here].parent?),
                name => match self.name(here, name, depth) {
                    Some(target) => target,
                    None if index == 0 => return None,
                    // A macro defines this name, which the tokens do not show: take the module's
                    // own file.
                    None => Target::Item(self.modules[here].file),
                },
            };
        }
        Some(at)
    }

    /// Returns what a name inside a module refers to: a child module, an item or an import.
    fn name(&self, module: usize, name: &str, depth: usize) -> Option<Target> {
        if depth > MAX_REEXPORTS {
            return None;
        }
        let Module {
            file,
            children,
            source,
            ..
        } = &self.modules[module];
        if let Some(child) = children.get(name) {
            return Some(Target::Module(*child));
        }
        if source.defined.contains(name) {
            return Some(Target::Item(*file));
        }
        if let Some(import) = source.imports.get(name) {
            return self.resolve(module, &import.path, depth + 1);
        }
        source
            .globs
            .iter()
            .find_map(|path| match self.resolve(module, path, depth + 1)? {
                Target::Module(used) => self.name(used, name, depth + 1),
                Target::Item(_) => None,
            })
    }

    fn root(&self, mut module: usize) -> usize {
        while let Some(parent) = self.modules[module].parent {
            module = parent;
        }
        module
    }

    /// Returns the cycles: sets of files that all reach each other, sorted by path.
    pub(super) fn circles(&self) -> Vec<Vec<&str>> {
        let reached: Vec<BTreeSet<usize>> =
            (0..self.files.len()).map(|file| self.reach(file)).collect();
        let mut circles: Vec<Vec<&str>> = reached
            .iter()
            .enumerate()
            .filter(|(file, below)| below.contains(file))
            .map(|(file, below)| {
                let circle = below
                    .iter()
                    .filter(|other| reached[**other].contains(&file));
                let mut circle: Vec<&str> =
                    circle.map(|other| self.files[*other].as_str()).collect();
                circle.sort_unstable();
                circle
            })
            .collect();
        circles.sort();
        circles.dedup();
        circles
    }

    /// Returns every file that `file` uses, directly or indirectly.
    fn reach(&self, file: usize) -> BTreeSet<usize> {
        let mut reached = BTreeSet::new();
        let mut open = vec![file];
        while let Some(user) = open.pop() {
            for (_, used) in self.arrows.keys().filter(|(from, _)| *from == user) {
                if reached.insert(*used) {
                    open.push(*used);
                }
            }
        }
        reached
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    fn graph(files: &[(&str, &str)]) -> Graph {
        let place = tempfile::tempdir().unwrap();
        for (name, text) in files {
            let path = place.path().join(name);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        Graph::read(place.path()).unwrap()
    }

    fn arrows(graph: &Graph) -> Vec<String> {
        let mut shown: Vec<String> = graph
            .arrows
            .keys()
            .map(|(user, used)| format!("{} > {}", graph.files[*user], graph.files[*used]))
            .collect();
        shown.sort();
        shown
    }

    #[test]
    fn use_of_a_reexported_name_is_a_dependency_on_the_defining_file() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b;\npub use b::Late as Renamed;"),
            (
                "a.rs",
                "use crate::Renamed;\nfn f() -> super::b::Late { matches!(x, crate::b::C) }",
            ),
            (
                "b/mod.rs",
                "mod late; mod other;\npub use late::*;\npub(crate) use other::C;",
            ),
            ("b/late.rs", "pub struct Late;"),
            ("b/other.rs", "pub const C: u8 = 0;"),
        ]);
        assert_eq!(arrows(&graph), ["a.rs > b/late.rs", "a.rs > b/other.rs"]);
        assert!(graph.circles().is_empty());
    }

    #[test]
    fn parent_module_with_code_and_its_child_can_form_a_cycle() {
        let graph = graph(&[
            ("main.rs", "mod a;\nfn main() { a::run() }"),
            (
                "a/mod.rs",
                "mod b;\npub struct Shared;\npub fn run() { b::help() }",
            ),
            ("a/b.rs", "use super::*;\npub fn help() { Shared; }"),
        ]);
        assert_eq!(
            arrows(&graph),
            [
                "a/b.rs > a/mod.rs",
                "a/mod.rs > a/b.rs",
                "main.rs > a/mod.rs"
            ]
        );
        assert_eq!(graph.circles(), [["a/b.rs", "a/mod.rs"]]);
    }

    #[test]
    fn paths_in_tests_comments_strings_and_other_crates_are_not_module_dependencies() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "/// [`crate::b::B`]\nfn f() { \"crate::b::B\"; ::b::B; std::b::B; x.b(); }\n\
                 #[cfg(test)]\nmod tests {\n    use crate::b::B;\n}\n",
            ),
            ("b.rs", "#[cfg(test)]\nmod tests;\npub struct B;"),
        ]);
        assert_eq!(arrows(&graph), Vec::<String>::new());
        assert_eq!(graph.lines, 1 + 2 + 1);
    }

    #[test]
    fn dependency_on_a_higher_layer_and_file_without_layer_are_reported() {
        let graph = graph(&[
            ("lib.rs", "mod low; mod high; mod odd;"),
            ("low.rs", "use crate::high::High;"),
            ("high.rs", "pub struct High;"),
            ("odd.rs", ""),
        ]);
        let found = super::super::layers::check("//! Why.\n\npub mod low;\n\nmod high;\n", &graph);
        assert!(found[0].contains("odd.rs is in no layer"), "{found:?}");
        assert!(found[1].contains("low.rs (layer low) uses high.rs"));
        assert_eq!(found.len(), 2);
    }

    #[test]
    fn importing_a_module_adds_dependencies_only_on_files_whose_items_are_used_through_it() {
        let graph = graph(&[
            ("lib.rs", "mod a; mod b;"),
            (
                "a.rs",
                "use crate::b::{self, c as see};\nfn f() { see::C; b::inline::I }",
            ),
            (
                "b.rs",
                "pub mod c;\npub mod inline { pub struct I; use super::super::a::f; }",
            ),
            ("b/c.rs", "pub const C: u8 = 0;"),
        ]);
        assert_eq!(
            arrows(&graph),
            ["a.rs > b.rs", "a.rs > b/c.rs", "b.rs > a.rs"]
        );
    }
}
