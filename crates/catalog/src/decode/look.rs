//! Looking at one JSON value in its bytes, whatever it is: what serde asks of a visitor, in three methods.
//! Invariant: a look that takes nothing allocates nothing, and still refuses what a tree would refuse.

use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, MapAccess, SeqAccess, Visitor};
use serde_json::{Number, Value};

pub(super) trait Look<'de>: Sized {
    type Seen;

    fn scalar(self, value: Scalar<'_>) -> Self::Seen;

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<Self::Seen, A::Error>;

    fn object<A: MapAccess<'de>>(self, members: A) -> Result<Self::Seen, A::Error>;
}

pub(super) enum Scalar<'t> {
    Null,
    Bool(bool),
    Number(Number),
    Text(&'t str),
}

/// A look, where serde wants a seed.
pub(super) struct At<L>(pub L);

impl<'de, L: Look<'de>> DeserializeSeed<'de> for At<L> {
    type Value = L::Seen;
    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<L::Seen, D::Error> {
        text.deserialize_any(self)
    }
}

impl<'de, L: Look<'de>> Visitor<'de> for At<L> {
    type Value = L::Seen;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("any valid JSON value")
    }
    fn visit_unit<E>(self) -> Result<L::Seen, E> {
        Ok(self.0.scalar(Scalar::Null))
    }
    fn visit_bool<E>(self, value: bool) -> Result<L::Seen, E> {
        Ok(self.0.scalar(Scalar::Bool(value)))
    }
    fn visit_i64<E>(self, value: i64) -> Result<L::Seen, E> {
        Ok(self.0.scalar(Scalar::Number(value.into())))
    }
    fn visit_u64<E>(self, value: u64) -> Result<L::Seen, E> {
        Ok(self.0.scalar(Scalar::Number(value.into())))
    }
    fn visit_f64<E>(self, value: f64) -> Result<L::Seen, E> {
        Ok(self.0.scalar(Number::from_f64(value).map_or(Scalar::Null, Scalar::Number)))
    }
    fn visit_str<E>(self, text: &str) -> Result<L::Seen, E> {
        Ok(self.0.scalar(Scalar::Text(text)))
    }
    fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<L::Seen, A::Error> {
        self.0.array(items)
    }
    fn visit_map<A: MapAccess<'de>>(self, members: A) -> Result<L::Seen, A::Error> {
        self.0.object(members)
    }
}

impl From<Scalar<'_>> for Value {
    fn from(scalar: Scalar<'_>) -> Value {
        match scalar {
            Scalar::Null => Value::Null,
            Scalar::Bool(value) => Value::Bool(value),
            Scalar::Number(number) => Value::Number(number),
            Scalar::Text(text) => Value::String(text.to_owned()),
        }
    }
}

/// Passes over a value; says whether it is more than `null`.
#[derive(Clone, Copy)]
pub(super) struct Skip;

impl<'de> Look<'de> for Skip {
    type Seen = bool;

    fn scalar(self, value: Scalar<'_>) -> bool {
        !matches!(value, Scalar::Null)
    }
    fn array<A: SeqAccess<'de>>(self, mut items: A) -> Result<bool, A::Error> {
        while items.next_element_seed(At(Skip))?.is_some() {}
        Ok(true)
    }
    fn object<A: MapAccess<'de>>(self, mut members: A) -> Result<bool, A::Error> {
        while members.next_key_seed(Name(|_: &str| ()))?.is_some() {
            members.next_value_seed(At(Skip))?;
        }
        Ok(true)
    }
}

/// A member's name, without a copy of it.
pub(super) struct Name<F>(pub F);

impl<'de, T, F: FnOnce(&str) -> T> DeserializeSeed<'de> for Name<F> {
    type Value = T;
    fn deserialize<D: Deserializer<'de>>(self, text: D) -> Result<T, D::Error> {
        text.deserialize_str(self)
    }
}

impl<T, F: FnOnce(&str) -> T> Visitor<'_> for Name<F> {
    type Value = T;
    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a name")
    }
    fn visit_str<E>(self, name: &str) -> Result<T, E> {
        Ok((self.0)(name))
    }
}
