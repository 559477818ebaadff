//! The aggregation steps: one row over all rows (`aggregate`), or one row for each combination of values (`group`).
//! Invariant: integer sums stay integers while they fit into 64 bits, and become floats beyond that. `null` is ignored. Without
//! rows, counts and sums are 0 and all other aggregates are `null`. Groups are in order of first appearance.

use std::collections::HashMap;
use std::hash::Hash;

use catalog::{Row, Type};
use lang::plan::{Aggregation, Function, NamedPath};
use serde_json::{Map, Number, Value};

use crate::coverage::Coverage;
use crate::data::equality::ByValue;
use crate::data::number::whole_number;
use crate::data::order::{compare, sort_key};
use crate::outcome::Rowset;
use crate::value::view::{RowsView, Walk};

/// Returns one row with the aggregates of all rows.
pub fn aggregate(view: &RowsView<'_>, specs: &[Aggregation]) -> Rowset {
    let aggregates = Aggregates::new(view, specs);
    let mut tallies = aggregates.start();
    view.rows.rows.iter().for_each(|row| aggregates.add(&mut tallies, row));
    let mut aggregated = view.rows.with_new_rows(vec![aggregates.finish(&tallies, Row::new())]);
    aggregated.leading = aggregated.coverage == Coverage::Complete;
    aggregated
}

/// Returns one row for each combination of values, with the aggregates of the group. References are grouped by key. Rows
/// without a value form a separate group.
pub fn group(view: &RowsView<'_>, by: &[NamedPath], specs: &[Aggregation]) -> Rowset {
    let walks: Vec<Walk<'_>> = by.iter().map(|column| view.walk(&column.path)).collect();
    let aggregates = Aggregates::new(view, specs);
    let groups = match walks.as_slice() {
        // Grouping by one column is the common case. It avoids the allocation of a list for each row.
        [only] => group_rows(view, &aggregates, |row| only.find(row).map(ByValue)),
        several => {
            group_rows(view, &aggregates, |row| several.iter().map(|w| w.find(row).map(ByValue)).collect::<Vec<_>>())
        }
    };
    let group_row = |(first_row, tallies): &(&Row, Vec<Tally<'_>>)| {
        let values = walks.iter().map(|walk| walk.find(first_row).cloned().unwrap_or_default());
        let head: Row = by.iter().map(|column| column.name.to_string()).zip(values).collect::<Map<String, Value>>();
        aggregates.finish(tallies, head)
    };
    let mut grouped_rows = view.rows.with_new_rows(groups.iter().map(group_row).collect());
    // With partial input, every group may lack rows, so the result cannot count as the first rows of the full result.
    grouped_rows.leading = grouped_rows.coverage == Coverage::Complete;
    grouped_rows
}

/// Returns the first row and the tallies of each group. A tally is the running state of one aggregate.
fn group_rows<'v, K: Hash + Eq>(
    view: &RowsView<'v>,
    aggregates: &Aggregates<'v>,
    key: impl Fn(&'v Row) -> K,
) -> Vec<(&'v Row, Vec<Tally<'v>>)> {
    let mut group_numbers: HashMap<K, usize> = HashMap::new();
    let mut groups: Vec<(&Row, Vec<Tally<'_>>)> = Vec::new();
    for row in &view.rows.rows {
        let number = *group_numbers.entry(key(row)).or_insert_with(|| {
            groups.push((row, aggregates.start()));
            groups.len() - 1
        });
        if let Some((_, tallies)) = groups.get_mut(number) {
            aggregates.add(tallies, row);
        }
    }
    groups
}

/// The aggregates of a step, each with the prepared path and the type of its values.
struct Aggregates<'a>(Vec<(&'a Aggregation, Option<Walk<'a>>, Type)>);

/// The running state of one aggregate.
#[derive(Debug, Clone)]
struct Tally<'v> {
    /// The number of values so far. For a count without a path, the number of rows so far.
    count: u64,
    /// The sum of the integers so far.
    whole_sum: i128,
    /// The sum of the floats so far.
    float_sum: f64,
    /// Whether a float was added. The result is then a float.
    has_floats: bool,
    /// The minimum or maximum so far, for `min` and `max`.
    best: Option<&'v Value>,
}

impl<'a> Aggregates<'a> {
    fn new(view: &RowsView<'a>, specs: &'a [Aggregation]) -> Self {
        let prepare = |spec: &'a Aggregation| {
            let kind = spec.path.as_deref().and_then(|path| view.kind(path)).unwrap_or(Type::Json);
            (spec, spec.path.as_deref().map(|path| view.walk(path)), kind)
        };
        Self(specs.iter().map(prepare).collect())
    }

    /// Returns the initial tally of each aggregate.
    fn start<'v>(&self) -> Vec<Tally<'v>> {
        vec![Tally { count: 0, whole_sum: 0, float_sum: 0.0, has_floats: false, best: None }; self.0.len()]
    }

    /// Adds the values of one row to the tallies.
    fn add<'v>(&self, tallies: &mut [Tally<'v>], row: &'v Row)
    where
        'a: 'v,
    {
        let mut previous: Option<(&Aggregation, Option<&Value>)> = None;
        for ((spec, walk, kind), tally) in self.0.iter().zip(tallies) {
            let Some(walk) = walk else {
                tally.count += 1;
                continue;
            };
            // Consecutive aggregates of the same path, such as `sum(votes), max(votes)`, read the value only once.
            let value = match previous {
                Some((other, value)) if other.path == spec.path => value,
                _ => walk.find(row),
            };
            previous = Some((spec, value));
            let Some(value) = value else { continue };
            match spec.function {
                Function::Count => tally.count += 1,
                Function::Sum | Function::Avg => tally.add_number(value),
                Function::Min => tally.replace_best_if(value, kind, |order| order.is_lt()),
                Function::Max => tally.replace_best_if(value, kind, |order| order.is_gt()),
            }
        }
    }

    /// Appends the results of all aggregates to a row.
    fn finish(&self, tallies: &[Tally<'_>], mut row: Row) -> Row {
        for ((spec, _, _), tally) in self.0.iter().zip(tallies) {
            row.insert(spec.name.to_string(), tally.value(spec.function));
        }
        row
    }
}

impl<'v> Tally<'v> {
    fn add_number(&mut self, value: &Value) {
        let Value::Number(number) = value else { return };
        self.count += 1;
        match whole_number(number) {
            Some(whole) => self.whole_sum = self.whole_sum.saturating_add(whole),
            None => {
                self.has_floats = true;
                self.float_sum += number.as_f64().unwrap_or_default();
            }
        }
    }

    fn replace_best_if(&mut self, value: &'v Value, kind: &Type, is_better: impl Fn(std::cmp::Ordering) -> bool) {
        let Some(new) = sort_key(kind, value) else { return };
        let known = self.best.and_then(|best| sort_key(kind, best));
        if known.is_none_or(|known| is_better(compare(&new, &known))) {
            self.best = Some(value);
        }
    }

    fn sum(&self) -> f64 {
        self.whole_sum as f64 + self.float_sum
    }

    /// Returns the result of the aggregate.
    fn value(&self, function: Function) -> Value {
        match function {
            Function::Count => Value::from(self.count),
            Function::Sum if self.has_floats => float(self.sum()),
            Function::Sum => match (i64::try_from(self.whole_sum), u64::try_from(self.whole_sum)) {
                (Ok(whole), _) => Value::from(whole),
                (_, Ok(whole)) => Value::from(whole),
                _ => float(self.whole_sum as f64),
            },
            Function::Avg if self.count == 0 => Value::Null,
            Function::Avg => float(self.sum() / self.count as f64),
            Function::Min | Function::Max => self.best.cloned().unwrap_or_default(),
        }
    }
}

/// Returns a float as a JSON number. Infinity and NaN become `null`, because JSON cannot represent them.
fn float(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
