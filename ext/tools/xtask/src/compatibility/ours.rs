//! What this project has: commands, abilities, facade methods, hooks and schema ids.

use super::public;
use crate::findings::TaskError;
use crate::{abilities, schemas, tree};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// Names of this project that the public contract may name too.
pub struct Ours {
    /// Commands that can be called, with the names of their arguments.
    pub commands: BTreeMap<String, BTreeSet<String>>,
    /// Abilities without the prefix `wp-codebox/`, with their input fields.
    pub abilities: BTreeMap<String, BTreeSet<String>>,
    /// Public methods of `WP_Codebox_API`.
    pub methods: BTreeSet<String>,
    /// Hooks that the plugin calls, with their number of arguments.
    pub hooks: BTreeMap<String, usize>,
    /// Schema ids of documents.
    pub schemas: BTreeSet<String>,
}

impl Ours {
    /// Reads the command registry, the definitions of abilities and the sources of the plugin.
    pub fn read(root: &Path) -> Result<Self, TaskError> {
        let mut ids: BTreeSet<String> = wp_codebox_policy::registry()
            .filter_map(|command| command.output_schema.map(str::to_owned))
            .collect();
        let mut inputs = BTreeMap::new();
        for schema in schemas::flattened(root)? {
            let document = schemas::parsed(&schema)?;
            ids.extend(document["$id"].as_str().map(str::to_owned));
            inputs.insert(schema.name().to_owned(), public::fields(&document));
        }
        let abilities: BTreeMap<String, BTreeSet<String>> = abilities::inputs(root)?
            .into_iter()
            .map(|(ability, input)| {
                let fields = inputs.get(&input).cloned().unwrap_or_default();
                (ability, fields.into_iter().collect())
            })
            .collect();
        let facade = tree::read(&root.join("plugin-php/includes/WP_Codebox_API.php"))?;
        let methods = methods(&facade, |ability| abilities.contains_key(ability));
        Ok(Ours {
            commands: wp_codebox_policy::registry()
                .filter(|command| command.refusal().is_none())
                .map(|command| {
                    let args = command.accepted_args.iter().map(|a| a.name.to_owned());
                    (command.id.to_owned(), args.collect())
                })
                .collect(),
            abilities,
            methods,
            hooks: hooks(root)?,
            schemas: ids,
        })
    }
}

/// Returns the public static methods. A method that calls an ability without a definition answers an
/// error, so it is left out.
fn methods(source: &str, defined: impl Fn(&str) -> bool) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for rest in source.split("public static function ").skip(1) {
        let body = rest.split("function ").next().unwrap_or_default();
        let called = body.split_once("self::execute_ability( 'wp-codebox/");
        let ability = called.and_then(|(_, rest)| rest.split('\'').next());
        if let Some((name, _)) = rest.split_once('(')
            && ability.is_none_or(&defined)
        {
            found.insert(name.to_owned());
        }
    }
    found
}

fn hooks(root: &Path) -> Result<BTreeMap<String, usize>, TaskError> {
    let mut found = BTreeMap::new();
    for directory in ["plugin-php", "abilities", "wp-cli"] {
        for path in tree::files(&root.join(directory))? {
            if tree::has_extension(&path, "php") {
                for (name, arguments) in calls(&tree::read(&path)?) {
                    let most = found.entry(name).or_insert(0);
                    *most = arguments.max(*most);
                }
            }
        }
    }
    Ok(found)
}

/// Returns the hooks that a PHP source calls by a literal name, with the number of arguments after
/// the name.
fn calls(source: &str) -> Vec<(String, usize)> {
    let mut found = Vec::new();
    for function in ["apply_filters(", "do_action("] {
        for rest in source.split(function).skip(1) {
            let rest = rest.trim_start();
            // A class can name its hook in a constant.
            let (rest, after) = match rest.strip_prefix("self::HOOK") {
                None => (rest, None),
                Some(after) => (constant(source, "const HOOK = "), Some(after)),
            };
            let named = rest.strip_prefix('\'').and_then(|r| r.split_once('\''));
            let named = named.map(|(name, rest)| (name, after.unwrap_or(rest)));
            if let Some((name, rest)) = named
                && name.starts_with("wp_codebox_")
            {
                found.push((name.to_owned(), arguments(rest)));
            }
        }
    }
    found
}

/// Returns the text after the first `declaration`; empty without one.
fn constant<'a>(source: &'a str, declaration: &str) -> &'a str {
    let found = source.split_once(declaration);
    found.map(|(_, rest)| rest).unwrap_or_default()
}

/// Counts the commas up to the end of the call that are not inside brackets or strings.
fn arguments(rest: &str) -> usize {
    let (mut depth, mut count, mut string) = (0, 0, None);
    let mut characters = rest.chars().peekable();
    while let Some(character) = characters.next() {
        match (string, character) {
            (Some(_), '\\') => drop(characters.next()),
            (Some(quote), c) if c == quote => string = None,
            (Some(_), _) => {}
            (None, '\'' | '"') => string = Some(character),
            (None, '(' | '[' | '{') => depth += 1,
            (None, ')') if depth == 0 => return count,
            (None, ')' | ']' | '}') => depth -= 1,
            // A comma before the closing bracket adds no argument.
            (None, ',') if depth == 0 => {
                let after = characters.clone().find(|c| !c.is_whitespace());
                count += usize::from(after != Some(')'));
            }
            (None, _) => {}
        }
    }
    count
}

#[cfg(test)]
mod tests {
    use super::{calls, methods};

    #[test]
    fn arguments_of_a_hook_are_counted_without_those_of_nested_calls() {
        let source = "apply_filters( 'wp_codebox_a', null, f( $a, [ 1, 2 ] ), 'x, )' );
            do_action(\n\t'wp_codebox_b',\n\t$result,\n);
            apply_filters( 'other', 1 ); apply_filters( $name, 1 );";
        let expected = [
            ("wp_codebox_a".to_owned(), 3),
            ("wp_codebox_b".to_owned(), 1),
        ];
        assert_eq!(calls(source), expected);
        let constant = "const HOOK = 'wp_codebox_c'; apply_filters( self::HOOK, $a, $b );";
        assert_eq!(calls(constant), [("wp_codebox_c".to_owned(), 2)]);
    }

    #[test]
    fn public_static_functions_are_methods_unless_they_execute_an_undefined_ability() {
        let source = "public static function a( array $i ) {} private static function b() {}
            public static function c() { return self::execute_ability( 'wp-codebox/c', [] ); }
            public static function d() { return self::execute_ability( 'wp-codebox/d', [] ); }";
        let found = methods(source, |ability| ability == "c");
        assert_eq!(found.into_iter().collect::<Vec<_>>(), ["a", "c"]);
    }
}
