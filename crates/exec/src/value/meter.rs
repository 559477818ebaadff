//! What a template may look at and make, beside its fuel: a step of fuel may be a filter over a million letters.
//! Invariant: every filter pays for what it is given before it runs, and every value of a row for its size when it is read; who
//! cannot pay stops.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use minijinja::value::{Rest, ValueKind, ValueOrKwargs};
use minijinja::{Environment, Error, ErrorKind, State, Value as Shown};

/// Bytes that one rendering may look at and make.
pub const WORK: u64 = 64 * 1024 * 1024;
/// What a value costs beside its bytes.
const EACH: u64 = 64;
/// How deep lists in lists are counted.
const DEPTH: usize = 4;

/// The filters that there are. `format`, `indent`, `batch`, `slice` and `pprint` are left out: they make much from little.
const FILTERS: [&str; 38] = [
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
];
const MORE: [&str; 5] = ["selectattr", "rejectattr", "unique", "chain", "zip"];

#[derive(Debug)]
pub struct Meter {
    left: AtomicU64,
    over: AtomicBool,
}

impl Meter {
    pub fn new(work: u64) -> Arc<Self> {
        Arc::new(Self { left: AtomicU64::new(work), over: AtomicBool::new(false) })
    }

    /// False when there is not so much left; then nothing is.
    pub fn pay(&self, cost: u64) -> bool {
        let paid = self.left.fetch_update(Ordering::Relaxed, Ordering::Relaxed, |left| left.checked_sub(cost));
        if paid.is_err() {
            self.left.store(0, Ordering::Relaxed);
            self.over.store(true, Ordering::Relaxed);
        }
        paid.is_ok()
    }

    pub fn pay_for(&self, bytes: usize) -> bool {
        self.pay(EACH.saturating_add(bytes as u64))
    }

    pub fn is_over(&self) -> bool {
        self.over.load(Ordering::Relaxed)
    }

    fn check(&self, cost: u64) -> Result<(), Error> {
        if self.pay(cost) && !self.is_over() { Ok(()) } else { Err(Error::new(ErrorKind::OutOfFuel, "too much work")) }
    }
}

/// Puts a till before every filter of `environment`; `plain` has the filters themselves.
pub fn guard(environment: &mut Environment<'static>, plain: Environment<'static>, meter: &Arc<Meter>) {
    let plain = Arc::new(plain);
    for name in FILTERS.into_iter().chain(MORE) {
        let (meter, plain) = (meter.clone(), plain.clone());
        environment.add_filter(name, move |_: &mut State, args: Rest<ValueOrKwargs>| {
            let args = args.into_values();
            meter.check(cost_of_call(&args))?;
            let made = plain.empty_state().apply_filter(name, &args)?;
            // What could not be paid for inside was not done rightly.
            meter.check(0).map(|()| made)
        });
    }
}

/// What it is given, and what each of its items may get of the other arguments: `join` puts its separator between them all.
fn cost_of_call(args: &[Shown]) -> u64 {
    let given: u64 = args.iter().map(|arg| cost(arg, DEPTH)).fold(EACH, u64::saturating_add);
    let items = args.first().and_then(Shown::len).unwrap_or(1).max(1) as u64;
    let others = args.iter().skip(1).filter_map(Shown::as_str).map(|text| text.len() as u64);
    given.saturating_add(items.saturating_mul(others.fold(0, u64::saturating_add)))
}

fn cost(value: &Shown, depth: usize) -> u64 {
    if let Some(text) = value.as_str() {
        return EACH + text.len() as u64;
    }
    match value.kind() {
        ValueKind::Seq if depth > 0 => value
            .try_iter()
            .map_or(EACH, |items| items.map(|item| cost(&item, depth - 1)).fold(EACH, u64::saturating_add)),
        // What is made while it is read is paid for by its length alone.
        ValueKind::Seq | ValueKind::Iterable => EACH * value.len().unwrap_or(1_000).max(1) as u64,
        _ => EACH,
    }
}
