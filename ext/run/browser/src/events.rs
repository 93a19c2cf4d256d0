//! Converts browser events to result rows; texts are cut to a maximum length.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum number of characters stored of a console line or error.
const TEXT: usize = 2000;
/// Maximum number of characters of a URL that are stored.
const URL: usize = 1000;

/// A line that the page wrote to the browser console.
#[derive(Debug, Clone, Serialize)]
pub struct Console {
    /// Level: `log`, `warning`, `error` and so on.
    pub level: String,
    pub text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// An uncaught exception, or an error reported by the browser itself.
#[derive(Debug, Clone, Serialize)]
pub struct PageError {
    /// `exception`, or the browser's log source, e.g. `network` or `security`.
    pub source: String,
    pub text: String,
    #[serde(skip_serializing_if = "String::is_empty")]
    pub url: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub line: Option<u64>,
}

/// A message of PHP in a request of the page: a notice, a warning or an error. The work guest reports
/// it, so it is untrusted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct PhpError {
    /// `fatal`, `error`, `warning`, `notice` or `deprecated`. After a `fatal` one, PHP has ended.
    pub level: String,
    /// Message text; for an uncaught exception, without the stack.
    pub message: String,
    /// Path of the file in the guest.
    pub file: String,
    /// Line in the file, from 1.
    pub line: u64,
    /// Method and path of the request.
    pub request: String,
}

impl PhpError {
    /// Returns whether the error ended PHP.
    #[must_use]
    pub fn is_fatal(&self) -> bool {
        self.level == "fatal"
    }

    /// Returns the error with texts of limited length, without control characters.
    pub(super) fn cut(&self) -> Self {
        Self {
            level: cut(&self.level, 20),
            message: cut(&self.message, TEXT),
            file: cut(&self.file, URL),
            line: self.line,
            request: cut(&self.request, URL),
        }
    }
}

impl std::fmt::Display for PhpError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self {
            message,
            file,
            line,
            request,
            ..
        } = self;
        write!(f, "{message} in {file}:{line} ({request})")
    }
}

/// A request of the page. URLs are stored without query, which can contain secrets.
#[derive(Debug, Clone, Serialize)]
pub struct Request {
    pub method: String,
    pub url: String,
    #[serde(rename = "type")]
    pub kind: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub status: Option<u64>,
    #[serde(rename = "mimeType", skip_serializing_if = "String::is_empty")]
    pub mime: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub bytes: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub error: Option<String>,
    /// Whether the network policy refuses the request.
    #[serde(skip_serializing_if = "std::ops::Not::not")]
    pub denied: bool,
}

impl Request {
    /// Adds status and media type from the response to this request.
    pub(super) fn answered(&mut self, response: &Value) {
        self.status = response.get("status").and_then(Value::as_u64);
        self.mime = cut(text(response, "/mimeType"), 100);
    }
}

/// Returns the text at a JSON pointer in a value; empty when there is none.
pub(super) fn text<'v>(value: &'v Value, path: &str) -> &'v str {
    value.pointer(path).and_then(Value::as_str).unwrap_or("")
}

/// Returns a URL without fragment and user information and with `[redacted]` instead of the query.
/// Of a `data:` URL, returns only the media type.
pub fn address(url: &str) -> String {
    if let Some(rest) = url.strip_prefix("data:") {
        let kind = rest.split([',', ';']).next().unwrap_or_default();
        return format!("data:{}", cut(kind, 80));
    }
    let bare = url.split('#').next().unwrap_or_default();
    let bare = &without_user(bare);
    match bare.split_once('?') {
        Some((before, _)) => format!("{}?[redacted]", cut(before, URL)),
        None => cut(bare, URL),
    }
}

/// Removes user name and password from a URL.
fn without_user(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else {
        return url.to_owned();
    };
    let end = rest.find(['/', '?']).unwrap_or(rest.len());
    let (authority, path) = rest.split_at(end);
    let host = authority
        .rsplit_once('@')
        .map_or(authority, |(_, host)| host);
    format!("{scheme}://{host}{path}")
}

pub(super) fn console(params: &Value) -> Console {
    let words: Vec<String> = params
        .get("args")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .take(20)
        .map(|argument| match argument.get("value") {
            Some(Value::String(text)) => text.clone(),
            Some(value) => value.to_string(),
            None => text(argument, "/description").to_owned(),
        })
        .collect();
    Console {
        level: cut(text(params, "/type"), 40),
        text: cut(&words.join(" "), TEXT),
        url: address(text(params, "/stackTrace/callFrames/0/url")),
        line: params
            .pointer("/stackTrace/callFrames/0/lineNumber")
            .and_then(Value::as_u64)
            .map(|line| line + 1),
    }
}

pub(super) fn exception(params: &Value) -> PageError {
    let details = params.get("exceptionDetails").unwrap_or(&Value::Null);
    let described = text(details, "/exception/description");
    let said = if described.is_empty() {
        let value = details.pointer("/exception/value").map(Value::to_string);
        format!("{} {}", text(details, "/text"), value.unwrap_or_default())
    } else {
        described.to_owned()
    };
    PageError {
        source: "exception".to_owned(),
        text: cut(said.trim(), TEXT),
        url: address(text(details, "/url")),
        line: details
            .get("lineNumber")
            .and_then(Value::as_u64)
            .map(|line| line + 1),
    }
}

/// Returns the row for an entry of the browser's log if the entry is an error.
pub(super) fn log_error(params: &Value) -> Option<PageError> {
    let entry = params.get("entry")?;
    (text(entry, "/level") == "error").then(|| PageError {
        source: cut(text(entry, "/source"), 40),
        text: cut(text(entry, "/text"), TEXT),
        url: address(text(entry, "/url")),
        line: entry.get("lineNumber").and_then(Value::as_u64),
    })
}

pub(super) fn request(params: &Value) -> Request {
    Request {
        method: cut(text(params, "/request/method"), 20),
        url: address(text(params, "/request/url")),
        kind: cut(text(params, "/type"), 40),
        status: None,
        mime: String::new(),
        bytes: None,
        error: None,
        denied: false,
    }
}

/// Truncates a text to `most` characters and replaces control characters except line feeds by
/// spaces.
pub(super) fn cut(text: &str, most: usize) -> String {
    let clean: String = text
        .chars()
        .map(|c| if c.is_control() && c != '\n' { ' ' } else { c })
        .take(most)
        .collect();
    if text.chars().nth(most).is_some() {
        format!("{clean}…")
    } else {
        clean
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn recorded_url_omits_query_user_name_fragment_and_data() {
        for (url, shown) in [
            (
                "http://localhost/a?token=1#x",
                "http://localhost/a?[redacted]",
            ),
            ("http://localhost/a#x", "http://localhost/a"),
            ("https://user:p@ss@host:8/a@b", "https://host:8/a@b"),
            ("https://user:pass@host?q", "https://host?[redacted]"),
            ("data:image/png;base64,AAAA", "data:image/png"),
            ("", ""),
        ] {
            assert_eq!(address(url), shown);
        }
    }

    #[test]
    fn console_messages_and_exceptions_of_a_page_are_recorded_and_log_warnings_are_not() {
        let line = console(&json!({"type": "error", "args": [
            {"type": "string", "value": "a\u{7}b"}, {"type": "number", "value": 3},
            {"type": "object", "description": "Object"},
        ]}));
        assert_eq!(
            (line.level.as_str(), line.text.as_str()),
            ("error", "a b 3 Object")
        );
        let thrown = exception(
            &json!({"exceptionDetails": {"text": "Uncaught", "lineNumber": 4,
            "exception": {"description": "Error: no\n    at x"}}}),
        );
        assert_eq!(
            (thrown.text.as_str(), thrown.line),
            ("Error: no\n    at x", Some(5))
        );
        assert!(log_error(&json!({"entry": {"level": "warning", "text": "x"}})).is_none());
    }
}
