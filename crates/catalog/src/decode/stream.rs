//! Reads the rows of an answer while the answer is parsed, without a tree of the whole answer. Inside an item, only
//! the members that the row needs are stored. Outside of the rows, only the members that paging and refusals need are
//! stored.
//! Invariants: the result equals the result of the module `tree`, including the choice of the error if an answer has
//! several mistakes. Text that is not needed is checked and never stored, so an answer uses memory only for the rows
//! in the window.

use serde::de::{DeserializeSeed, MapAccess, SeqAccess};
use serde_json::{Map, Value};

use super::item::{ItemValues, ItemVisitor};
use super::row::RowReader;
use super::tree::wrap_in_field;
use super::visitor::{JsonScalar, JsonVisitor, MemberName, SkipValue, Visit};
use super::{DecodeError, RowsAndBody, find_refusal, no_rows_error};
use crate::model::{Capability, Catalog, Row, RowForm, Transport};
use crate::paging::PagingForm;
use crate::path::{DataPath, NextStep};

/// The plan for reading the rows of an answer while it is parsed.
pub(super) struct StreamPlan<'a> {
    /// The names of the members from the body to the rows, the outermost first.
    names: Vec<&'a str>,
    /// The members that paging and refusals need, for each level: first for the body, then for the value of each name
    /// in `names`.
    wanted: Vec<Vec<&'a str>>,
    /// The names of the members from an item of the list to its row, the outermost first.
    item: Vec<&'a str>,
}

impl<'a> StreamPlan<'a> {
    /// Returns the plan, or `None` if the answer must be parsed into a tree first.
    pub(super) fn new(catalog: &'a Catalog, capability: &'a Capability) -> Option<Self> {
        let rows = &capability.rows;
        let [at] = rows.at.as_slice() else { return None };
        let item = match (&rows.item, &rows.form) {
            (None, RowForm::List | RowForm::One | RowForm::Wrap(_)) => Vec::new(),
            (Some(item), RowForm::List) => item.object_member_names().filter(|names| !names.is_empty())?,
            _ => return None,
        };
        let names = at.object_member_names()?;
        let mut wanted = vec![Vec::new(); names.len() + 1];
        if let Transport::Graphql(_) = capability.transport {
            if names.first() == Some(&"errors") {
                return None;
            }
            wanted[0].push("errors");
        }
        for path in paths_outside_rows(catalog, capability) {
            for (depth, wanted) in wanted.iter_mut().enumerate() {
                match path.step_after(&names[..depth]) {
                    // The path reads a member of the only row, and the row is not stored in the body.
                    Some(NextStep::Member(_)) if rows.form == RowForm::One && depth == names.len() => return None,
                    Some(NextStep::Member(name)) => wanted.push(name),
                    // The path may select a row by its number, and the rows are not stored in the body.
                    Some(NextStep::Items) => return None,
                    Some(NextStep::End) | None => {}
                }
            }
        }
        Some(Self { names, wanted, item })
    }
}

/// Returns the paths that paging and the search for refusals read.
fn paths_outside_rows<'a>(catalog: &'a Catalog, capability: &'a Capability) -> impl Iterator<Item = &'a DataPath> {
    let failure = catalog.failure.iter().flat_map(|failure| [&failure.flag, &failure.message]);
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
    plan: &StreamPlan<'_>,
    catalog: &Catalog,
    capability: &Capability,
    reader: &RowReader<'_>,
) -> Result<RowsAndBody, DecodeError> {
    let rows = &capability.rows;
    let item_values = ItemValues {
        members: reader.layout.members.as_ref(),
        fields: vec![Value::Null; reader.layout.columns.len()],
        kept: Value::Null,
    };
    let mut state = StreamState { plan, reader, form: &rows.form, rows: RowsValue::Missing, item_values };
    let mut text = serde_json::Deserializer::from_slice(&reader.input.response.body);
    let body =
        Visit(LevelVisitor { state: &mut state, depth: 0 }).deserialize(&mut text).map_err(DecodeError::NotJson)?;
    text.end().map_err(DecodeError::NotJson)?;
    if let Some(refusal) = find_refusal(catalog, capability, &body) {
        return Err(DecodeError::Refused(refusal));
    }
    match state.rows {
        RowsValue::Rows(list) => match list.error {
            Some(error) => Err(error),
            None => Ok(RowsAndBody { rows: list.rows, row_count: list.row_count, body }),
        },
        RowsValue::Missing if rows.sparse && body.is_object() => {
            Ok(RowsAndBody { rows: Vec::new(), row_count: 0, body })
        }
        RowsValue::Missing | RowsValue::WrongKind => Err(no_rows_error(rows)),
    }
}

/// The kind of the value at the path of the rows.
enum RowsValue {
    /// The answer has no value at the path, or the value is `null`.
    Missing,
    /// The value has no rows of this form: it is a number, for example.
    WrongKind,
    Rows(RowList),
}

#[derive(Default)]
struct RowList {
    /// The rows inside the requested window.
    rows: Vec<Row>,
    /// The number of rows so far, inside and outside of the window.
    row_count: usize,
    /// The first mistake in a row. The mistake is returned only after the whole answer was parsed and contains no
    /// refusal, because `tree` returns a syntax error or a refusal first.
    error: Option<DecodeError>,
}

/// The state that the visitors of one answer share.
struct StreamState<'w> {
    plan: &'w StreamPlan<'w>,
    reader: &'w RowReader<'w>,
    form: &'w RowForm,
    rows: RowsValue,
    /// The values of the current item.
    item_values: ItemValues<'w>,
}

/// Reads the value at one level between the body and the rows. The output has only the members that paging and
/// refusals need, and an empty value in place of the rows.
struct LevelVisitor<'s, 'w> {
    state: &'s mut StreamState<'w>,
    /// The number of names between the body and this value.
    depth: usize,
}

impl LevelVisitor<'_, '_> {
    /// Returns whether the path of the rows ends at this value.
    fn is_at_rows(&self) -> bool {
        self.depth == self.state.plan.names.len()
    }
}

impl<'de> JsonVisitor<'de> for LevelVisitor<'_, '_> {
    type Output = Value;

    fn scalar(self, value: JsonScalar<'_>) -> Value {
        if self.is_at_rows() && !matches!(value, JsonScalar::Null) {
            self.state.rows = RowsValue::WrongKind;
        }
        Value::from(value)
    }

    fn array<A: SeqAccess<'de>>(self, items: A) -> Result<Value, A::Error> {
        if self.is_at_rows() && *self.state.form != RowForm::One {
            self.state.read_list(items)?;
            return Ok(Value::Array(Vec::new()));
        }
        if self.is_at_rows() {
            self.state.rows = RowsValue::WrongKind;
        }
        SkipValue.array(items)?;
        Ok(Value::Array(Vec::new()))
    }

    fn object<A: MapAccess<'de>>(self, mut object: A) -> Result<Value, A::Error> {
        if self.is_at_rows() && *self.state.form == RowForm::One {
            self.state.read_one(object)?;
            return Ok(Value::Object(Map::new()));
        }
        if self.is_at_rows() {
            self.state.rows = RowsValue::WrongKind;
        }
        let plan = self.state.plan;
        let next_name = plan.names.get(self.depth).copied();
        let wanted = &plan.wanted[self.depth];
        let known_name = |name: &str| next_name.into_iter().chain(wanted.iter().copied()).find(|known| *known == name);
        let mut kept = Map::new();
        while let Some(name) = object.next_key_seed(MemberName(known_name))? {
            let Some(name) = name else {
                object.next_value_seed(Visit(SkipValue))?;
                continue;
            };
            let value = if Some(name) == next_name {
                // If an object has two members of one name, the last member is used, so the rows of an earlier member
                // are dropped.
                self.state.rows = RowsValue::Missing;
                object.next_value_seed(Visit(LevelVisitor { state: self.state, depth: self.depth + 1 }))?
            } else {
                object.next_value()?
            };
            kept.insert(name.to_owned(), value);
        }
        Ok(Value::Object(kept))
    }
}

impl StreamState<'_> {
    fn read_list<'de, A: SeqAccess<'de>>(&mut self, mut items: A) -> Result<(), A::Error> {
        let mut list = RowList::default();
        let names = self.plan.item.as_slice();
        let window = self.reader.input.window;
        loop {
            // An item outside of the window, or after a mistake, is parsed only to count it.
            let is_needed = list.error.is_none() && window.contains(list.row_count);
            let item = match self.form {
                RowForm::Wrap(field) if is_needed => items.next_element::<Value>()?.map(|item| {
                    self.item_values.kept = wrap_in_field(field, item);
                    true
                }),
                _ => {
                    let values = is_needed.then_some(&mut self.item_values);
                    items.next_element_seed(Visit(ItemVisitor { names, values }))?
                }
            };
            let Some(has_row) = item else { break };
            if !has_row && !names.is_empty() {
                continue;
            }
            if is_needed {
                self.push_row(&mut list);
            }
            list.row_count += 1;
        }
        self.rows = RowsValue::Rows(list);
        Ok(())
    }

    fn read_one<'de, A: MapAccess<'de>>(&mut self, object: A) -> Result<(), A::Error> {
        let mut list = RowList::default();
        (&mut self.item_values).object(object)?;
        if self.reader.input.window.contains(0) {
            self.push_row(&mut list);
        }
        list.row_count = 1;
        self.rows = RowsValue::Rows(list);
        Ok(())
    }

    /// Makes a row from the values of the current item, and appends the row to the list.
    fn push_row(&mut self, list: &mut RowList) {
        let Self { reader, item_values, .. } = self;
        let has_whole_item = item_values.members.is_none() || matches!(self.form, RowForm::Wrap(_));
        let row = if has_whole_item {
            reader.row_from_item(list.row_count, &mut item_values.kept)
        } else {
            reader.row_from_values(list.row_count, &mut item_values.fields, &item_values.kept)
        };
        match row {
            Ok(row) => list.rows.push(row),
            Err(error) => list.error = Some(error),
        }
    }
}
