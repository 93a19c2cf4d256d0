//! `WPCodebox\Native\Redactor`: removes secrets from text and nested data.

use crate::arguments::{Answer, Array, Bytes, Text};
use crate::convert::ConvertError;
use crate::guard::guard;
use ext_php_rs::exception::PhpResult;
use ext_php_rs::flags::ClassFlags;
use ext_php_rs::{php_class, php_impl};
use serde_json::{Map, Value};
use wp_codebox_policy as rules;

/// Lower-case parts of a key that mark its value as a secret.
const SECRET_PARTS: &[&str] = &[
    "secret",
    "token",
    "password",
    "passwd",
    "credential",
    "authorization",
    "private_key",
    "privatekey",
    "api_key",
    "apikey",
    "cookie",
];
/// Keys whose values are names of secrets, not secrets.
const NAMES_ONLY: &[&str] = &["secret_env", "secretenv", "secret_env_names"];

/// The PHP class that replaces secrets in text and nested data.
#[php_class]
#[php(name = "WPCodebox\\Native\\Redactor", flags = ClassFlags::Final)]
#[derive(Debug)]
pub(crate) struct Redactor;

#[php_impl]
impl Redactor {
    #[php(vis = "private")]
    fn __construct() -> Self {
        Self
    }

    /// Redacts secrets in a byte string: the given `values` and known secret formats. Other bytes
    /// stay unchanged.
    #[php(defaults(values = Array::default_list(&[])))]
    pub(crate) fn text(text: Text<'_>, values: Array<'_>) -> PhpResult<Bytes> {
        guard(|| {
            let redactor = redactor(&values)?;
            Ok(Bytes(redactor.redact_bytes(text.bytes()).into_owned()))
        })
    }

    /// Redacts secrets in nested data, keys included.
    #[php(defaults(values = Array::default_list(&[])))]
    pub(crate) fn data(data: Array<'_>, values: Array<'_>) -> PhpResult<Answer> {
        guard(|| {
            let redactor = redactor(&values)?;
            Ok(Answer(redact(data.value("data")?, &redactor)))
        })
    }
}

fn redactor(values: &Array<'_>) -> Result<rules::Redactor, ConvertError> {
    Ok(rules::Redactor::new(&values.texts("values")?))
}

fn redact(value: Value, redactor: &rules::Redactor) -> Value {
    match value {
        Value::String(text) => Value::String(redactor.redact(&text).into_owned()),
        Value::Array(list) => list.into_iter().map(|v| redact(v, redactor)).collect(),
        Value::Object(map) => {
            let mut out = Map::with_capacity(map.len());
            for (key, value) in map {
                let value = if is_secret(&key) && !matches!(value, Value::Null | Value::Bool(_)) {
                    Value::String("[redacted]".to_owned())
                } else {
                    redact(value, redactor)
                };
                out.insert(redactor.redact(&key).into_owned(), value);
            }
            Value::Object(out)
        }
        other => other,
    }
}

fn is_secret(key: &str) -> bool {
    let key = key.to_ascii_lowercase().replace('-', "_");
    !NAMES_ONLY.contains(&key.as_str()) && SECRET_PARTS.iter().any(|part| key.contains(part))
}
