//! Parses the attribute `#[code(…)]`.

use syn::parse::{Parse, ParseStream};
use syn::punctuated::Punctuated;
use syn::{Attribute, Error, Ident, LitStr, Path, Result, Token};

/// From where a variant has its code.
pub enum Code {
    /// The variant of `ErrorCode` with this name.
    Named(Ident),
    /// The code of the wrapped error; the message is the variant's own.
    Source,
    /// Code, message, hints and data of the wrapped error.
    Transparent,
}

/// What the attributes of one type or variant say.
#[derive(Default)]
pub struct Attributes {
    pub code: Option<Code>,
    pub hints: Vec<LitStr>,
    pub detail: Option<Path>,
}

/// One argument of the attribute.
enum Argument {
    Code(Code),
    Hint(LitStr),
    Detail(Path),
}

impl Parse for Argument {
    fn parse(input: ParseStream<'_>) -> Result<Self> {
        let name: Ident = input.parse()?;
        let with_value = input.parse::<Option<Token![=]>>()?.is_some();
        match (name.to_string().as_str(), with_value) {
            ("hint", true) => input.parse().map(Self::Hint),
            ("detail", true) => input.parse().map(Self::Detail),
            ("source", false) => Ok(Self::Code(Code::Source)),
            ("transparent", false) => Ok(Self::Code(Code::Transparent)),
            ("hint" | "detail", false) | (_, true) => Err(Error::new(
                name.span(),
                "write a variant of ErrorCode, `source`, `transparent`, `hint = \"…\"` or `detail = function`",
            )),
            (_, false) => Ok(Self::Code(Code::Named(name))),
        }
    }
}

impl Attributes {
    /// Reads every `#[code(…)]` among the attributes of a type or variant.
    pub fn read(attributes: &[Attribute]) -> Result<Self> {
        let mut read = Self::default();
        for attribute in attributes.iter().filter(|a| a.path().is_ident("code")) {
            let arguments =
                attribute.parse_args_with(Punctuated::<Argument, Token![,]>::parse_terminated)?;
            for argument in arguments {
                let replaced = match argument {
                    Argument::Code(code) => read.code.replace(code).is_some(),
                    Argument::Detail(detail) => read.detail.replace(detail).is_some(),
                    Argument::Hint(hint) => {
                        read.hints.push(hint);
                        false
                    }
                };
                if replaced {
                    return Err(Error::new_spanned(
                        attribute,
                        "give one code and one `detail`",
                    ));
                }
            }
        }
        Ok(read)
    }
}
