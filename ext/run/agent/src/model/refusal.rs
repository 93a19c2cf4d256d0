//! Classifies error responses of a provider.

use super::limits::SENTENCE_CHARS;
use serde_json::Value;
use wp_codebox_policy::Redactor;

/// Error of a provider, from an HTTP status and body or from an event inside a stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Refusal {
    pub status: u16,
    /// Words with which the provider classifies the error: its `type`, `code`, `status` and
    /// `param`.
    kinds: Vec<String>,
    /// The provider's full message. Untrusted: must be sanitised before it is shown.
    message: String,
}

/// What an error response means for the client.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Meaning {
    /// The API key was rejected.
    Key,
    /// The conversation is too long for the model.
    TooLong,
    /// The error is temporary, so a later retry may succeed.
    Later,
    /// The error is permanent, so a retry is pointless.
    Never,
}

/// Providers' error kinds for a conversation that is too long.
const TOO_LONG_KINDS: &[&str] = &[
    "context_length_exceeded",
    "exceed_context_size_error",
    "request_too_large",
    "string_above_max_length",
];
/// Phrases in error messages that mean a too long conversation, for providers that send none of
/// [`TOO_LONG_KINDS`].
const TOO_LONG_SENTENCES: &[&str] = &[
    "maximum context length",
    "prompt is too long",
    "exceed context limit",
    "exceeds the available context",
    "exceeds the maximum number of tokens",
    "context length exceeded",
    "context window",
    "input is too long",
];
/// Providers' error kinds for an account without credit, where retrying does not help.
const SPENT_KINDS: &[&str] = &[
    "insufficient_quota",
    "billing_hard_limit_reached",
    "billing_not_active",
    "billing_error",
];

impl Refusal {
    /// Parses the body of an error response: one of the common JSON forms, otherwise plain text.
    pub(super) fn read(status: u16, body: &[u8]) -> Self {
        match serde_json::from_slice::<Value>(body) {
            Ok(value) => Self::of(status, &value),
            Err(_) => Self {
                status,
                kinds: Vec::new(),
                message: String::from_utf8_lossy(body).into_owned(),
            },
        }
    }

    /// Parses an error that arrives inside a stream. The HTTP status was 200, so the error kind
    /// determines the status to report.
    pub(super) fn inside(value: &Value) -> Self {
        let mut refusal = Self::of(500, value);
        refusal.status = refusal
            .kinds
            .iter()
            .find_map(|kind| status_of(kind))
            .unwrap_or(500);
        refusal
    }

    fn of(status: u16, value: &Value) -> Self {
        // One provider wraps its error in a list.
        let value = value.get(0).unwrap_or(value);
        let error = match value.get("error") {
            Some(error @ (Value::Object(_) | Value::String(_))) => error,
            Some(_) | None => value,
        };
        let word = |name: &str| match error.get(name) {
            Some(Value::String(text)) => Some(text.clone()),
            Some(Value::Number(number)) => Some(number.to_string()),
            Some(_) | None => None,
        };
        let message = match error {
            Value::String(text) => text.clone(),
            _ => word("message")
                .or_else(|| word("detail"))
                .or_else(|| word("msg"))
                .unwrap_or_else(|| error.to_string()),
        };
        Self {
            status,
            kinds: ["type", "code", "status", "param"]
                .into_iter()
                .filter_map(word)
                .collect(),
            message,
        }
    }

    /// Returns whether the message or an error kind contains `word`, which must be in lower case.
    pub(super) fn names(&self, word: &str) -> bool {
        let has = |text: &String| text.to_ascii_lowercase().contains(word);
        has(&self.message) || self.kinds.iter().any(has)
    }

    /// Returns whether the message or an error kind contains one of these whole words; `known` must
    /// be in lower case.
    pub(super) fn has_word(&self, known: &[&str]) -> bool {
        let is_word = |text: &String| {
            let text = text.to_ascii_lowercase();
            let mut words = text.split(|c: char| !(c.is_ascii_alphanumeric() || c == '_'));
            words.any(|word| known.contains(&word))
        };
        is_word(&self.message) || self.kinds.iter().any(is_word)
    }

    fn is_kind(&self, known: &[&str]) -> bool {
        self.kinds.iter().any(|kind| known.contains(&kind.as_str()))
    }

    /// Returns what the error response means for the client.
    pub(super) fn meaning(&self) -> Meaning {
        let too_long =
            self.is_kind(TOO_LONG_KINDS) || TOO_LONG_SENTENCES.iter().any(|part| self.names(part));
        match self.status {
            401 | 403 => Meaning::Key,
            413 => Meaning::TooLong,
            429 if self.is_kind(SPENT_KINDS) => Meaning::Never,
            408 | 409 | 425 | 429 => Meaning::Later,
            400..=599 if too_long => Meaning::TooLong,
            501 | 505 => Meaning::Never,
            500..=599 => Meaning::Later,
            _ => Meaning::Never,
        }
    }

    /// Returns the provider's message as one sanitised line.
    pub(super) fn sentence(&self, redactor: &Redactor) -> String {
        let said = sentence(&self.message, redactor);
        if said.is_empty() {
            "the provider gave no reason".to_owned()
        } else {
            said
        }
    }
}

/// Returns the first line of an untrusted text. Replaces secrets before cutting the line to the
/// maximum length, and removes control characters.
pub(super) fn sentence(text: &str, redactor: &Redactor) -> String {
    let clean = redactor.redact(text);
    let line = clean.lines().map(str::trim).find(|line| !line.is_empty());
    let mut shown: String = line
        .unwrap_or_default()
        .chars()
        .filter(|c| !c.is_control() && !is_steering(*c))
        .take(SENTENCE_CHARS + 1)
        .collect();
    if shown.chars().count() > SENTENCE_CHARS {
        shown = shown.chars().take(SENTENCE_CHARS - 1).collect();
        shown.push('…');
    }
    shown
}

/// Returns whether the character is invisible or changes how its neighbours are displayed, such as
/// a bidirectional control.
const fn is_steering(c: char) -> bool {
    matches!(c, '\u{200b}'..='\u{200f}' | '\u{2028}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}')
}

/// Returns the HTTP status that fits an error kind, for errors that arrive inside a stream.
fn status_of(kind: &str) -> Option<u16> {
    Some(match kind {
        "invalid_request_error" | "context_length_exceeded" | "BadRequestError" => 400,
        "authentication_error" | "invalid_api_key" => 401,
        "billing_error" => 402,
        "permission_error" => 403,
        "not_found_error" | "model_not_found" => 404,
        "request_too_large" => 413,
        "rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota" => 429,
        "api_error" | "server_error" => 500,
        "timeout_error" => 504,
        "overloaded_error" => 529,
        _ => kind
            .parse::<u16>()
            .ok()
            .filter(|s| (400..600).contains(s))?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn meaning(status: u16, body: &Value) -> Meaning {
        Refusal::read(status, body.to_string().as_bytes()).meaning()
    }

    #[test]
    fn http_status_of_a_provider_error_decides_its_meaning_except_for_an_exhausted_quota() {
        let plain = json!({"error": {"message": "no"}});
        for (status, expected) in [
            (400, Meaning::Never),
            (401, Meaning::Key),
            (403, Meaning::Key),
            (402, Meaning::Never),
            (404, Meaning::Never),
            (408, Meaning::Later),
            (409, Meaning::Later),
            (413, Meaning::TooLong),
            (422, Meaning::Never),
            (429, Meaning::Later),
            (500, Meaning::Later),
            (501, Meaning::Never),
            (503, Meaning::Later),
            (529, Meaning::Later),
        ] {
            assert_eq!(meaning(status, &plain), expected, "{status}");
        }
        let spent = json!({"error": {"message": "You exceeded your current quota", "type": "insufficient_quota"}});
        assert_eq!(meaning(429, &spent), Meaning::Never);
    }

    #[test]
    fn context_length_error_is_recognised_in_every_known_provider_format() {
        for body in [
            json!({"error": {"message": "…", "type": "invalid_request_error", "code": "context_length_exceeded"}}),
            json!({"error": {"message": "This model's maximum context length is 8192 tokens. However, your messages resulted in 9000."}}),
            json!({"type": "error", "error": {"type": "invalid_request_error", "message": "prompt is too long: 208310 tokens > 200000 maximum"}}),
            json!({"error": {"code": 400, "message": "the request exceeds the available context size", "type": "exceed_context_size_error"}}),
            json!({"object": "error", "message": "This model's maximum context length is 4096 tokens", "code": 400}),
            json!({"error": "input length and `max_tokens` exceed context limit: 1 + 2 > 2"}),
            json!([{"error": {"code": 400, "message": "The input token count (9) exceeds the maximum number of tokens allowed (8)."}}]),
        ] {
            assert_eq!(meaning(400, &body), Meaning::TooLong, "{body}");
        }
        let other = json!({"error": {"message": "messages: at least one is required"}});
        assert_eq!(meaning(400, &other), Meaning::Never);
    }

    #[test]
    fn error_inside_a_model_stream_gets_the_http_status_of_its_type_or_code_else_500() {
        for (value, status) in [
            (
                json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}),
                529,
            ),
            (
                json!({"error": {"message": "no", "type": "server_error"}}),
                500,
            ),
            (json!({"error": {"message": "no", "code": 429}}), 429),
            (
                json!({"error": {"message": "no", "type": "authentication_error"}}),
                401,
            ),
            (json!({"error": "something"}), 500),
        ] {
            assert_eq!(Refusal::inside(&value).status, status, "{value}");
        }
    }

    #[test]
    fn provider_message_is_one_sanitised_line_without_secrets() {
        let key = "swordfish-swordfish".to_owned();
        let redactor = Redactor::new(std::slice::from_ref(&key));
        let shown = |text: &str| sentence(text, &redactor);
        assert_eq!(
            shown("\n\n  first\u{1b}[31m\u{202e} line \nsecond"),
            "first[31m line"
        );
        let long = shown(&format!("{}{key}{}", "é".repeat(190), "x".repeat(100)));
        assert_eq!(long.chars().count(), SENTENCE_CHARS);
        assert!(!long.contains("sword"), "{long}");
        assert_eq!(shown("short"), "short");
    }
}
