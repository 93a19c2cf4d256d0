//! Reads a field of a plugin or theme header as WordPress' `get_file_data` does: the first line that
//! has the field's name after an optional `<?php` and any of the characters space, tab and `/*#@`.

use wp_codebox_contracts::terminal_text::plain_line;

/// Maximum number of characters of a value; longer ones are cut, because messages contain them.
const MAX_CHARS: usize = 100;

/// Returns the value of a header field, in one line without control characters; `None` if the field
/// is absent or empty.
pub(super) fn value(head: &str, field: &str) -> Option<String> {
    // The first line with the field counts, even if its value is empty.
    let given = head
        .split(['\n', '\r'])
        .find_map(|line| after_field(line, field))?;
    let ends = ["*/", "?>"].iter().filter_map(|end| given.find(*end));
    let end = ends.min().unwrap_or(given.len());
    let value = plain_line(&given[..end]);
    let value: String = value.trim().chars().take(MAX_CHARS).collect();
    (!value.is_empty()).then_some(value)
}

fn after_field<'l>(line: &'l str, field: &str) -> Option<&'l str> {
    let line = without_php_tag(line).trim_start_matches([' ', '\t', '/', '*', '#', '@']);
    let (name, rest) = line.split_at_checked(field.len())?;
    let value = rest.strip_prefix(':')?;
    name.eq_ignore_ascii_case(field).then_some(value)
}

fn without_php_tag(line: &str) -> &str {
    match line.trim_start_matches([' ', '\t']).split_at_checked(5) {
        Some((tag, rest)) if tag.eq_ignore_ascii_case("<?php") => rest,
        Some(_) | None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn header_fields_are_found_where_wordpress_finds_them() {
        for (head, expected) in [
            ("<?php\n/*\nPlugin Name: Hello\n*/", Some("Hello")),
            (
                "<?php\n/**\n * Plugin Name: Hello Dolly\n",
                Some("Hello Dolly"),
            ),
            ("<?php /* Plugin Name: Hello */", Some("Hello")),
            ("\t<?PHP // plugin name: Hello ?> x", Some("Hello")),
            ("<?php\r# @Plugin Name:Hello\rVersion: 1", Some("Hello")),
            ("<?php\r\n/*\r\nPlugin Name:   Hello  \r\n*/", Some("Hello")),
            ("Plugin Name: a */ b ?> c", Some("a")),
            ("Plugin Name: Größe: 2", Some("Größe: 2")),
            ("Plugin Name:\nPlugin Name: Second", None),
            ("Plugin Name: */", None),
            ("Plugin Name : Hello", None),
            ("My Plugin Name: Hello", None),
            ("x Plugin Name: Hello", None),
            ("- Plugin Name: Hello", None),
            ("\u{feff}<?php // Plugin Name: Hello", None),
            ("Plugin Nam", None),
            ("ä Plugin Näme: Hello", None),
            ("", None),
        ] {
            assert_eq!(value(head, "Plugin Name").as_deref(), expected, "{head:?}");
        }
    }

    #[test]
    fn header_values_are_one_short_line_without_control_characters() {
        let hostile = "Plugin Name: a\u{1b}[31m\tb\u{202e}\0 */";
        assert_eq!(value(hostile, "Plugin Name").as_deref(), Some("a[31m b"));
        let long = format!("Plugin Name: {}", "ä".repeat(1000));
        assert_eq!(value(&long, "Plugin Name").unwrap().chars().count(), 100);
    }
}
