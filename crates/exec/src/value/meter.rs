//! The limit on a template's work, beside its fuel: one step of fuel may be a filter over a million letters.
//! Invariant: every filter is charged for its arguments before it runs, and every value of a row for its size when it is
//! read. A template that exceeds its limit stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value as TemplateValue};

/// The bytes that one rendering may read and produce.
pub const WORK: u64 = 64 * 1024 * 1024;
/// The fixed cost of a value, beside its bytes.
const VALUE_COST: u64 = 64;
/// The depth to which nested lists are counted.
const DEPTH: usize = 4;

/// The filters that templates may use. `format`, `indent`, `batch`, `slice` and `pprint` are missing, because they
/// turn small input into large output.
const FILTERS: [&str; 43] = [
    "safe",
    "escape",
    "e",
    "lower",
    "upper",
    "title",
    "capitalize",
    "replace",
    "length",
    "count",
    "dictsort",
    "items",
    "reverse",
    "trim",
    "join",
    "split",
    "lines",
    "default",
    "d",
    "round",
    "abs",
    "int",
    "float",
    "attr",
    "first",
    "last",
    "min",
    "max",
    "sort",
    "list",
    "string",
    "bool",
    "sum",
    "select",
    "reject",
    "map",
    "groupby",
    "tojson",
    "selectattr",
    "rejectattr",
    "unique",
    "chain",
    "zip",
];

/// The remaining work of one rendering.
#[derive(Debug)]
pub struct Meter {
    /// Bytes that may still be read or produced.
    left: AtomicU64,
    /// Whether the limit was exceeded. It stays set, because a charge that fails while a value is read cannot return an error.
    is_exceeded: AtomicBool,
}

impl Meter {
    pub fn new(work: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(work), is_exceeded: AtomicBool::new(false) })
    }

    /// Charges a cost. Returns false if less than that is left, and then nothing is left.
    pub fn charge(&self, cost: u64) -> bool {
        let paid = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        if paid.is_err() {
            self.left.store(0, Ordering::Relaxed);
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        paid.is_ok()
    }

    /// Charges the fixed cost of a value and its bytes.
    pub fn charge_value(&self, bytes: usize) -> bool {
        self.charge(VALUE_COST.saturating_add(bytes as u64))
    }

    /// Returns whether a charge has failed.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    /// Charges a cost to a filter, which ends with an error if the limit is exceeded.
    fn charge_filter(&self, cost: u64) -> Result<(), Error> {
        if self.charge(cost) && !self.is_exceeded() {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::OutOfFuel, "too much work"))
        }
    }
}

/// Wraps every filter of `environment` so that it is charged first. `plain` has the filters themselves.
pub fn guard(environment: &mut Environment<'static>, plain: Environment<'static>, meter: &Arc<Meter>) {
    let plain = Arc::new(plain);
    for name in FILTERS {
        let meter = meter.clone();
        let plain = plain.clone();
        environment.add_filter(name, move |_: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            meter.charge_filter(cost_of_call(&args))?;
            let result = plain.empty_state().apply_filter(name, &args)?;
            // A charge inside the filter (by `map`, for example) may have failed; the result must not be used then.
            meter.charge_filter(0).map(|()| result)
        });
    }
}

/// Returns the size of all arguments, plus the other arguments once per item: `join` repeats its separator between
/// all items.
fn cost_of_call(args: &[TemplateValue]) -> u64 {
    let argument_cost: u64 = args.iter().map(|arg| cost(arg, DEPTH)).fold(VALUE_COST, u64::saturating_add);
    let items = args.first().and_then(TemplateValue::len).unwrap_or(1).max(1) as u64;
    let others = args.iter().skip(1).filter_map(TemplateValue::as_str).map(|text| text.len() as u64);
    argument_cost.saturating_add(items.saturating_mul(others.fold(0, u64::saturating_add)))
}

/// Returns the cost of reading a value.
fn cost(value: &TemplateValue, depth: usize) -> u64 {
    if let Some(text) = value.as_str() {
        return VALUE_COST + text.len() as u64;
    }
    match value.kind() {
        ValueKind::Seq if depth > 0 => value
            .try_iter()
            .map_or(VALUE_COST, |items| items.map(|item| cost(&item, depth - 1)).fold(VALUE_COST, u64::saturating_add)),
        // A lazy sequence is charged by its length, because reading it here would do the work that is being limited.
        ValueKind::Seq | ValueKind::Iterable => VALUE_COST * value.len().unwrap_or(1_000).max(1) as u64,
        _ => VALUE_COST,
    }
}
