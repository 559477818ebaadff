//! The limit on the bytes that a template reads and produces. Fuel counts only steps, and one step may be a filter over a
//! million characters.
//! Invariant: the cost of a filter call is charged before the filter runs, and the size of a row's value is charged when it is
//! read. A template over the limit stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value as TemplateValue};

/// The maximum number of bytes that one rendering may read and produce.
pub const MAX_WORK_BYTES: u64 = 64 * 1024 * 1024;
/// The fixed cost of a value in bytes, in addition to its size.
const VALUE_COST_BYTES: u64 = 64;
/// The depth to which the cost of nested lists is computed.
const MAX_COST_DEPTH: usize = 4;

/// The filters that templates may use. `format`, `indent`, `batch`, `slice` and `pprint` are excluded, because they can turn
/// small input into very large output.
const ALLOWED_FILTERS: [&str; 43] = [
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

/// The remaining work of one rendering, in bytes.
#[derive(Debug)]
pub struct Meter {
    /// The number of bytes that may still be read or produced.
    left: AtomicU64,
    /// Whether the limit was exceeded. The flag is needed because a failed charge during the read of a value cannot return an
    /// error.
    is_exceeded: AtomicBool,
}

impl Meter {
    pub fn new(work: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(work), is_exceeded: AtomicBool::new(false) })
    }

    /// Charges a cost. Returns false if the remaining work is smaller than the cost; the remaining work is then 0.
    pub fn charge(&self, cost: u64) -> bool {
        let paid = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        if paid.is_err() {
            self.left.store(0, Ordering::Relaxed);
            self.is_exceeded.store(true, Ordering::Relaxed);
        }
        paid.is_ok()
    }

    /// Charges the cost of a value with this size in bytes.
    pub fn charge_value(&self, bytes: usize) -> bool {
        self.charge(VALUE_COST_BYTES.saturating_add(bytes as u64))
    }

    /// Returns whether a charge has failed.
    pub fn is_exceeded(&self) -> bool {
        self.is_exceeded.load(Ordering::Relaxed)
    }

    /// Charges the cost of a filter call. Returns an error if the limit is exceeded.
    fn charge_filter(&self, cost: u64) -> Result<(), Error> {
        if self.charge(cost) && !self.is_exceeded() {
            Ok(())
        } else {
            Err(Error::new(ErrorKind::OutOfFuel, "too much work"))
        }
    }
}

/// Replaces every filter of `environment` by a wrapper that charges the cost and then calls the filter in `plain`.
pub fn guard(environment: &mut Environment<'static>, plain: Environment<'static>, meter: &Arc<Meter>) {
    let plain = Arc::new(plain);
    for name in ALLOWED_FILTERS {
        let meter = meter.clone();
        let plain = plain.clone();
        environment.add_filter(name, move |_: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            meter.charge_filter(cost_of_call(&args))?;
            let result = plain.empty_state().apply_filter(name, &args)?;
            // A charge inside the filter may have failed, for example in `map`. The result must not be used in this case.
            meter.charge_filter(0).map(|()| result)
        });
    }
}

/// Returns the cost of a filter call: the size of all arguments, plus the size of the further arguments for each item. `join`,
/// for example, repeats its separator between all items.
fn cost_of_call(args: &[TemplateValue]) -> u64 {
    let argument_cost: u64 =
        args.iter().map(|arg| cost(arg, MAX_COST_DEPTH)).fold(VALUE_COST_BYTES, u64::saturating_add);
    let items = args.first().and_then(TemplateValue::len).unwrap_or(1).max(1) as u64;
    let others = args.iter().skip(1).filter_map(TemplateValue::as_str).map(|text| text.len() as u64);
    argument_cost.saturating_add(items.saturating_mul(others.fold(0, u64::saturating_add)))
}

/// Returns the cost of reading a value.
fn cost(value: &TemplateValue, depth: usize) -> u64 {
    if let Some(text) = value.as_str() {
        return VALUE_COST_BYTES + text.len() as u64;
    }
    match value.kind() {
        ValueKind::Seq if depth > 0 => value.try_iter().map_or(VALUE_COST_BYTES, |items| {
            items.map(|item| cost(&item, depth - 1)).fold(VALUE_COST_BYTES, u64::saturating_add)
        }),
        // A lazy sequence is charged by its length. Iterating over it here would already do the work that the meter must limit.
        ValueKind::Seq | ValueKind::Iterable => VALUE_COST_BYTES * value.len().unwrap_or(1_000).max(1) as u64,
        _ => VALUE_COST_BYTES,
    }
}
