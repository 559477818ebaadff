//! Rows straight from an answer's bytes: on the way to them only what paging and refusals ask for is kept, and of an item only
//! what its row needs.
//! Invariants: the outcome is the one of `tree`, mistakes in the same order. What nobody reads is checked and never kept, so
//! an answer costs memory for the rows in its window and not for those around them.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::item::{Item, Taken};
use super::look::{At, Look, Name, Scalar, Skip};
use super::row::Reader;
use super::tree::wrapped;
use super::{DecodeError, Raw, lacking, refusal};
use crate::model::{Capability, Catalog, Row, RowForm, Transport};
use crate::paging::PagingForm;
use crate::path::{Beyond, DataPath};

/// How rows are reached, where they can be read on the way.
pub(super) struct Way<'a> {
    /// To the rows.
    names: Vec<&'a str>,
    /// At each of these places, and at the rows' own, the members that something else asks for.
    wanted: Vec<Vec<&'a str>>,
    /// From an item of the list to its row.
    item: Vec<&'a str>,
}

impl<'a> Way<'a> {
    /// `None` where the answer must be seen as a whole.
    pub(super) fn of(catalog: &'a Catalog, capability: &'a Capability) -> Option<Self> {
        let rows = &capability.rows;
        let [at] = rows.at.as_slice() else { return None };
        let item = match (&rows.item, &rows.form) {
            (None, RowForm::List | RowForm::One | RowForm::Wrap(_)) => Vec::new(),
            (Some(item), RowForm::List) => item.members().filter(|names| !names.is_empty())?,
            _ => return None,
        };
        let names = at.members()?;
        let mut wanted = vec![Vec::new(); names.len() + 1];
        if let Transport::Graphql(_) = capability.transport {
            if names.first() == Some(&"errors") {
                return None;
            }
            wanted[0].push("errors");
        }
        for path in asked_for(catalog, capability) {
            for (depth, wanted) in wanted.iter_mut().enumerate() {
                match path.beyond(&names[..depth]) {
                    Some(Beyond::Member(_)) if rows.form == RowForm::One && depth == names.len() => return None,
                    Some(Beyond::Member(name)) => wanted.push(name),
                    // It may lie inside the rows.
                    Some(Beyond::Items) => return None,
                    Some(Beyond::Nothing) | None => {}
                }
            }
        }
        Some(Self { names, wanted, item })
    }
}

/// What is read of the answer beside its rows.
fn asked_for<'a>(catalog: &'a Catalog, capability: &'a Capability) -> impl Iterator<Item = &'a DataPath> {
    let failure = catalog.failure.iter().flat_map(|failure| [&failure.flag, &failure.says]);
    let paging = capability.paging.iter().flat_map(|paging| {
        let next = match &paging.form {
            PagingForm::Cursor { read, .. } | PagingForm::Next { read } => Some(read),
            PagingForm::Page { .. } | PagingForm::Offset { .. } | PagingForm::Link | PagingForm::Last { .. } => None,
        };
        paging.total.iter().chain(&paging.more).chain(next)
    });
    failure.chain(paging)
}

pub(super) fn read(
    way: &Way<'_>,
    catalog: &Catalog,
    capability: &Capability,
    reader: &Reader<'_>,
) -> Result<Raw, DecodeError> {
    let rows = &capability.rows;
    let taken = Taken {
        members: reader.shape.members.as_ref(),
        values: vec![Value::Null; reader.shape.columns.len()],
        kept: Value::Null,
    };
    let mut walk = Walk { way, reader, form: &rows.form, found: Found::Nothing, taken };
    let mut text = serde_json::Deserializer::from_slice(&reader.answer.response.body);
    let body = At(Place { walk: &mut walk, depth: 0 }).deserialize(&mut text).map_err(DecodeError::NotJson)?;
    text.end().map_err(DecodeError::NotJson)?;
    if let Some(refusal) = refusal::find(catalog, capability, &body) {
        return Err(DecodeError::Refused(refusal));
    }
    match walk.found {
        Found::Rows(list) => match list.wrong {
            Some(wrong) => Err(wrong),
            None => Ok(Raw { rows: list.rows, came: list.came, body }),
        },
        Found::Nothing if rows.sparse && body.is_object() => Ok(Raw { rows: Vec::new(), came: 0, body }),
        Found::Nothing | Found::Other => Err(lacking(rows)),
    }
}

/// Where the rows should be.
enum Found {
    /// Nothing, or `null`.
    Nothing,
    Other,
    Rows(List),
}

#[derive(Default)]
struct List {
    rows: Vec<Row>,
    came: usize,
    /// Told once the whole answer is known to be JSON, and no refusal.
    wrong: Option<DecodeError>,
}

struct Walk<'w> {
    way: &'w Way<'w>,
    reader: &'w Reader<'w>,
    form: &'w RowForm,
    found: Found,
    /// Of the item at hand.
    taken: Taken<'w>,
}

/// A place on the way. What is seen there is what others than the rows ask for, in its place.
struct Place<'s, 'w> {
    walk: &'s mut Walk<'w>,
    depth: usize,
}

impl Place<'_, '_> {
    fn is_rows(&self) -> bool {
        self.depth == self.walk.way.names.len()
    }
}

impl<'de> Look<'de> for Place<'_, '_> {
    type Seen = Value;

    fn scalar(self, value: Scalar<'_>) -> Value {
        if self.is_rows() && !matches!(value, Scalar::Null) {
            self.walk.found = Found::Other;
        }
        Value::from(value)
    }

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<Value, A::Error> {
        if self.is_rows() && *self.walk.form != RowForm::One {
            self.walk.list(items)?;
            return Ok(Value::Array(Vec::new()));
        }
        if self.is_rows() {
            self.walk.found = Found::Other;
        }
        Skip.array(items)?;
        Ok(Value::Array(Vec::new()))
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        if self.is_rows() && *self.walk.form == RowForm::One {
            self.walk.one(object)?;
            return Ok(Value::Object(Map::new()));
        }
        if self.is_rows() {
            self.walk.found = Found::Other;
        }
        let (way, depth) = (self.walk.way, self.depth);
        let (next, wanted) = (way.names.get(depth).copied(), &way.wanted[depth]);
        let known = |name: &str| next.into_iter().chain(wanted.iter().copied()).find(|known| *known == name);
        let mut kept = Map::new();
        while let Some(name) = object.next_key_seed(Name(known))? {
            let Some(name) = name else {
                object.next_value_seed(At(Skip))?;
                continue;
            };
            let value = if Some(name) == next {
                // Of two members of one name the last counts.
                self.walk.found = Found::Nothing;
                object.next_value_seed(At(Place { walk: self.walk, depth: depth + 1 }))?
            } else {
                object.next_value()?
            };
            kept.insert(name.to_owned(), value);
        }
        Ok(Value::Object(kept))
    }
}

impl Walk<'_> {
    fn list<'de, A: SeqAccess<'de>>(&mut self, mut items: A) -> Result<(), A::Error> {
        let mut list = List::default();
        let (names, window) = (self.way.item.as_slice(), self.reader.answer.window);
        loop {
            // What lies outside is looked at only as far as it takes to count it.
            let build = list.wrong.is_none() && window.holds(list.came);
            let seen = match self.form {
                RowForm::Wrap(field) if build => items.next_element::<Value>()?.map(|item| {
                    self.taken.kept = wrapped(field, item);
                    true
                }),
                _ => items.next_element_seed(At(Item { names, into: build.then_some(&mut self.taken) }))?,
            };
            let Some(more) = seen else { break };
            if !more && !names.is_empty() {
                continue;
            }
            if build {
                self.finish(&mut list);
            }
            list.came += 1;
        }
        self.found = Found::Rows(list);
        Ok(())
    }

    fn one<'de, A: MapAccess<'de>>(&mut self, object: A) -> Result<(), A::Error> {
        let mut list = List::default();
        (&mut self.taken).object(object)?;
        if self.reader.answer.window.holds(0) {
            self.finish(&mut list);
        }
        list.came = 1;
        self.found = Found::Rows(list);
        Ok(())
    }

    fn finish(&mut self, list: &mut List) {
        let Walk { reader, taken, .. } = self;
        let whole = taken.members.is_none() || matches!(self.form, RowForm::Wrap(_));
        let row = match whole {
            true => reader.row(list.came, &mut taken.kept),
            false => reader.finish(list.came, &mut taken.values, &taken.kept),
        };
        match row {
            Ok(row) => list.rows.push(row),
            Err(wrong) => list.wrong = Some(wrong),
        }
    }
}
