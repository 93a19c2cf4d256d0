//! Reads one source file: its modules, the names they define and import, and the paths they
//! use.
//!
//! The text is tokenised, not parsed: a path inside a macro call counts like any other, a path
//! in a comment or string does not. Items under `#[cfg(test)]` are skipped.

use proc_macro2::{Delimiter, Group, TokenStream, TokenTree};
use std::collections::{BTreeMap, BTreeSet};

/// Segments of a path as written, e.g. `["super", "plan", "Mount"]`.
pub(super) type Path = Vec<String>;

/// One `use` declaration of a single name.
#[derive(Debug)]
pub(super) struct Import {
    pub(super) path: Path,
    /// Whether the import is `pub use` or a restricted form such as `pub(crate) use`.
    pub(super) reexported: bool,
}

/// Contents of one module, which is a file or a block `mod name { … }` in the file of its parent.
#[derive(Debug, Default)]
pub(super) struct Source {
    /// Names of the child modules declared with `mod name;`, which have their own files.
    pub(super) files: Vec<String>,
    /// Child modules declared with their text in braces, by name.
    pub(super) inline: BTreeMap<String, Source>,
    /// Names of the items that the module defines.
    pub(super) defined: BTreeSet<String>,
    /// Imports; the key is the name that they introduce, or `_` and a number for `as _`.
    pub(super) imports: BTreeMap<String, Import>,
    /// Modules imported with `*`.
    pub(super) globs: Vec<Path>,
    /// Paths of two or more segments outside of `use`.
    pub(super) paths: BTreeSet<Path>,
    /// Every identifier outside of `use`, to find which imported names the module uses.
    pub(super) words: BTreeSet<String>,
    /// Number of lines of the module's items under `#[cfg(test)]`.
    pub(super) test_lines: usize,
}

const DEFINING: &[&str] = &[
    "fn", "struct", "enum", "union", "trait", "type", "const", "static",
];

/// Reads the source text of a module.
pub(super) fn read(text: &str) -> Result<Source, proc_macro2::LexError> {
    let mut source = Source::default();
    source.block(
        &text.parse::<TokenStream>()?.into_iter().collect::<Vec<_>>(),
        true,
    );
    Ok(source)
}

impl Source {
    /// Reads the tokens between two braces. `of_module` is true for the braces of the module. It
    /// is false for those of an item in it: what the item defines is not a name of the module.
    fn block(&mut self, tokens: &[TokenTree], of_module: bool) {
        let mut rest = tokens;
        while let Some((token, after)) = rest.split_first() {
            let word = word(token);
            if is_test_attribute(rest) {
                let length = item_length(rest);
                self.test_lines += lines(&rest[..length]);
                rest = &rest[length..];
                continue;
            }
            let next = after.first();
            match (word.as_str(), next.map(self::word).unwrap_or_default()) {
                ("use", _) if !next.is_some_and(|next| is_punct(next, '<')) => {
                    let end = after.iter().position(|token| is_punct(token, ';'));
                    let before = &tokens[..tokens.len() - rest.len()];
                    let (tree, left) = after.split_at(end.unwrap_or(after.len()));
                    self.import(tree, &[], is_public(before));
                    rest = left;
                    continue;
                }
                ("mod", name) if of_module && !name.is_empty() => {
                    if let Some(TokenTree::Group(body)) = after.get(1) {
                        let mut inner = Source::default();
                        inner.block(&trees(body), true);
                        self.test_lines += inner.test_lines;
                        self.inline.insert(name, inner);
                    } else {
                        self.files.push(name);
                    }
                    rest = after.get(2..).unwrap_or_default();
                    continue;
                }
                (keyword, name) if of_module && DEFINING.contains(&keyword) => {
                    self.defined.insert(name);
                }
                ("macro_rules", _) if of_module => {
                    self.defined.extend(after.get(1).map(self::word));
                }
                _ => {}
            }
            if let TokenTree::Group(group) = token {
                self.block(&trees(group), false);
                rest = after;
            } else if word.is_empty() {
                // A path that starts with `::` names another crate; `<T as X>::Y` counts as a
                // use of X.
                let skipped = usize::from(is_path_separator(rest)) * 2;
                rest = if skipped > 0
                    && rest
                        .get(2)
                        .is_some_and(|token| !self::word(token).is_empty())
                {
                    &rest[3..]
                } else {
                    after
                };
            } else {
                let (path, left) = path(rest);
                self.words.extend(path.iter().cloned());
                if path.len() > 1 {
                    self.paths.insert(path);
                }
                rest = left;
            }
        }
    }

    /// Adds the imports of a `use` tree below `base`.
    fn import(&mut self, tree: &[TokenTree], base: &[String], reexported: bool) {
        for branch in tree.split(|token| is_punct(token, ',')) {
            let mut names: Path = base.to_vec();
            let mut alias = None;
            let mut rest = branch;
            while let Some((token, after)) = rest.split_first() {
                rest = after;
                match (token, word(token).as_str()) {
                    (TokenTree::Group(group), _) => {
                        self.import(&trees(group), &names, reexported);
                        names.clear();
                    }
                    (_, "as") => alias = rest.first().map(word),
                    (_, "self") if !names.is_empty() => {}
                    (token, "") if is_punct(token, '*') => {
                        self.globs.push(std::mem::take(&mut names));
                    }
                    (_, "") => {}
                    (_, _) if alias.is_some() => {}
                    (_, name) => names.push(name.to_owned()),
                }
            }
            if let Some(last) = names.last() {
                let mut name = alias.unwrap_or_else(|| last.clone());
                if name == "_" {
                    name.push_str(&self.imports.len().to_string());
                }
                let path = names;
                self.imports.insert(name, Import { path, reexported });
            }
        }
    }
}

fn trees(group: &Group) -> Vec<TokenTree> {
    group.stream().into_iter().collect()
}

/// Returns the text of an identifier; empty for any other token.
fn word(token: &TokenTree) -> String {
    match token {
        TokenTree::Ident(ident) => ident.to_string(),
        _ => String::new(),
    }
}

fn is_punct(token: &TokenTree, wanted: char) -> bool {
    matches!(token, TokenTree::Punct(punct) if punct.as_char() == wanted)
}

fn is_path_separator(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [a, b, ..] if is_punct(a, ':') && is_punct(b, ':'))
}

/// Returns the path that starts at the first token, an identifier, and the tokens after it.
fn path(tokens: &[TokenTree]) -> (Path, &[TokenTree]) {
    let mut path: Path = tokens.first().map(word).into_iter().collect();
    let mut rest = tokens.get(1..).unwrap_or_default();
    while is_path_separator(rest) {
        match rest.get(2).map(word) {
            Some(name) if !name.is_empty() => path.push(name),
            _ => break,
        }
        rest = &rest[3..];
    }
    (path, rest)
}

fn is_public(before: &[TokenTree]) -> bool {
    match before {
        [.., visibility] if word(visibility) == "pub" => true,
        [.., visibility, TokenTree::Group(_)] => word(visibility) == "pub",
        _ => false,
    }
}

/// Returns whether an attribute `#[cfg(test)]` starts here.
fn is_test_attribute(tokens: &[TokenTree]) -> bool {
    matches!(tokens, [hash, TokenTree::Group(attribute), ..]
        if is_punct(hash, '#') && attribute.stream().to_string().replace(' ', "") == "cfg(test)")
}

/// Returns the number of tokens of an item that starts with an attribute: up to its braces, its
/// semicolon or, for a match arm or a field, its comma.
fn item_length(tokens: &[TokenTree]) -> usize {
    let mut angles = 0_usize;
    for (index, token) in tokens.iter().enumerate() {
        match token {
            TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => {
                let semicolon = tokens
                    .get(index + 1)
                    .is_some_and(|next| is_punct(next, ';'));
                return index + 1 + usize::from(semicolon);
            }
            TokenTree::Punct(punct) => match punct.as_char() {
                ';' => return index + 1,
                ',' if angles == 0 => return index + 1,
                '<' => angles += 1,
                '>' => angles = angles.saturating_sub(1),
                _ => {}
            },
            _ => {}
        }
    }
    tokens.len()
}

fn lines(tokens: &[TokenTree]) -> usize {
    match (tokens.first(), tokens.last()) {
        (Some(first), Some(last)) => last.span().end().line + 1 - first.span().start().line,
        _ => 0,
    }
}
