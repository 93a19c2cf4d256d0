//! Test results for other programs: JUnit XML, and annotations of CI services.

use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Write;

fn text<'a>(row: &'a Value, name: &str) -> &'a str {
    row[name].as_str().unwrap_or_default()
}

fn rows<'a>(row: &'a Value, name: &str) -> &'a [Value] {
    row[name].as_array().map_or(&[], Vec::as_slice)
}

/// Escapes a text for XML, in an attribute or between elements. Characters that XML 1.0 cannot
/// contain become a question mark.
fn xml(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text.chars() {
        match c {
            '&' => out.push_str("&amp;"),
            '<' => out.push_str("&lt;"),
            '>' => out.push_str("&gt;"),
            '"' => out.push_str("&quot;"),
            '\n' => out.push_str("&#10;"),
            '\t' => out.push(c),
            '\u{0}'..='\u{1f}' | '\u{fffe}' | '\u{ffff}' => out.push('?'),
            c => out.push(c),
        }
    }
    out
}

fn seconds(milliseconds: f64) -> String {
    format!("{:.3}", milliseconds / 1000.0)
}

/// Returns the results as a JUnit document: one `testsuite` per class, and one more for a sandbox
/// that gave no results. `base` is the guest directory of the project; files are relative to it.
pub fn junit(results: &Value, base: &str) -> String {
    let failures: BTreeMap<(&str, &str), &Value> = rows(results, "failures")
        .iter()
        .map(|row| ((text(row, "suite"), text(row, "test")), row))
        .collect();
    let count = |name: &str| results["summary"][name].as_u64().unwrap_or_default();
    let mut out = String::from("<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n");
    let lost: Vec<&Value> = rows(results, "shards")
        .iter()
        .filter(|shard| shard["error"].is_object())
        .collect();
    // Writing to a String cannot fail.
    let _ = writeln!(
        out,
        "<testsuites tests=\"{}\" failures=\"{}\" errors=\"{}\" skipped=\"{}\" time=\"{}\">",
        count("total"),
        count("failed"),
        lost.len(),
        count("skipped"),
        seconds(results["durationMs"].as_f64().unwrap_or_default()),
    );
    for suite in rows(results, "suites") {
        junit_suite(&mut out, suite, base, &failures);
    }
    for shard in lost {
        let message = xml(text(&shard["error"], "message"));
        let _ = writeln!(
            out,
            "  <testsuite name=\"sandbox {0}\" tests=\"1\" errors=\"1\">\n    <testcase classname=\"sandbox\" name=\"sandbox {0}\"><error message=\"{message}\"/></testcase>\n  </testsuite>",
            shard["index"],
        );
    }
    out.push_str("</testsuites>\n");
    out
}

fn junit_suite(
    out: &mut String,
    suite: &Value,
    base: &str,
    failures: &BTreeMap<(&str, &str), &Value>,
) {
    let file = text(suite, "file");
    let below = file
        .strip_prefix(base)
        .and_then(|rest| rest.strip_prefix('/'));
    let tests = rows(suite, "tests");
    let of = |status: &str| tests.iter().filter(|test| test["status"] == status).count();
    let time = |test: &Value| test["durationMs"].as_f64().unwrap_or_default();
    let class = text(suite, "name");
    let _ = writeln!(
        out,
        "  <testsuite name=\"{}\" file=\"{}\" tests=\"{}\" failures=\"{}\" skipped=\"{}\" time=\"{}\">",
        xml(class),
        xml(below.unwrap_or(file)),
        tests.len(),
        of("failed"),
        of("skipped"),
        seconds(tests.iter().map(time).sum()),
    );
    for test in tests {
        let name = text(test, "name");
        let _ = write!(
            out,
            "    <testcase classname=\"{}\" name=\"{}\" time=\"{}\"",
            xml(class),
            xml(name),
            seconds(time(test)),
        );
        let inner = match text(test, "status") {
            "skipped" => "<skipped/>".to_owned(),
            "failed" => failed_case(failures.get(&(class, name)).copied()),
            _ => {
                out.push_str("/>\n");
                continue;
            }
        };
        let _ = writeln!(out, ">{inner}</testcase>");
    }
    out.push_str("  </testsuite>\n");
}

/// Returns the element of a failed test. `failure` is `None` if the results list only a part of the
/// failures, because there were too many.
fn failed_case(failure: Option<&Value>) -> String {
    let Some(row) = failure else {
        return "<failure message=\"failed\"/>".to_owned();
    };
    let message = text(row, "message");
    let kind = match text(row, "kind") {
        "error" => "error",
        _ => "failure",
    };
    format!(
        "<{kind} type=\"{}\" message=\"{}\">{}</{kind}>",
        xml(text(row, "type")),
        xml(message.lines().next().unwrap_or_default()),
        xml(message),
    )
}

/// Returns the lines that make GitHub Actions show each failure at its line. `prefix` is the
/// project's directory in the repository; empty if it is the repository itself.
pub fn github(results: &Value, prefix: &str) -> Vec<String> {
    let value = |text: &str| {
        let text = text.replace('%', "%25").replace('\r', "%0D");
        text.replace('\n', "%0A")
    };
    let property = |text: &str| value(text).replace(':', "%3A").replace(',', "%2C");
    rows(results, "failures")
        .iter()
        .map(|row| {
            let file = match text(row, "file") {
                file if prefix.is_empty() || file.starts_with('/') => file.to_owned(),
                file => format!("{prefix}/{file}"),
            };
            format!(
                "::error file={},line={},title={}::{}",
                property(&file),
                row["line"].as_u64().unwrap_or(1),
                property(&format!("{}::{}", text(row, "suite"), text(row, "test"))),
                value(text(row, "message")),
            )
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn results() -> Value {
        json!({
            "summary": {"total": 3, "passed": 1, "failed": 1, "skipped": 1},
            "durationMs": 1500,
            "suites": [{"name": "A\\Test", "file": "/p/ATest.php", "tests": [
                {"name": "good", "status": "passed", "durationMs": 250},
                {"name": "bad <&>", "status": "failed", "durationMs": 250},
                {"name": "later", "status": "skipped"},
            ]}],
            "failures": [{"suite": "A\\Test", "test": "bad <&>", "kind": "failure", "type": "E",
                "file": "tests/ATest.php", "line": 12, "message": "100% \u{1b}[31mred\n<script>"}],
            "shards": [{"index": 2, "error": {"message": "lost"}}],
        })
    }

    #[test]
    fn junit_document_has_each_test_once_and_escapes_messages() {
        assert_eq!(
            junit(&results(), "/p"),
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
            <testsuites tests=\"3\" failures=\"1\" errors=\"1\" skipped=\"1\" time=\"1.500\">\n  \
            <testsuite name=\"A\\Test\" file=\"ATest.php\" tests=\"3\" failures=\"1\" skipped=\"1\" time=\"0.500\">\n    \
            <testcase classname=\"A\\Test\" name=\"good\" time=\"0.250\"/>\n    \
            <testcase classname=\"A\\Test\" name=\"bad &lt;&amp;&gt;\" time=\"0.250\"><failure type=\"E\" message=\"100% ?[31mred\">100% ?[31mred&#10;&lt;script&gt;</failure></testcase>\n    \
            <testcase classname=\"A\\Test\" name=\"later\" time=\"0.000\"><skipped/></testcase>\n  \
            </testsuite>\n  \
            <testsuite name=\"sandbox 2\" tests=\"1\" errors=\"1\">\n    \
            <testcase classname=\"sandbox\" name=\"sandbox 2\"><error message=\"lost\"/></testcase>\n  \
            </testsuite>\n</testsuites>\n"
        );
    }

    #[test]
    fn test_message_is_escaped_so_that_it_cannot_end_its_github_annotation() {
        assert_eq!(
            github(&results(), "plugins/shop"),
            [
                "::error file=plugins/shop/tests/ATest.php,line=12,title=A\\Test%3A%3Abad <&>::100%25 \u{1b}[31mred%0A<script>"
            ]
        );
    }
}
