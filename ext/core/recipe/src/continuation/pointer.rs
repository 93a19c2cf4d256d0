//! JSON pointers (RFC 6901) with the limits that recipes require.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Maximum length of a JSON pointer in a recipe, in bytes.
const MAX_BYTES: usize = 1024;
/// Property names that a pointer must not contain. They have a special meaning in JavaScript, so a
/// consumer of the document could be manipulated with them.
const REFUSED: &[&str] = &["__proto__", "constructor", "prototype"];

/// A JSON pointer that a recipe may contain.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pointer(String);

/// Reason why a text is not a permitted pointer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum PointerError {
    /// The text has more than [`MAX_BYTES`] bytes.
    #[error("a JSON pointer must have at most {MAX_BYTES} bytes")]
    Long,
    /// The text is not empty and does not begin with `/`, or a `~` is not followed by 0 or 1.
    #[error(
        "a JSON pointer must be empty or begin with `/`, and each `~` must be followed by 0 or 1"
    )]
    Form,
    /// The pointer contains a property name that is special in JavaScript.
    #[error("a JSON pointer must not contain the name `__proto__`, `constructor` or `prototype`")]
    Token,
}

impl Pointer {
    /// Parses a JSON pointer and checks the limits for recipes.
    pub fn parse(text: &str) -> Result<Self, PointerError> {
        if text.len() > MAX_BYTES {
            return Err(PointerError::Long);
        }
        if !text.is_empty() && !text.starts_with('/') {
            return Err(PointerError::Form);
        }
        for token in text.split('/') {
            let escaped = |after: &str| after.starts_with(['0', '1']);
            if !token.split('~').skip(1).all(escaped) {
                return Err(PointerError::Form);
            }
            if REFUSED.contains(&unescaped(token).as_str()) {
                return Err(PointerError::Token);
            }
        }
        Ok(Self(text.to_owned()))
    }

    /// Returns the pointer as text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// Returns the value in the document at this pointer, if there is one.
    #[must_use]
    pub fn find<'a>(&self, document: &'a Value) -> Option<&'a Value> {
        document.pointer(&self.0)
    }

    /// Sets the value at the pointer: adds or replaces a member of an existing object, or replaces
    /// an item of a list. Fails for the whole document and for a position that does not exist.
    pub(super) fn put(&self, document: &mut Value, value: Value) -> Result<(), PutError> {
        let (parent, last) = self.0.rsplit_once('/').ok_or(PutError::Root)?;
        let holder = document.pointer_mut(parent).ok_or(PutError::Missing)?;
        if let Value::Object(members) = holder {
            members.insert(unescaped(last), value);
        } else {
            let slot = holder.pointer_mut(&self.0[parent.len()..]);
            *slot.ok_or(PutError::Missing)? = value;
        }
        Ok(())
    }
}

/// Reason why a pointer cannot set a value in a document: it points to the whole document (`Root`),
/// or to a position that the document does not have (`Missing`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum PutError {
    Root,
    Missing,
}

fn unescaped(token: &str) -> String {
    token.replace("~1", "/").replace("~0", "~")
}

impl TryFrom<String> for Pointer {
    type Error = PointerError;
    fn try_from(text: String) -> Result<Self, PointerError> {
        Self::parse(&text)
    }
}
impl From<Pointer> for String {
    fn from(pointer: Pointer) -> String {
        pointer.0
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn json_pointers_of_the_rfc_6901_examples_find_their_values_and_others_find_none() {
        let document = json!({"foo":["bar","baz"],"":0,"a/b":1,"c%d":2,"e^f":3,"g|h":4,"i\\j":5,"k\"l":6," ":7,"m~n":8});
        for (text, value) in [
            ("", document.clone()),
            ("/foo", json!(["bar", "baz"])),
            ("/foo/0", json!("bar")),
            ("/", json!(0)),
            ("/a~1b", json!(1)),
            ("/c%d", json!(2)),
            ("/e^f", json!(3)),
            ("/g|h", json!(4)),
            ("/i\\j", json!(5)),
            ("/k\"l", json!(6)),
            ("/ ", json!(7)),
            ("/m~0n", json!(8)),
        ] {
            let pointer = Pointer::parse(text).unwrap();
            assert_eq!(pointer.find(&document), Some(&value), "{text}");
        }
        for text in [
            "/foo/2", "/foo/-", "/foo/01", "/foo/+1", "/none", "/foo/0/x",
        ] {
            assert_eq!(
                Pointer::parse(text).unwrap().find(&document),
                None,
                "{text}"
            );
        }
    }

    #[test]
    fn json_pointer_with_wrong_syntax_javascript_name_or_excess_length_is_refused() {
        for (text, error) in [
            ("a", PointerError::Form),
            ("/~", PointerError::Form),
            ("/~2", PointerError::Form),
            ("/a/__proto__", PointerError::Token),
            ("/constructor/x", PointerError::Token),
            ("/prototype", PointerError::Token),
        ] {
            assert_eq!(Pointer::parse(text), Err(error), "{text}");
        }
        let long = format!("/{}", "a".repeat(MAX_BYTES));
        assert_eq!(Pointer::parse(&long), Err(PointerError::Long));
        assert!(Pointer::parse("/__proto").is_ok());
        assert!(Pointer::parse(&long[..MAX_BYTES]).is_ok());
    }
}
