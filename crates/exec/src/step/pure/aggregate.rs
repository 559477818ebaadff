//! One row of counts and sums.
//! Invariant: whole numbers stay whole while they fit 64 bits and become floats beyond that; `null` is ignored;
//! without rows the count and the sum are 0 and every other value is `null`.

use catalog::{Row, Type};
use lang::plan::{Aggregation, Function};
use serde_json::{Number, Value};

use crate::coverage::Coverage;
use crate::data::order::{compare, key, whole};
use crate::outcome::Rowset;
use crate::value::view::{View, Walk};

pub fn apply(view: &View<'_>, specs: &[Aggregation]) -> Rowset {
    let readers = Readers::new(view, specs);
    let mut tally = readers.start();
    view.rows.rows.iter().for_each(|row| readers.add(&mut tally, row));
    let mut aggregated = view.rows.derived(vec![readers.finish(&tally, Row::new())]);
    aggregated.leading = aggregated.coverage == Coverage::Complete;
    aggregated
}

/// How each aggregated value is read from a row.
pub struct Readers<'a>(Vec<(&'a Aggregation, Option<Walk<'a>>, Type)>);

/// The running state of one aggregate.
#[derive(Debug, Clone)]
pub struct Tally<'v> {
    count: u64,
    whole: i128,
    float: f64,
    /// A float was added, so the result is a float.
    floats: bool,
    /// The minimum or maximum so far.
    best: Option<&'v Value>,
}

impl<'a> Readers<'a> {
    pub fn new(view: &View<'a>, specs: &'a [Aggregation]) -> Self {
        let one = |spec: &'a Aggregation| {
            let kind = spec.path.as_deref().and_then(|path| view.kind(path)).unwrap_or(Type::Json);
            (spec, spec.path.as_deref().map(|path| view.walk(path)), kind)
        };
        Self(specs.iter().map(one).collect())
    }

    pub fn start<'v>(&self) -> Vec<Tally<'v>> {
        vec![Tally { count: 0, whole: 0, float: 0.0, floats: false, best: None }; self.0.len()]
    }

    pub fn add<'v>(&self, tallies: &mut [Tally<'v>], row: &'v Row)
    where
        'a: 'v,
    {
        let mut before: Option<(&Aggregation, Option<&Value>)> = None;
        for ((spec, walk, kind), tally) in self.0.iter().zip(tallies) {
            let Some(walk) = walk else {
                tally.count += 1;
                continue;
            };
            // `sum(votes), max(votes)` reads the votes once.
            let found = match before {
                Some((other, found)) if other.path == spec.path => found,
                _ => walk.find(row),
            };
            before = Some((spec, found));
            let Some(value) = found else { continue };
            match spec.function {
                Function::Count => tally.count += 1,
                Function::Sum | Function::Avg => tally.number(value),
                Function::Min => tally.better(value, kind, |order| order.is_lt()),
                Function::Max => tally.better(value, kind, |order| order.is_gt()),
            }
        }
    }

    /// Appends the aggregated values to a row.
    pub fn finish(&self, tallies: &[Tally<'_>], mut row: Row) -> Row {
        for ((spec, _, _), tally) in self.0.iter().zip(tallies) {
            row.insert(spec.name.to_string(), tally.value(spec.function));
        }
        row
    }
}

impl<'v> Tally<'v> {
    fn number(&mut self, value: &Value) {
        let Value::Number(number) = value else { return };
        self.count += 1;
        match whole(number) {
            Some(whole) => self.whole = self.whole.saturating_add(whole),
            None => {
                self.floats = true;
                self.float += number.as_f64().unwrap_or_default();
            }
        }
    }

    fn better(&mut self, value: &'v Value, kind: &Type, is: impl Fn(std::cmp::Ordering) -> bool) {
        let Some(new) = key(kind, value) else { return };
        let known = self.best.and_then(|best| key(kind, best));
        if known.is_none_or(|known| is(compare(&new, &known))) {
            self.best = Some(value);
        }
    }

    fn sum(&self) -> f64 {
        self.whole as f64 + self.float
    }

    fn value(&self, function: Function) -> Value {
        match function {
            Function::Count => Value::from(self.count),
            Function::Sum if self.floats => float(self.sum()),
            Function::Sum => match (i64::try_from(self.whole), u64::try_from(self.whole)) {
                (Ok(whole), _) => Value::from(whole),
                (_, Ok(whole)) => Value::from(whole),
                _ => float(self.whole as f64),
            },
            Function::Avg if self.count == 0 => Value::Null,
            Function::Avg => float(self.sum() / self.count as f64),
            Function::Min | Function::Max => self.best.cloned().unwrap_or_default(),
        }
    }
}

/// Returns the sum as a float. A sum beyond the range of JSON becomes `null`.
fn float(value: f64) -> Value {
    Number::from_f64(value).map_or(Value::Null, Value::Number)
}
