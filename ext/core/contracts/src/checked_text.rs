//! Macro for newtypes of a text that their constructor checks.

/// Implements, for a newtype of `String` whose `new` checks the text, what all of them have:
/// `as_str`, `Display`, and the conversions from and to `String` that serde uses.
#[macro_export]
macro_rules! checked_text {
    ($name:ident, $error:ty) => {
        impl $name {
            /// Returns the value as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl TryFrom<String> for $name {
            type Error = $error;
            fn try_from(text: String) -> Result<Self, $error> {
                Self::new(text)
            }
        }

        impl From<$name> for String {
            fn from(value: $name) -> Self {
                value.0
            }
        }

        impl ::std::fmt::Display for $name {
            fn fmt(&self, f: &mut ::std::fmt::Formatter<'_>) -> ::std::fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}
