//! Errors with a stable code, and their conversion to the body that callers receive.

use crate::{ErrorBody, ErrorCode};
use std::fmt::Display;

/// An error with a stable code.
///
/// `#[derive(CodedError)]` implements it from the attribute `code`, beside `thiserror::Error`. A
/// variant without a code does not compile.
///
/// | attribute | on | effect |
/// |---|---|---|
/// | `#[code(Busy)]` | variant, struct | the code is `ErrorCode::Busy` |
/// | `#[code(Busy)]` | enum | the code of variants that name none |
/// | `#[code(source)]` | variant, struct | the code of the wrapped error, with the own message |
/// | `#[code(transparent)]` | variant, struct | the code and the body of the wrapped error |
/// | `#[code(hint = "…")]` | variant, struct | a hint in the body; may be repeated |
/// | `#[code(hint = "…")]` | enum | the hint of variants that have none, except transparent ones |
/// | `#[code(detail = function)]` | enum, struct | `function(&self, ErrorBody) -> ErrorBody` completes the body, for example with data |
///
/// The wrapped error is the field with `#[source]` or `#[from]`, or with the name `source`, or the
/// only field.
///
/// ```
/// use wp_codebox_contracts::{CodedError, ErrorBody, ErrorCode};
///
/// #[derive(Debug, thiserror::Error, CodedError)]
/// #[code(InputInvalid)]
/// enum OpenError {
///     #[error("the path is empty")]
///     Empty,
///     #[error("another run uses {path}")]
///     #[code(Busy, hint = "wait until that run has ended")]
///     Used { path: String },
/// }
///
/// fn open(path: &str) -> Result<(), ErrorBody> {
///     Err(OpenError::Used { path: path.to_owned() })?
/// }
///
/// assert_eq!(OpenError::Empty.code(), ErrorCode::InputInvalid);
/// let body = open("a").unwrap_err();
/// assert_eq!(body.code, ErrorCode::Busy);
/// assert_eq!(body.message, "another run uses a");
/// assert_eq!(body.hints, ["wait until that run has ended"]);
/// ```
///
/// ```compile_fail
/// # use wp_codebox_contracts::CodedError;
/// #[derive(Debug, thiserror::Error, CodedError)]
/// enum OpenError {
///     #[error("the path is empty")]
///     #[code(InputInvalid)]
///     Empty,
///     #[error("another run uses the path")]
///     Used,
/// }
/// ```
pub trait CodedError: Display {
    /// Returns the stable code of the error.
    #[must_use]
    fn code(&self) -> ErrorCode;

    /// Returns code and message, with hints and data, as callers in other processes receive them.
    #[must_use]
    fn body(&self) -> ErrorBody {
        ErrorBody::new(self.code(), self.to_string())
    }
}

impl<E: CodedError> From<E> for ErrorBody {
    fn from(error: E) -> Self {
        error.body()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::CodedError;
    use serde_json::json;
    use thiserror::Error;

    #[derive(Debug, Error, CodedError)]
    #[error("the disk is full")]
    #[code(Busy, hint = "free space", hint = "or use another disk")]
    struct Full;

    #[derive(Debug, Error, CodedError)]
    #[code(InputInvalid, hint = "ask the operator", detail = Self::detail)]
    enum Outer {
        #[error("the name is empty")]
        Empty,
        #[error("{name} does not exist")]
        #[code(RunNotFound, hint = "list the names")]
        Missing { name: String },
        #[error("{name} cannot be written")]
        #[code(source)]
        Write { name: String, source: Full },
        #[error("not shown: {0}")]
        #[code(transparent)]
        Wrapped(#[from] Box<Full>),
        #[error("not shown: {error}, {name}")]
        #[code(transparent)]
        Marked {
            name: String,
            #[source]
            error: Full,
        },
    }

    impl Outer {
        fn detail(&self, body: ErrorBody) -> ErrorBody {
            match self {
                Self::Missing { name } | Self::Marked { name, .. } => {
                    body.with("name", name.as_str())
                }
                _ => body,
            }
        }
    }

    fn name() -> String {
        "a".to_owned()
    }

    #[test]
    fn struct_has_the_code_and_the_hints_of_its_attribute() {
        let body = ErrorBody::new(ErrorCode::Busy, "the disk is full");
        let body = body.hint("free space").hint("or use another disk");
        assert_eq!(Full.body(), body);
        assert_eq!(ErrorBody::from(Full), body);
    }

    #[test]
    fn variant_without_code_and_hint_has_those_of_the_enum() {
        let body = ErrorBody::new(ErrorCode::InputInvalid, "the name is empty");
        assert_eq!(Outer::Empty.body(), body.hint("ask the operator"));
    }

    #[test]
    fn detail_function_completes_the_body_of_a_variant() {
        let error = Outer::Missing { name: name() };
        assert_eq!(error.code(), ErrorCode::RunNotFound);
        let body = error.body();
        assert_eq!(body.hints, ["list the names"]);
        assert_eq!(
            body.data.map(|data| json!(data)),
            Some(json!({"name": "a"}))
        );
    }

    #[test]
    fn variant_with_the_code_of_its_source_has_its_own_message_and_hints() {
        let error = Outer::Write {
            name: name(),
            source: Full,
        };
        let body = ErrorBody::new(ErrorCode::Busy, "a cannot be written");
        assert_eq!(error.body(), body.hint("ask the operator"));
    }

    #[test]
    fn transparent_variant_has_code_and_body_of_the_wrapped_error() {
        let wrapped = Outer::from(Box::new(Full));
        assert_eq!(wrapped.code(), ErrorCode::Busy);
        assert_eq!(wrapped.body(), Full.body());
        let marked = Outer::Marked {
            name: name(),
            error: Full,
        };
        assert_eq!(marked.body(), Full.body().with("name", "a"));
    }

    #[test]
    fn question_mark_converts_a_coded_error_to_the_body() {
        let failed = || -> Result<(), ErrorBody> { Err(Full)? };
        assert_eq!(failed().unwrap_err(), Full.body());
    }
}
