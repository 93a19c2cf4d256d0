//! What a program may ask the run's model for.
//!
//! The base URL comes from the host's settings; what a guest adds to it is only a path below
//! it, out of a short list.

use super::Refusal;
use super::path::RequestPath;
use wp_codebox_contracts::ModelApi;

/// What programs need of a model served like OpenAI's, below the base URL. Files, batches,
/// stored answers and settings of the account are not in it.
const OPENAI: &[(&str, &str)] = &[
    ("POST", "/chat/completions"),
    ("POST", "/completions"),
    ("POST", "/responses"),
    ("POST", "/embeddings"),
    ("GET", "/models"),
];
/// The same for one served like Anthropic's.
const ANTHROPIC: &[(&str, &str)] = &[
    ("POST", "/v1/messages"),
    ("POST", "/v1/messages/count_tokens"),
    ("GET", "/v1/models"),
];

/// Whether a program may ask a model for this. The path is the one below the base URL.
pub fn judge_model_request(api: ModelApi, method: &str, path: &RequestPath) -> Result<(), Refusal> {
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
        // One model of the list may be asked for by name.
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
    fn only_the_way_to_answers_is_open() {
        use ModelApi::{AnthropicMessages, OpenaiChat};
        let judge = |api, method, path| {
            judge_model_request(api, method, &RequestPath::parse(path).unwrap())
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
