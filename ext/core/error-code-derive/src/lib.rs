//! The macro behind `#[derive(CodedError)]`, which `wp-codebox-contracts` exports and documents
//! beside the trait that it implements.
#![forbid(unsafe_code)]

mod attribute;
mod expand;

use proc_macro::TokenStream;
use syn::{DeriveInput, parse_macro_input};

/// Implements `CodedError`; the documentation of the trait describes the attribute `code`.
#[proc_macro_derive(CodedError, attributes(code))]
pub fn coded_error(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    expand::expand(&input)
        .unwrap_or_else(syn::Error::into_compile_error)
        .into()
}
