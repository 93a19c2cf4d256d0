//! Parameter and return types of the PHP methods. They declare the PHP type in the signature; the
//! method itself validates the content and reports error codes.

use crate::convert::{ConvertError, from_own_zval, from_upload_zval, from_zval, to_zval};
use crate::guard::Failure;
use ext_php_rs::convert::{FromZval, IntoZval, StubLiteral};
use ext_php_rs::error::Result as ZendResult;
use ext_php_rs::flags::DataType;
use ext_php_rs::types::{ZendCallable, ZendStr, Zval};
use ext_php_rs::zend::ExecutorGlobals;
use serde_json::{Map, Value};
use wp_codebox_contracts::{ErrorBody, ErrorCode, InvalidId, SiteId};

/// A string argument from PHP. Whether it is UTF-8 is checked when it is used, so that the
/// exception for invalid UTF-8 has an error code.
pub(crate) struct Text<'a>(&'a ZendStr);

impl<'a> Text<'a> {
    /// Returns the text, or an error that names the parameter.
    pub(crate) fn utf8(&self, name: &str) -> Result<&'a str, ConvertError> {
        self.0.as_str().map_err(|_| ConvertError::NotUtf8 {
            at: name.to_owned(),
        })
    }

    /// Returns the text as the id of a site; fails if it is not a valid id.
    pub(crate) fn site(&self) -> Result<SiteId, Failure> {
        let refused = |error: InvalidId| ErrorBody::new(ErrorCode::InputInvalid, error.to_string());
        Ok(SiteId::new(self.utf8("site")?).map_err(refused)?)
    }

    /// Returns the unmodified bytes.
    pub(crate) fn bytes(&self) -> &'a [u8] {
        self.0.as_bytes()
    }
}

impl<'a> FromZval<'a> for Text<'a> {
    const TYPE: DataType = DataType::String;
    fn from_zval(zval: &'a Zval) -> Option<Self> {
        zval.dereference().zend_str().map(Text)
    }
}

/// An array argument from PHP, converted when it is used. If it was omitted, its value is
/// `default`, a list of strings.
pub(crate) struct Array<'a> {
    zval: Option<&'a Zval>,
    default: &'static [&'static str],
}

impl<'a> Array<'a> {
    /// Returns the argument for an omitted parameter: its value is the list `default`.
    pub(crate) const fn default_list(default: &'static [&'static str]) -> Self {
        Self {
            zval: None,
            default,
        }
    }

    /// Returns the array as a JSON value. `name` is the parameter, for the error message.
    pub(crate) fn value(&self, name: &str) -> Result<Value, ConvertError> {
        match self.zval {
            Some(zval) => from_zval(zval, name),
            None => Ok(self.default.iter().copied().map(Value::from).collect()),
        }
    }

    /// Returns the array as a JSON object; fails for a list that is not empty. `[]` counts as the
    /// empty object.
    pub(crate) fn object(&self, name: &str) -> Result<Map<String, Value>, ConvertError> {
        match self.value(name)? {
            Value::Object(map) => Ok(map),
            Value::Array(list) if list.is_empty() => Ok(Map::new()),
            _ => Err(ConvertError::NotAnObject {
                at: name.to_owned(),
            }),
        }
    }

    /// Like [`Array::object`], for a value that this extension returned to PHP before.
    pub(crate) fn own_object(&self, name: &str) -> Result<Map<String, Value>, ConvertError> {
        let value = self
            .zval
            .map(|zval| from_own_zval(zval, name))
            .transpose()?;
        match value {
            Some(Value::Object(map)) => Ok(map),
            None => Ok(Map::new()),
            Some(Value::Array(list)) if list.is_empty() => Ok(Map::new()),
            Some(_) => Err(ConvertError::NotAnObject {
                at: name.to_owned(),
            }),
        }
    }

    /// Like [`Array::object`], for an argument with the contents of uploaded files.
    pub(crate) fn upload_object(&self, name: &str) -> Result<Map<String, Value>, ConvertError> {
        let value = self
            .zval
            .map(|zval| from_upload_zval(zval, name))
            .transpose()?;
        match value {
            Some(Value::Object(map)) => Ok(map),
            None | Some(_) => Err(ConvertError::NotAnObject {
                at: name.to_owned(),
            }),
        }
    }

    /// Returns the array as a list of strings; fails if an element is not a string or the array is
    /// not a list.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, ConvertError> {
        let refused = || ConvertError::NotTexts {
            at: name.to_owned(),
        };
        let Value::Array(list) = self.value(name)? else {
            return Err(refused());
        };
        list.into_iter()
            .map(|item| match item {
                Value::String(text) => Ok(text),
                _ => Err(refused()),
            })
            .collect()
    }
}

impl<'a> FromZval<'a> for Array<'a> {
    const TYPE: DataType = DataType::Array;
    fn from_zval(zval: &'a Zval) -> Option<Self> {
        let zval = zval.dereference();
        zval.is_array().then_some(Self {
            zval: Some(zval),
            default: &[],
        })
    }
}

impl StubLiteral for Array<'_> {
    fn stub_literal(&self) -> String {
        self.default.stub_literal()
    }
}

/// A JSON object or list that is returned to PHP; `array` in the signature.
#[derive(Clone)]
pub(crate) struct Answer(pub(crate) Value);

impl IntoZval for Answer {
    const TYPE: DataType = DataType::Array;
    const NULLABLE: bool = false;
    fn set_zval(self, zval: &mut Zval, _: bool) -> ZendResult<()> {
        *zval = to_zval(&self.0);
        Ok(())
    }
}

/// Bytes that are returned to PHP; `string` in the signature.
pub(crate) struct Bytes(pub(crate) Vec<u8>);

impl IntoZval for Bytes {
    const TYPE: DataType = DataType::String;
    const NULLABLE: bool = false;
    fn set_zval(self, zval: &mut Zval, _: bool) -> ZendResult<()> {
        zval.set_zend_string(ZendStr::new(&self.0, false));
        Ok(())
    }
}

/// Calls a PHP function with one array. `name` is the parameter that holds the function.
pub(crate) fn call(
    callable: &ZendCallable<'_>,
    name: &str,
    argument: Value,
) -> Result<Zval, Failure> {
    match callable.try_call(vec![&Answer(argument)]) {
        Ok(answer) => Ok(answer),
        Err(_) if ExecutorGlobals::has_exception() => Err(Failure::Pending),
        Err(_) => Err(ErrorBody::new(
            ErrorCode::InputInvalid,
            format!(
                "the argument \"{name}\" cannot be called; pass a function that accepts one array"
            ),
        )
        .into()),
    }
}
