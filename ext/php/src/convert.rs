//! PHP values to JSON values and back, with limits.
//!
//! JSON text is UTF-8. A PHP string that is not UTF-8 gives an error with the path of the string;
//! the string is never changed. A float without a fraction becomes an integer, because PHP decodes
//! `7382.0` to a float. A PHP array with the keys 0, 1, 2, … is a list, any other an object; both
//! `[]` and `{}` become `[]` in PHP. The depth limit also stops recursive references.

use ext_php_rs::types::{ZendHashTable, ZendStr, Zval};
use serde_json::{Map, Value};
use std::fmt::Write as _;
use wp_codebox_contracts::{CodedError, json_number};

/// Maximum nesting depth of one PHP argument. The JSON parser of the supervisor allows 128 levels,
/// including those of the message around a request.
pub(crate) const MAX_DEPTH: usize = 64;
/// Maximum nesting depth of a value that this extension returned to PHP before: 128 levels of the
/// JSON parser and 8 of the document around it.
const MAX_OWN_DEPTH: usize = 136;
/// Factor by which the limits of values and text of such a value exceed those of an argument.
const OWN_FACTOR: usize = 64;
/// Maximum number of values in one PHP argument, nested ones included.
pub(crate) const MAX_VALUES: usize = 500_000;
/// Maximum number of bytes of all strings in an argument with uploaded files: 50 MiB in base64, and
/// everything else.
const MAX_UPLOAD_BYTES: usize = 80 * 1024 * 1024;
/// Maximum number of bytes of all strings in one PHP argument together.
pub(crate) const MAX_TEXT_BYTES: usize = 16 * 1024 * 1024;

/// Reason why a PHP value has no JSON form. `at` is the path of the value, for example
/// `request.mounts[0].source`.
#[derive(Debug, thiserror::Error, CodedError)]
#[code(InputInvalid)]
pub(crate) enum ConvertError {
    /// A string is not UTF-8.
    #[error("{at} is not valid UTF-8; give text, or base64 for bytes")]
    NotUtf8 { at: String },
    /// A key is not UTF-8.
    #[error("{at} has a key that is not valid UTF-8; use text keys")]
    KeyNotUtf8 { at: String },
    /// The number is NAN or infinite.
    #[error("{at} is NAN or infinite; give a finite number")]
    NotFinite { at: String },
    /// The value is an object or a resource, which have no JSON form.
    #[error("{at} must be null, a bool, a number, a string or an array")]
    Kind { at: String },
    /// The nesting is too deep, or the value contains itself.
    #[error("{at} is nested deeper than {depth} levels, or contains itself; flatten it")]
    TooDeep { at: String, depth: usize },
    /// There are too many values.
    #[error("{at} contains more than {MAX_VALUES} values; pass fewer")]
    TooMany { at: String },
    /// There is too much text.
    #[error("{at} contains more than {MAX_TEXT_BYTES} bytes of text; pass less")]
    TooLarge { at: String },
    /// A list was given where string keys are required.
    #[error("{at} must be an array with string keys, not a list")]
    NotAnObject { at: String },
    /// A list of strings was expected.
    #[error("{at} must be a list of strings")]
    NotTexts { at: String },
}

/// One step of the path into a nested value; the path is formatted only for an error message.
enum Step {
    Index(usize),
    Key(String),
}

/// A conversion in progress: its remaining limits and its current position.
struct Reader<'a> {
    name: &'a str,
    path: Vec<Step>,
    depth: usize,
    values: usize,
    bytes: usize,
}

impl Reader<'_> {
    fn at(&self) -> String {
        let mut at = self.name.to_owned();
        for step in &self.path {
            let _ = match step {
                Step::Index(index) => write!(at, "[{index}]"),
                Step::Key(key) => write!(at, ".{key}"),
            };
        }
        at
    }

    fn root(&self) -> String {
        self.name.to_owned()
    }

    fn text(&mut self, text: &ZendStr) -> Result<String, ConvertError> {
        self.bytes = self
            .bytes
            .checked_sub(text.len())
            .ok_or_else(|| ConvertError::TooLarge { at: self.root() })?;
        match text.as_str() {
            Ok(text) => Ok(text.to_owned()),
            Err(_) => Err(ConvertError::NotUtf8 { at: self.at() }),
        }
    }

    fn value(&mut self, zval: &Zval) -> Result<Value, ConvertError> {
        let zval = zval.dereference();
        self.values = self
            .values
            .checked_sub(1)
            .ok_or_else(|| ConvertError::TooMany { at: self.root() })?;
        if zval.is_null() {
            Ok(Value::Null)
        } else if let Some(flag) = zval.bool() {
            Ok(Value::Bool(flag))
        } else if let Some(number) = zval.long() {
            Ok(Value::from(number))
        } else if let Some(number) = zval.double() {
            json_number(number)
                .map(Value::Number)
                .ok_or_else(|| ConvertError::NotFinite { at: self.at() })
        } else if let Some(text) = zval.zend_str() {
            self.text(text).map(Value::String)
        } else if let Some(table) = zval.array() {
            self.array(table)
        } else {
            Err(ConvertError::Kind { at: self.at() })
        }
    }

    fn array(&mut self, table: &ZendHashTable) -> Result<Value, ConvertError> {
        if self.path.len() >= self.depth {
            return Err(ConvertError::TooDeep {
                at: self.root(),
                depth: self.depth,
            });
        }
        if is_list(table) {
            let mut list = Vec::with_capacity(table.len().min(self.values));
            let mut rows = table.iter();
            while let Some((_, item)) = rows.next_zval() {
                self.path.push(Step::Index(list.len()));
                list.push(self.value(item)?);
                self.path.pop();
            }
            return Ok(Value::Array(list));
        }
        let mut map = Map::with_capacity(table.len().min(self.values));
        let mut rows = table.iter();
        while let Some((key, item)) = rows.next_zval() {
            let key = match (key.long(), key.zend_str()) {
                (Some(number), _) => number.to_string(),
                (None, Some(text)) => match self.text(text) {
                    Err(ConvertError::NotUtf8 { at }) => {
                        return Err(ConvertError::KeyNotUtf8 { at });
                    }
                    other => other?,
                },
                (None, None) => return Err(ConvertError::Kind { at: self.at() }),
            };
            self.path.push(Step::Key(key.clone()));
            let item = self.value(item)?;
            self.path.pop();
            map.insert(key, item);
        }
        Ok(Value::Object(map))
    }
}

/// Returns whether the keys are 0, 1, 2, …; uses `next_zval` because the check of ext-php-rs panics
/// on a key that is not UTF-8.
fn is_list(table: &ZendHashTable) -> bool {
    let mut rows = table.iter();
    let mut index = 0;
    while let Some((key, _)) = rows.next_zval() {
        if key.long() != Some(index) {
            return false;
        }
        index += 1;
    }
    true
}

/// Converts a PHP value; `name` is the parameter and starts the path in every error.
pub(crate) fn from_zval(zval: &Zval, name: &str) -> Result<Value, ConvertError> {
    Reader {
        name,
        path: Vec::new(),
        depth: MAX_DEPTH,
        values: MAX_VALUES,
        bytes: MAX_TEXT_BYTES,
    }
    .value(zval)
}

/// Converts an argument with the contents of uploaded files.
pub(crate) fn from_upload_zval(zval: &Zval, name: &str) -> Result<Value, ConvertError> {
    Reader {
        name,
        path: Vec::new(),
        depth: MAX_DEPTH,
        values: MAX_VALUES,
        bytes: MAX_UPLOAD_BYTES,
    }
    .value(zval)
}

/// Converts a value that this extension returned to PHP before, such as the result of a run. Its
/// limits are far above those of an argument that a user wrote.
pub(crate) fn from_own_zval(zval: &Zval, name: &str) -> Result<Value, ConvertError> {
    Reader {
        name,
        path: Vec::new(),
        depth: MAX_OWN_DEPTH,
        values: OWN_FACTOR * MAX_VALUES,
        bytes: OWN_FACTOR * MAX_TEXT_BYTES,
    }
    .value(zval)
}

/// Converts a JSON value to PHP. Unsigned numbers above `PHP_INT_MAX` become floats.
pub(crate) fn to_zval(value: &Value) -> Zval {
    let mut zval = Zval::new();
    match value {
        Value::Null => zval.set_null(),
        Value::Bool(flag) => zval.set_bool(*flag),
        Value::Number(number) => match number.as_i64() {
            Some(whole) => zval.set_long(whole),
            None => zval.set_double(number.as_f64().unwrap_or_default()),
        },
        Value::String(text) => zval.set_zend_string(ZendStr::new(text, false)),
        Value::Array(list) => {
            let mut table = ZendHashTable::with_capacity(capacity(list.len()));
            for item in list {
                // `push` fails only if its argument cannot be converted to a zval; this one is a
                // zval already.
                let _ = table.push(to_zval(item));
            }
            zval.set_hashtable(table);
        }
        Value::Object(map) => {
            let mut table = ZendHashTable::with_capacity(capacity(map.len()));
            for (key, item) in map {
                let _ = table.insert(key.as_str(), to_zval(item));
            }
            zval.set_hashtable(table);
        }
    }
    zval
}

fn capacity(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}
