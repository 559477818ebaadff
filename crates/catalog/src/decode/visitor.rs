//! Visitors for one JSON value of any kind: a trait that reduces serde's visitor to three methods, and two visitors
//! that build no value.
//! Invariant: the visitor that skips a value allocates nothing. It refuses the same invalid text as a parser that
//! builds a tree.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

/// Receives one JSON value while the text is parsed.
pub(super) trait JsonVisitor<'de>: Sized {
    type Output;

    fn scalar(self, value: JsonScalar<'_>) -> Self::Output;

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Output, A::Error>;

    fn object<A: MapAccess<'de>>(self, members: A) -> Result<Self::Output, A::Error>;
}

pub(super) enum JsonScalar<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'t str),
}

/// Wraps a `JsonVisitor` as the `DeserializeSeed` that serde requires.
pub(super) struct Visit<V>(pub V);

impl<'de, V: JsonVisitor<'de>> DeserializeSeed<'de> for Visit<V> {
    type Value = V::Output;
    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<V::Output, D::Error> {
        text.deserialize_any(self)
    }
}

impl<'de, V: JsonVisitor<'de>> Visitor<'de> for Visit<V> {
    type Value = V::Output;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }
    fn visit_unit<E>(self) -> Result<V::Output, E> {
        Ok(self.0.scalar(JsonScalar::Null))
    }
    fn visit_bool<E>(self, value: bool) -> Result<V::Output, E> {
        Ok(self.0.scalar(JsonScalar::Bool(value)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<V::Output, E> {
        Ok(self.0.scalar(JsonScalar::Number(value.into())))
    }
    fn visit_u64<E>(self, value: u64) -> Result<V::Output, E> {
        Ok(self.0.scalar(JsonScalar::Number(value.into())))
    }
    fn visit_f64<E>(self, value: f64) -> Result<V::Output, E> {
        Ok(self.0.scalar(Number::from_f64(value).map_or(JsonScalar::Null, JsonScalar::Number)))
    }
    fn visit_str<E>(self, text: &str) -> Result<V::Output, E> {
        Ok(self.0.scalar(JsonScalar::Text(text)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<V::Output, A::Error> {
        self.0.array(items)
    }
    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<V::Output, A::Error> {
        self.0.object(members)
    }
}

impl From<JsonScalar<'_>> for Value {
    fn from(scalar: JsonScalar<'_>) -> Value {
        match scalar {
            JsonScalar::Null => Value::Null,
            JsonScalar::Bool(value) => Value::Bool(value),
            JsonScalar::Number(number) => Value::Number(number),
            JsonScalar::Text(text) => Value::String(text.to_owned()),
        }
    }
}

/// Skips a value. The output is `false` for `null` and `true` for any other value.
#[derive(Clone, Copy)]
pub(super) struct SkipValue;

impl<'de> JsonVisitor<'de> for SkipValue {
    type Output = bool;

    fn scalar(self, value: JsonScalar<'_>) -> bool {
        !matches!(value, JsonScalar::Null)
    }
    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        while items.next_element_seed(Visit(SkipValue))?.is_some() {}
        Ok(true)
    }
    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        while members.next_key_seed(MemberName(|_: &str| ()))?.is_some() {
            members.next_value_seed(Visit(SkipValue))?;
        }
        Ok(true)
    }
}

/// Calls a function with the name of the next member, without copying the name. The output is the function's result.
pub(super) struct MemberName<F>(pub F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for MemberName<F> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<T, D::Error> {
        text.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for MemberName<F> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }
    fn visit_str<E>(self, name: &str) -> Result<T, E> {
        Ok((self.0)(name))
    }
}
