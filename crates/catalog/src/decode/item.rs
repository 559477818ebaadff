//! An item read from its bytes: the members that its row needs are taken, the others are passed over.
//! Invariant: of two members of one name the last counts, as in a tree.

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::look::{At, Look, Name, Scalar, Skip};
use super::shape::{Members, Take};

/// Looks for a row under these names, each inside the one before; says whether there is more than `null`.
pub(super) struct Item<'s, 'a> {
    pub names: &'s [&'s str],
    /// Where it is put; `None` for a row that is only counted.
    pub into: Option<&'s mut Taken<'a>>,
}

/// What was taken of an item.
pub(super) struct Taken<'a> {
    /// `None`: all of it is kept.
    pub members: Option<&'a Members<'a>>,
    /// By the number of their field.
    pub values: Vec<Value>,
    pub kept: Value,
}

impl<'de> Look<'de> for Item<'_, '_> {
    type Seen = bool;

    fn scalar(self, value: Scalar<'_>) -> bool {
        if !self.names.is_empty() {
            return false;
        }
        match self.into {
            Some(taken) => taken.scalar(value),
            None => Skip.scalar(value),
        }
    }

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<bool, A::Error> {
        match self.into {
            Some(taken) if self.names.is_empty() => taken.array(items),
            _ => Ok(Skip.array(items)? && self.names.is_empty()),
        }
    }

    fn object<A: MapAccess<'de>>(mut self, mut object: A) -> Result<bool, A::Error> {
        let Some((name, names)) = self.names.split_first() else {
            return match self.into {
                Some(taken) => taken.object(object),
                None => Skip.object(object),
            };
        };
        let mut found = false;
        while let Some(here) = object.next_key_seed(Name(|own: &str| own == *name))? {
            if here {
                found = object.next_value_seed(At(Item { names, into: self.into.as_deref_mut() }))?;
            } else {
                object.next_value_seed(At(Skip))?;
            }
        }
        Ok(found)
    }
}

impl<'de> Look<'de> for &mut Taken<'_> {
    type Seen = bool;

    fn scalar(self, value: Scalar<'_>) -> bool {
        self.values.fill(Value::Null);
        self.kept = Value::from(value);
        !self.kept.is_null()
    }

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<bool, A::Error> {
        self.values.fill(Value::Null);
        if self.members.is_none() {
            self.kept = Value::deserialize(SeqAccessDeserializer::new(items))?;
            return Ok(true);
        }
        // No path leads into it by number: all of it would be kept.
        self.kept = Value::Null;
        Skip.array(items)
    }

    // The hot place of every read: no name is hashed, and what no row needs is never allocated (docs/benchmarks.md).
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<bool, A::Error> {
        let Some(members) = self.members else {
            self.kept = Value::deserialize(MapAccessDeserializer::new(object))?;
            return Ok(true);
        };
        self.values.fill(Value::Null);
        let (mut kept, mut from) = (Map::new(), 0);
        while let Some(at) = object.next_key_seed(Name(|name: &str| members.find(name, from)))? {
            match at.and_then(|at| members.0.get(at)) {
                None => drop(object.next_value_seed(At(Skip))?),
                Some((name, Take::Keep)) => drop(kept.insert((*name).to_owned(), object.next_value()?)),
                Some((_, take)) => take.read(&mut object, &mut self.values)?,
            }
            from = at.map_or(from, |at| at + 1);
        }
        self.kept = Value::Object(kept);
        Ok(true)
    }
}

impl Take<'_> {
    /// The value of the member at hand.
    fn read<'de, A: MapAccess<'de>>(&self, object: &mut A, values: &mut [Value]) -> Result<(), A::Error> {
        match self {
            Take::Field(field) => {
                let value = object.next_value()?;
                if let Some(place) = values.get_mut(*field) {
                    *place = value;
                }
            }
            Take::Inside(members) => {
                members.clear(values);
                object.next_value_seed(At(Inside { members, values }))?;
            }
            Take::Keep => drop(object.next_value_seed(At(Skip))?),
        }
        Ok(())
    }
}

/// An object inside an item. What is no object has nothing of what is looked for.
struct Inside<'s, 'a> {
    members: &'s Members<'a>,
    values: &'s mut [Value],
}

impl<'de> Look<'de> for Inside<'_, '_> {
    type Seen = ();

    fn scalar(self, _: Scalar<'_>) {}

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        Skip.array(items).map(drop)
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut from = 0;
        while let Some(at) = object.next_key_seed(Name(|name: &str| self.members.find(name, from)))? {
            match at.and_then(|at| self.members.0.get(at)) {
                None => drop(object.next_value_seed(At(Skip))?),
                Some((_, take)) => take.read(&mut object, self.values)?,
            }
            from = at.map_or(from, |at| at + 1);
        }
        Ok(())
    }
}

impl Members<'_> {
    fn clear(&self, values: &mut [Value]) {
        for (_, take) in &self.0 {
            match take {
                Take::Field(field) => values.iter_mut().skip(*field).take(1).for_each(|value| *value = Value::Null),
                Take::Inside(inside) => inside.clear(values),
                Take::Keep => {}
            }
        }
    }
}
