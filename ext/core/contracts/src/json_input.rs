//! Parses JSON that a caller wrote.
//!
//! JSON has one type of numbers, so an encoder may write the integer 7382 as `7382.0`. A parsed
//! document has the integer, whichever form the text has: every field of an integer type accepts
//! both forms, and both have the same digest.

use serde::de::{
    Deserialize, DeserializeSeed, Deserializer, EnumAccess, MapAccess, SeqAccess, VariantAccess,
    Visitor,
};
use serde_json::Number;
use std::fmt;

/// Largest absolute value of a float that becomes an integer: 2^53. Above it, neighbouring integers
/// have the same float.
const LARGEST: f64 = 9_007_199_254_740_992.0;

/// Parses JSON text of a caller. Whole numbers become integers, see [`json_number`].
///
/// # Errors
/// The text is not JSON, or not of this type. The message may quote a value.
///
/// ```
/// use wp_codebox_contracts::parse_json;
/// assert_eq!(parse_json::<u32>(b"7382.0").unwrap(), 7382);
/// assert!(parse_json::<u32>(b"7382.5").is_err());
/// ```
pub fn parse_json<'de, T: Deserialize<'de>>(text: &'de [u8]) -> serde_json::Result<T> {
    let mut reader = serde_json::Deserializer::from_slice(text);
    let value = T::deserialize(WholeNumbers(&mut reader))?;
    reader.end()?;
    Ok(value)
}

/// Converts a float to a JSON number: an integer if it has no fraction and its absolute value is at
/// most 2^53, so that -0.0 becomes 0. Returns `None` for NaN and infinity.
#[must_use]
pub fn json_number(number: f64) -> Option<Number> {
    match whole(number) {
        Some(whole) => Some(whole.into()),
        None => Number::from_f64(number),
    }
}

fn whole(number: f64) -> Option<i64> {
    let is_whole = number.fract() == 0.0 && number.abs() <= LARGEST;
    is_whole.then_some(number as i64)
}

/// A deserializer that passes whole floats to the type as integers. It also wraps what serde calls
/// below it: visitors, seeds, and the access to lists, objects and enums.
#[derive(Debug)]
pub struct WholeNumbers<T>(pub T);

impl<'de, D: Deserializer<'de>> Deserializer<'de> for WholeNumbers<D> {
    type Error = D::Error;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_any(WholeNumbers(visitor))
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, D::Error> {
        self.0.deserialize_option(WholeNumbers(visitor))
    }

    fn deserialize_newtype_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_newtype_struct(name, WholeNumbers(visitor))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, D::Error> {
        self.0
            .deserialize_enum(name, variants, WholeNumbers(visitor))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf unit
        unit_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

/// Writes the methods of a visitor that pass their value on unchanged.
macro_rules! pass_on {
    ($($method:ident($kind:ty))*) => {$(
        fn $method<E: serde::de::Error>(self, value: $kind) -> Result<V::Value, E> {
            self.0.$method(value)
        }
    )*};
}

impl<'de, V: Visitor<'de>> Visitor<'de> for WholeNumbers<V> {
    type Value = V::Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.expecting(f)
    }

    pass_on! {
        visit_bool(bool) visit_i64(i64) visit_u64(u64)
        visit_str(&str) visit_borrowed_str(&'de str) visit_string(String)
    }

    fn visit_f64<E: serde::de::Error>(self, number: f64) -> Result<V::Value, E> {
        match whole(number).map(|whole| (u64::try_from(whole), whole)) {
            Some((Ok(whole), _)) => self.0.visit_u64(whole),
            Some((Err(_), whole)) => self.0.visit_i64(whole),
            None => self.0.visit_f64(number),
        }
    }

    fn visit_unit<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_unit()
    }

    fn visit_none<E: serde::de::Error>(self) -> Result<V::Value, E> {
        self.0.visit_none()
    }

    fn visit_some<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_some(WholeNumbers(inner))
    }

    fn visit_newtype_struct<D: Deserializer<'de>>(self, inner: D) -> Result<V::Value, D::Error> {
        self.0.visit_newtype_struct(WholeNumbers(inner))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Value, A::Error> {
        self.0.visit_seq(WholeNumbers(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Value, A::Error> {
        self.0.visit_map(WholeNumbers(members))
    }

    fn visit_enum<A: EnumAccess<'de>>(self, variant: A) -> Result<V::Value, A::Error> {
        self.0.visit_enum(WholeNumbers(variant))
    }
}

impl<'de, S: DeserializeSeed<'de>> DeserializeSeed<'de> for WholeNumbers<S> {
    type Value = S::Value;

    fn deserialize<D: Deserializer<'de>>(self, reader: D) -> Result<S::Value, D::Error> {
        self.0.deserialize(WholeNumbers(reader))
    }
}

impl<'de, A: SeqAccess<'de>> SeqAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;

    fn next_element_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        self.0.next_element_seed(WholeNumbers(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: MapAccess<'de>> MapAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;

    fn next_key_seed<S: DeserializeSeed<'de>>(
        &mut self,
        seed: S,
    ) -> Result<Option<S::Value>, A::Error> {
        // A key is text; a number in it is not a JSON number.
        self.0.next_key_seed(seed)
    }

    fn next_value_seed<S: DeserializeSeed<'de>>(&mut self, seed: S) -> Result<S::Value, A::Error> {
        self.0.next_value_seed(WholeNumbers(seed))
    }

    fn size_hint(&self) -> Option<usize> {
        self.0.size_hint()
    }
}

impl<'de, A: EnumAccess<'de>> EnumAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;
    type Variant = WholeNumbers<A::Variant>;

    fn variant_seed<S: DeserializeSeed<'de>>(
        self,
        seed: S,
    ) -> Result<(S::Value, Self::Variant), A::Error> {
        let (name, variant) = self.0.variant_seed(seed)?;
        Ok((name, WholeNumbers(variant)))
    }
}

impl<'de, A: VariantAccess<'de>> VariantAccess<'de> for WholeNumbers<A> {
    type Error = A::Error;

    fn unit_variant(self) -> Result<(), A::Error> {
        self.0.unit_variant()
    }

    fn newtype_variant_seed<S: DeserializeSeed<'de>>(self, seed: S) -> Result<S::Value, A::Error> {
        self.0.newtype_variant_seed(WholeNumbers(seed))
    }

    fn tuple_variant<V: Visitor<'de>>(
        self,
        length: usize,
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.tuple_variant(length, WholeNumbers(visitor))
    }

    fn struct_variant<V: Visitor<'de>>(
        self,
        fields: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, A::Error> {
        self.0.struct_variant(fields, WholeNumbers(visitor))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(deny_unknown_fields)]
    struct Document {
        count: u32,
        offset: Option<i8>,
        #[serde(default)]
        share: f64,
        #[serde(default)]
        duration: Option<Duration>,
        #[serde(default)]
        action: Option<Action>,
        #[serde(default)]
        names: BTreeMap<String, Vec<Id>>,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(untagged)]
    enum Duration {
        Milliseconds(u64),
        Text(String),
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    #[serde(rename_all = "snake_case")]
    enum Action {
        Wait(u8),
        Click { x: u16 },
        Pair(u8, u8),
        Stop,
    }

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Id(u64);

    #[test]
    fn whole_floats_up_to_2_to_the_53_become_integers_and_other_numbers_stay() {
        for (text, parsed) in [
            ("7382.0", json!(7382)),
            ("7.382e3", json!(7382)),
            ("-7.0", json!(-7)),
            ("-0.0", json!(0)),
            ("-0", json!(0)),
            ("9007199254740992.0", json!(9_007_199_254_740_992_u64)),
            ("-9007199254740992.0", json!(-9_007_199_254_740_992_i64)),
            ("9007199254740994.0", json!(9_007_199_254_740_994.0)),
            ("7382.5", json!(7382.5)),
            ("1e300", json!(1e300)),
            ("18446744073709551615", json!(u64::MAX)),
            ("18446744073709551616", json!(18_446_744_073_709_551_616.0)),
        ] {
            let nested = format!(r#"{{"a": [{{"b": {text}}}]}}"#);
            let value: Value = parse_json(nested.as_bytes()).unwrap();
            assert_eq!(value, json!({"a": [{"b": parsed}]}), "{text}");
            if let Ok(number) = text.parse::<f64>()
                && text.contains(['.', 'e'])
            {
                assert_eq!(json_number(number).map(Value::Number), Some(parsed));
            }
        }
        for invalid in ["NaN", "1e999", "1.", "1 2"] {
            assert!(
                parse_json::<Value>(invalid.as_bytes()).is_err(),
                "{invalid}"
            );
        }
        assert_eq!(json_number(f64::NAN), None);
        assert_eq!(json_number(f64::NEG_INFINITY), None);
    }

    #[test]
    fn integer_fields_of_every_kind_accept_whole_floats_and_refuse_fractions() {
        let text = r#"{"count": N.0, "offset": -N.0, "share": N.0, "duration": N.0,
            "action": {"click": {"x": N.0}}, "names": {"1.0": [N.0]}}"#;
        let read = |text: &str| parse_json::<Document>(text.as_bytes());
        let integers = read(&text.replace("N.0", "7")).unwrap();
        assert_eq!(read(&text.replace('N', "7")).unwrap(), integers);
        assert_eq!(integers.duration, Some(Duration::Milliseconds(7)));
        assert_eq!(integers.names["1.0"], [Id(7)]);
        let actions = [
            (r#"{"wait": 7.0}"#, Action::Wait(7)),
            (r#"{"pair": [7.0, 1e1]}"#, Action::Pair(7, 10)),
            (r#""stop""#, Action::Stop),
        ];
        for (action, parsed) in actions {
            let text = format!(r#"{{"count": 1, "offset": null, "action": {action}}}"#);
            assert_eq!(read(&text).unwrap().action, Some(parsed));
        }
        let share = read(r#"{"count": 1, "share": 0.5}"#).unwrap().share;
        assert!((share - 0.5).abs() < f64::EPSILON);
        for refused in [
            r#"{"count": 7.5}"#,
            r#"{"count": 1e300}"#,
            r#"{"count": -1.0}"#,
            r#"{"count": 1, "offset": 128.0}"#,
        ] {
            assert!(read(refused).is_err(), "{refused}");
        }
    }

    #[test]
    fn unknown_and_duplicate_members_are_refused_with_their_position() {
        for (text, said) in [
            (r#"{"count": 7.0, "counts": 1}"#, "unknown field `counts`"),
            (r#"{"count": 7.0, "count": 7}"#, "duplicate field `count`"),
        ] {
            let error = parse_json::<Document>(text.as_bytes()).unwrap_err();
            assert!(error.to_string().starts_with(said), "{error}");
            assert_eq!(error.line(), 1);
        }
    }
}
