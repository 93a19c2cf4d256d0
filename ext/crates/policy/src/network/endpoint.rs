//! Where the run's model is, as the bridge needs it.
//!
//! The base URL comes from the host's settings, so it alone may name a private address;
//! what a guest adds to it is only a path below it, out of a short list.

use super::host::{Authority, Host, HostError};
use super::path::{Ambiguity, PathError, RequestPath};
use super::{Refusal, Transport};
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

/// Why a base URL is none.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ModelBaseError {
    /// Neither http nor https.
    #[error("it must begin with https:// or http://")]
    Scheme,
    /// The host or the port.
    #[error("{0}")]
    Host(#[from] HostError),
    /// The path.
    #[error("{0}")]
    Path(#[from] PathError),
    /// A path that can be read in two ways.
    #[error("its path must not have {}", .0.as_str())]
    Ambiguous(Ambiguity),
    /// A query.
    #[error("it must not have a query")]
    Query,
}

/// A base URL, read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ModelBase {
    transport: Transport,
    host: Host,
    port: u16,
    /// Without a slash at its end.
    path: String,
}

impl ModelBase {
    /// Reads it.
    pub fn parse(text: &str) -> Result<Self, ModelBaseError> {
        let (transport, rest) = [("https://", Transport::Tls), ("http://", Transport::Plain)]
            .into_iter()
            .find_map(|(scheme, transport)| Some((transport, text.strip_prefix(scheme)?)))
            .ok_or(ModelBaseError::Scheme)?;
        let split = rest.find(['/', '?', '#']).unwrap_or(rest.len());
        let (authority, path) = rest.split_at(split);
        let authority = Authority::configured(authority)?;
        let path = path.trim_end_matches('/');
        if !path.is_empty() {
            let parsed = RequestPath::parse(path)?;
            if parsed.query().is_some() {
                return Err(ModelBaseError::Query);
            }
            parsed.comparable().map_err(ModelBaseError::Ambiguous)?;
        }
        Ok(Self {
            transport,
            port: authority.port.unwrap_or(transport.default_port()),
            host: authority.host,
            path: path.to_owned(),
        })
    }

    /// How it is reached.
    #[must_use]
    pub const fn transport(&self) -> Transport {
        self.transport
    }

    /// Its host, which may be private.
    #[must_use]
    pub const fn host(&self) -> &Host {
        &self.host
    }

    /// Its port.
    #[must_use]
    pub const fn port(&self) -> u16 {
        self.port
    }

    /// The path below it that a guest asks for.
    pub fn below(&self, path: &RequestPath) -> Result<RequestPath, PathError> {
        let query = path.query().map(|query| format!("?{query}"));
        RequestPath::parse(&format!(
            "{}{}{}",
            self.path,
            path.path(),
            query.unwrap_or_default()
        ))
    }
}

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
    fn the_machine_may_name_what_no_guest_can() {
        for (text, shown) in [
            (
                "https://api.example.com/v1",
                "https api.example.com 443 /v1",
            ),
            ("https://api.example.com", "https api.example.com 443 "),
            ("http://127.0.0.1:8080/v1/", "http 127.0.0.1 8080 /v1"),
            ("http://[::1]:8080", "http [::1] 8080 "),
            ("http://localhost:11434/v1", "http localhost 11434 /v1"),
            ("http://10.0.0.7/x", "http 10.0.0.7 80 /x"),
        ] {
            let base = ModelBase::parse(text).unwrap();
            let found = format!(
                "{} {} {} {}",
                base.transport.scheme(),
                base.host,
                base.port,
                base.path
            );
            assert_eq!(found, shown);
        }
        assert!(Host::parse("127.0.0.1").is_err());
        assert!(Host::parse("localhost").is_err());
    }

    #[test]
    fn what_is_no_base_url_is_refused() {
        for text in [
            "",
            "ftp://api.example.com",
            "api.example.com/v1",
            "https://",
            "https://user@api.example.com/v1",
            "https://api.example.com:0/v1",
            "https://api.example.com/v1?x=1",
            "https://api.example.com?x=1",
            "https://api.example.com/v1#x",
            "https://api.example.com/../v1",
            "https://api.example.com/a%2fb",
            "http://0x7f000001/v1",
            "http://127.1/v1",
        ] {
            assert!(ModelBase::parse(text).is_err(), "{text}");
        }
    }

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

    #[test]
    fn a_path_is_put_below_the_base() {
        let base = ModelBase::parse("https://api.example.com/v1").unwrap();
        let asked = RequestPath::parse("/chat/completions?a=b").unwrap();
        let path = base.below(&asked).unwrap();
        assert_eq!(path.path(), "/v1/chat/completions");
        assert_eq!(path.query(), Some("a=b"));
    }
}
