//! Requests that a program in the guest may send to the run's model.
//!
//! The base URL comes from the host's settings. The guest chooses only a path below the base
//! URL, from a fixed list.

use super::Refusal;
use super::path::RequestPath;
use wp_codebox_contracts::ModelApi;

/// Requests to an OpenAI API that the guest may send; paths are relative to the base URL. Files,
/// batches, stored responses and account settings are not allowed.
const OPENAI: &[(&str, &str)] = &[
    ("POST", "/chat/completions"),
    ("POST", "/completions"),
    ("POST", "/responses"),
    ("POST", "/embeddings"),
    ("GET", "/models"),
];
/// Requests to an Anthropic API that the guest may send; paths are relative to the base URL.
const ANTHROPIC: &[(&str, &str)] = &[
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("GET", "/v1/models"),
];

/// Checks a request of the guest to the model. The path is relative to the base URL.
pub fn check_model_request(api: ModelApi, method: &str, path: &RequestPath) -> Result<(), Refusal> {
    let rows = match api {
        ModelApi::OpenaiChat => OPENAI,
        ModelApi::AnthropicMessages => ANTHROPIC,
    };
    if !matches!(method, "GET" | "POST") {
        return Err(Refusal::Method);
    }
    let path = path.comparable().map_err(Refusal::PathAmbiguous)?;
    let mut refusal = Refusal::Path;
    for (known_method, known) in rows {
        // A row with `GET` names a list, e.g. `/models`, and also allows `GET` of each entry of
        // that list, e.g. `/models/<name>`.
        let one = *known_method == "GET" && path.starts_with(&format!("{known}/"));
        if path != *known && !one {
            continue;
        }
        if method == *known_method {
            return Ok(());
        }
        refusal = Refusal::Method;
    }
    Err(refusal)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn model_requests_with_an_unlisted_path_or_method_or_an_ambiguous_path_are_refused() {
        use ModelApi::{AnthropicMessages, OpenaiChat};
        let judge = |api, method, path| {
            check_model_request(api, method, &RequestPath::parse(path).unwrap())
        };
        for (api, method, path) in [
            (OpenaiChat, "POST", "/chat/completions"),
            (OpenaiChat, "POST", "/responses?x=1"),
            (OpenaiChat, "GET", "/models"),
            (OpenaiChat, "GET", "/models/gpt-x"),
            (AnthropicMessages, "POST", "/v1/messages?beta=true"),
            (AnthropicMessages, "POST", "/v1/messages/count_tokens"),
        ] {
            assert_eq!(judge(api, method, path), Ok(()), "{method} {path}");
        }
        for (api, method, path, why) in [
            (OpenaiChat, "GET", "/files", Refusal::Path),
            (OpenaiChat, "GET", "/responses/resp_1", Refusal::Path),
            (OpenaiChat, "POST", "/v1/messages", Refusal::Path),
            (OpenaiChat, "POST", "/chat/completionsx", Refusal::Path),
            (OpenaiChat, "POST", "/models", Refusal::Method),
            (OpenaiChat, "POST", "/models/gpt-x", Refusal::Method),
            (OpenaiChat, "GET", "/chat/completions", Refusal::Method),
            (OpenaiChat, "DELETE", "/models/gpt-x", Refusal::Method),
            (AnthropicMessages, "POST", "/v1/files", Refusal::Path),
            (
                AnthropicMessages,
                "POST",
                "/v1/messages/batches",
                Refusal::Path,
            ),
        ] {
            assert_eq!(judge(api, method, path), Err(why), "{method} {path}");
        }
        for path in [
            "/chat/../files",
            "/models/..%2ffiles",
            "//chat/completions",
            "/chat%2fcompletions",
        ] {
            assert!(
                matches!(
                    judge(OpenaiChat, "POST", path),
                    Err(Refusal::PathAmbiguous(_))
                ),
                "{path}"
            );
        }
    }
}
