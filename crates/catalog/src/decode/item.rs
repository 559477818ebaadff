//! Reads one item of a list while the answer is parsed. The members that the item's row needs are stored, and the
//! other members are skipped.
//! Invariant: if an object has two members of one name, the last member is used, as in a parsed tree.

use serde::Deserialize;
use serde::de::value::{MapAccessDeserializer, SeqAccessDeserializer};
use serde::de::{MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::row_layout::{MemberPlan, MemberUse};
use super::visitor::{JsonScalar, JsonVisitor, MemberName, SkipValue, Visit};

/// Walks down the names from an item to its row, and reads the row. The output is whether the item contains a row
/// that is not `null`.
pub(super) struct ItemVisitor<'s, 'a> {
    /// The names of the members from the current value to the row, the outermost first.
    pub names: &'s [&'s str],
    /// The place for the values of the row. `None` means that the row is counted and not stored.
    pub values: Option<&'s mut ItemValues<'a>>,
}

/// The values that were read from one item. One instance is reused for all items of a list, which saves allocations.
pub(super) struct ItemValues<'a> {
    /// The members to read, or `None` if the whole item must be stored.
    pub members: Option<&'a MemberPlan<'a>>,
    /// The values of the fields with an exclusive path (see `ColumnLayout::exclusive_path`), by the number of the
    /// field.
    pub fields: Vec<Value>,
    /// The stored whole members, as an object, or the whole item.
    pub kept: Value,
}

impl<'de> JsonVisitor<'de> for ItemVisitor<'_, '_> {
    type Output = bool;

    fn scalar(self, value: JsonScalar<'_>) -> bool {
        if !self.names.is_empty() {
            return false;
        }
        match self.values {
            Some(values) => values.scalar(value),
            None => SkipValue.scalar(value),
        }
    }

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<bool, A::Error> {
        match self.values {
            Some(values) if self.names.is_empty() => values.array(items),
            _ => Ok(SkipValue.array(items)? && self.names.is_empty()),
        }
    }

    fn object<A: MapAccess<'de>>(mut self, mut object: A) -> Result<bool, A::Error> {
        let Some((name, names)) = self.names.split_first() else {
            return match self.values {
                Some(values) => values.object(object),
                None => SkipValue.object(object),
            };
        };
        let mut has_row = false;
        while let Some(is_on_path) = object.next_key_seed(MemberName(|member: &str| member == *name))? {
            if is_on_path {
                let inner = ItemVisitor { names, values: self.values.as_deref_mut() };
                has_row = object.next_value_seed(Visit(inner))?;
            } else {
                object.next_value_seed(Visit(SkipValue))?;
            }
        }
        Ok(has_row)
    }
}

impl<'de> JsonVisitor<'de> for &mut ItemValues<'_> {
    type Output = bool;

    fn scalar(self, value: JsonScalar<'_>) -> bool {
        self.fields.fill(Value::Null);
        self.kept = Value::from(value);
        !self.kept.is_null()
    }

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<bool, A::Error> {
        self.fields.fill(Value::Null);
        if self.members.is_none() {
            self.kept = Value::deserialize(SeqAccessDeserializer::new(items))?;
            return Ok(true);
        }
        // If a path selected an item of this array, `members` would be `None`. So no field has its value in this
        // array.
        self.kept = Value::Null;
        SkipValue.array(items)
    }

    // Every read spends most of its time in this function. The function therefore hashes no name and allocates no
    // value that the row does not need (docs/benchmarks.md).
    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<bool, A::Error> {
        let Some(members) = self.members else {
            self.kept = Value::deserialize(MapAccessDeserializer::new(object))?;
            return Ok(true);
        };
        self.fields.fill(Value::Null);
        let mut kept = Map::new();
        let mut start = 0;
        while let Some(position) = object.next_key_seed(MemberName(|name: &str| members.position(name, start)))? {
            match position.and_then(|at| members.0.get(at)) {
                None => drop(object.next_value_seed(Visit(SkipValue))?),
                Some((name, MemberUse::Keep)) => drop(kept.insert((*name).to_owned(), object.next_value()?)),
                Some((_, member)) => member.read(&mut object, &mut self.fields)?,
            }
            start = position.map_or(start, |at| at + 1);
        }
        self.kept = Value::Object(kept);
        Ok(true)
    }
}

impl MemberUse<'_> {
    /// Reads the value of the current member of `object` into `fields`.
    fn read<'de, A: MapAccess<'de>>(&self, object: &mut A, fields: &mut [Value]) -> Result<(), A::Error> {
        match self {
            MemberUse::Field(number) => {
                let value = object.next_value()?;
                if let Some(field) = fields.get_mut(*number) {
                    *field = value;
                }
            }
            MemberUse::Object(members) => {
                // An earlier member of the same name may have set these fields, and only the last member may count.
                members.clear(fields);
                object.next_value_seed(Visit(InnerObject { members, fields }))?;
            }
            MemberUse::Keep => drop(object.next_value_seed(Visit(SkipValue))?),
        }
        Ok(())
    }
}

/// Reads an object inside an item. If the value is no object, the fields of the object stay `null`.
struct InnerObject<'s, 'a> {
    members: &'s MemberPlan<'a>,
    fields: &'s mut [Value],
}

impl<'de> JsonVisitor<'de> for InnerObject<'_, '_> {
    type Output = ();

    fn scalar(self, _: JsonScalar<'_>) {}

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<(), A::Error> {
        SkipValue.array(items).map(drop)
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<(), A::Error> {
        let mut start = 0;
        while let Some(position) = object.next_key_seed(MemberName(|name: &str| self.members.position(name, start)))? {
            match position.and_then(|at| self.members.0.get(at)) {
                None => drop(object.next_value_seed(Visit(SkipValue))?),
                Some((_, member)) => member.read(&mut object, self.fields)?,
            }
            start = position.map_or(start, |at| at + 1);
        }
        Ok(())
    }
}

impl MemberPlan<'_> {
    /// Sets every field of the plan to `null`.
    fn clear(&self, fields: &mut [Value]) {
        for (_, member) in &self.0 {
            match member {
                MemberUse::Field(number) => {
                    if let Some(field) = fields.get_mut(*number) {
                        *field = Value::Null;
                    }
                }
                MemberUse::Object(members) => members.clear(fields),
                MemberUse::Keep => {}
            }
        }
    }
}
