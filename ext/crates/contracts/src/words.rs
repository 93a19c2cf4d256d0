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
