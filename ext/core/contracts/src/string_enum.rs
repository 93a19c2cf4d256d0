//! Macros for enums whose variants stand for fixed strings in JSON documents.

/// Defines an enum whose variants stand for strings: serde reads and writes the string, `as_str`
/// returns it, and `ALL` lists the variants in the order of their definition. The string of a
/// variant is written once, so JSON and `as_str` cannot differ.
#[macro_export]
macro_rules! string_enum {
    ($($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $text:literal),+ $(,)?
    })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        $vis enum $name { $($(#[$variant_meta])* #[serde(rename = $text)] $variant,)+ }

        impl $name {
            /// All variants, in the order of their definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the string of the variant.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)+ }
            }
        }
    )+};
}

/// Like [`string_enum!`], for documents that may contain other strings too: the variant after
/// `..` holds any string that is not listed.
macro_rules! open_string_enum {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $text:literal,)+
        .. $(#[$other_meta:meta])* $other:ident(String),
    }) => {
        $(#[$meta])*
        #[derive(Debug, Clone, PartialEq, Eq, ::serde::Serialize, ::serde::Deserialize)]
        #[serde(from = "String", into = "String")]
        pub enum $name {
            $($(#[$variant_meta])* $variant,)+
            $(#[$other_meta])* $other(String),
        }

        impl $name {
            /// Every variant with a fixed string.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant,)+];

            /// Returns the string that the value stands for.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $text,)+ Self::$other(text) => text }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() { $($text => Self::$variant,)+ _ => Self::$other(text) }
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                match value {
                    $name::$other(text) => text,
                    known => known.as_str().to_owned(),
                }
            }
        }
    };
}
pub(crate) use open_string_enum;

#[cfg(test)]
mod tests {
    use serde_json::json;

    string_enum! {
        #[derive(Default)]
        enum Example {
            First = "first",
            #[default]
            SecondWord = "second.word",
        }
    }

    #[test]
    fn string_enum_variant_has_the_same_text_in_json_and_in_as_str() {
        assert_eq!(Example::ALL, [Example::First, Example::SecondWord]);
        assert_eq!(Example::default().as_str(), "second.word");
        for &word in Example::ALL {
            assert_eq!(json!(word), word.as_str());
            assert_eq!(
                serde_json::from_value::<Example>(json!(word)).unwrap(),
                word
            );
        }
        assert!(serde_json::from_value::<Example>(json!("SecondWord")).is_err());
    }
}
