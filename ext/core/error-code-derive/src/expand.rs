//! Writes the implementation of `CodedError` for a struct or an enum.

use crate::attribute::{Attributes, Code};
use proc_macro2::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, Index, Member, Path, Result};

/// Arms of the two generated matches.
#[derive(Default)]
struct Arms {
    /// One for each variant.
    code: Vec<TokenStream>,
    /// One for each variant with hints or the body of the wrapped error.
    body: Vec<TokenStream>,
    /// Whether a variant has no arm in `body`.
    plain: bool,
}

/// Returns the implementation, or an error that points at the wrong attribute.
pub fn expand(input: &DeriveInput) -> Result<TokenStream> {
    let own = Attributes::read(&input.attrs)?;
    let mut arms = Arms::default();
    match &input.data {
        Data::Struct(data) => {
            let none = Attributes::default();
            arms.push(&input.ident, &quote!(Self), &data.fields, &own, &none)?;
        }
        Data::Enum(data) => {
            for variant in &data.variants {
                let name = &variant.ident;
                let attributes = Attributes::read(&variant.attrs)?;
                if let Some(detail) = attributes.detail {
                    return Err(Error::new_spanned(
                        detail,
                        "write `detail` on the enum; its function gets the errors of all variants",
                    ));
                }
                let path = quote!(Self::#name);
                arms.push(name, &path, &variant.fields, &attributes, &own)?;
            }
        }
        Data::Union(data) => {
            return Err(Error::new(
                data.union_token.span,
                "CodedError needs a struct or an enum",
            ));
        }
    }
    Ok(implementation(input, &arms, own.detail.as_ref()))
}

impl Arms {
    fn push(
        &mut self,
        name: &syn::Ident,
        path: &TokenStream,
        fields: &Fields,
        attributes: &Attributes,
        default: &Attributes,
    ) -> Result<()> {
        let Some(code) = attributes.code.as_ref().or(default.code.as_ref()) else {
            return Err(Error::new(
                name.span(),
                "the error has no code: add #[code(…)] with a variant of ErrorCode, `source` or `transparent`",
            ));
        };
        let hints = match attributes.hints.is_empty() {
            true => &default.hints,
            false => &attributes.hints,
        };
        match (code, attributes.hints.first()) {
            (Code::Transparent, Some(hint)) => {
                return Err(Error::new(
                    hint.span(),
                    "a transparent error has the hints of the wrapped error",
                ));
            }
            (Code::Transparent, None) => {
                let source = wrapped(name, fields)?;
                self.body
                    .push(quote!(#path { #source: source, .. } => source.body()));
            }
            _ if hints.is_empty() => self.plain = true,
            _ => self
                .body
                .push(quote!(#path { .. } => plain()#(.hint(#hints))*)),
        }
        self.code.push(match code {
            Code::Named(code) => quote!(#path { .. } => ErrorCode::#code),
            Code::Source | Code::Transparent => {
                let source = wrapped(name, fields)?;
                quote!(#path { #source: source, .. } => source.code())
            }
        });
        Ok(())
    }
}

/// Returns the field with the wrapped error: the one that is marked `#[source]` or `#[from]` or
/// named `source`, as thiserror chooses it, or the only field.
fn wrapped(name: &syn::Ident, fields: &Fields) -> Result<Member> {
    let is_source = |field: &syn::Field| {
        let marked = |attribute: &syn::Attribute| {
            attribute.path().is_ident("source") || attribute.path().is_ident("from")
        };
        field.attrs.iter().any(marked) || field.ident.as_ref().is_some_and(|name| name == "source")
    };
    let position = fields.iter().position(is_source);
    let position = position.or((fields.len() == 1).then_some(0));
    let Some((index, field)) = position.and_then(|index| Some((index, fields.iter().nth(index)?)))
    else {
        return Err(Error::new(
            name.span(),
            "no field is the wrapped error: mark it with #[source]",
        ));
    };
    Ok(field
        .ident
        .clone()
        .map_or_else(|| Member::Unnamed(Index::from(index)), Member::Named))
}

fn implementation(input: &DeriveInput, arms: &Arms, detail: Option<&Path>) -> TokenStream {
    let name = &input.ident;
    let (generics, arguments, bounds) = input.generics.split_for_impl();
    let (code, body) = (&arms.code, &arms.body);
    let rest = arms.plain.then(|| quote!(_ => plain(),));
    let body = match (body.is_empty(), detail) {
        // The body of the trait.
        (true, None) => None,
        (true, Some(_)) => Some(quote!(plain())),
        (false, _) => Some(quote!(match self { #(#body,)* #rest })),
    };
    let body = body.map(|body| {
        let body = detail.map_or_else(|| body.clone(), |detail| quote!(#detail(self, #body)));
        quote! {
            fn body(&self) -> ::wp_codebox_contracts::ErrorBody {
                let plain = || ::wp_codebox_contracts::ErrorBody::new(self.code(), ::std::string::ToString::to_string(self));
                #body
            }
        }
    });
    quote! {
        const _: () = {
            use ::wp_codebox_contracts::{CodedError, ErrorCode};

            #[automatically_derived]
            impl #generics CodedError for #name #arguments #bounds {
                fn code(&self) -> ErrorCode {
                    match self { #(#code,)* }
                }
                #body
            }
        };
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use syn::parse_quote;

    fn refusal(input: DeriveInput) -> String {
        expand(&input)
            .map_or_else(|error| error, |_| panic!("accepted"))
            .to_string()
    }

    #[test]
    fn variant_without_code_is_refused_unless_the_enum_has_one() {
        let error = refusal(parse_quote! { enum E { #[code(Busy)] A, B } });
        assert!(error.contains("has no code"), "{error}");
        expand(&parse_quote! { #[code(Busy)] enum E { A, B } }).unwrap();
    }

    #[test]
    fn attributes_in_wrong_places_are_refused() {
        for (input, part) in [
            (
                parse_quote! { enum E { #[code(transparent, hint = "h")] A(S) } },
                "hints of the wrapped error",
            ),
            (
                parse_quote! { enum E { #[code(source)] A { a: S, b: S } } },
                "no field is the wrapped error",
            ),
            (
                parse_quote! { enum E { #[code(Busy, detail = f)] A } },
                "`detail` on the enum",
            ),
            (
                parse_quote! { #[code(Busy, Internal)] struct E; },
                "one code",
            ),
            (
                parse_quote! { #[code(Busy, message = "m")] struct E; },
                "write a variant of ErrorCode",
            ),
            (parse_quote! { union E { a: u8 } }, "a struct or an enum"),
        ] {
            let error = refusal(input);
            assert!(error.contains(part), "{error}");
        }
    }
}
