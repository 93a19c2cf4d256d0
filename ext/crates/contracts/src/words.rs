//! Enums whose variants are the fixed words of a document.

/// Defines enums whose variants stand for words: serde reads and writes the word, `as_str` returns
/// it, and `ALL` lists the variants in the order of their definition. Each word is written once.
#[macro_export]
macro_rules! words {
    ($($(#[$meta:meta])* $vis:vis enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal),+ $(,)?
    })+) => {$(
        $(#[$meta])*
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, ::serde::Serialize, ::serde::Deserialize)]
        $vis enum $name { $($(#[$variant_meta])* #[serde(rename = $word)] $variant,)+ }

        impl $name {
            /// Every variant, in the order of their definition.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)+];

            /// The word.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $word,)+ }
            }
        }
    )+};
}

/// Like [`words!`], for documents that may hold other words too: the variant behind `..` keeps any
/// text that is not listed.
macro_rules! open_words {
    ($(#[$meta:meta])* pub enum $name:ident {
        $($(#[$variant_meta:meta])* $variant:ident = $word:literal,)+
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
            /// Every listed word.
            pub const KNOWN: &'static [Self] = &[$(Self::$variant,)+];

            /// The word.
            #[must_use]
            pub fn as_str(&self) -> &str {
                match self { $(Self::$variant => $word,)+ Self::$other(text) => text }
            }
        }

        impl From<String> for $name {
            fn from(text: String) -> Self {
                match text.as_str() { $($word => Self::$variant,)+ _ => Self::$other(text) }
            }
        }

        impl From<$name> for String {
            fn from(word: $name) -> Self {
                match word {
                    $name::$other(text) => text,
                    known => known.as_str().to_owned(),
                }
            }
        }
    };
}
pub(crate) use open_words;

#[cfg(test)]
mod tests {
    use serde_json::json;

    words! {
        #[derive(Default)]
        enum Example {
            First = "first",
            #[default]
            SecondWord = "second.word",
        }
    }

    #[test]
    fn a_variant_is_its_word_in_json_and_in_rust() {
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
