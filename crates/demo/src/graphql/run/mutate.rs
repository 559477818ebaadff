//! Mutations: an order is placed, an order is cancelled.
//! Invariants: a mutation is checked whole before it changes anything; each change is one effect; the same
//! `clientMutationId` with the same input gives the first one's order again and changes nothing.

use serde_json::{Map, Value, json};

use super::resolve::{VIEWER, found};
use crate::graphql::problem::{Code, Problem};
use crate::state::Data;
use crate::state::replays::Call;
use crate::store::{Line, Order, Status};

const MOST_LINES: usize = 50;
const MOST_QUANTITY: u64 = 1_000;

/// The request that a mutation came in.
pub struct Source {
    pub path: String,
    pub body_sha256: String,
}

pub fn run(data: &mut Data, source: &Source, name: &str, arguments: &Map<String, Value>) -> Result<Value, Problem> {
    let input = arguments.get("input").cloned().unwrap_or_default();
    let key = input["clientMutationId"].as_str().map(str::to_owned);
    let fingerprint = format!("{name} {input}");
    if let Some((earlier, order)) = key.as_ref().and_then(|key| data.mutations.get(key)) {
        if *earlier != fingerprint {
            let message = format!("clientMutationId `{}` came with another mutation before", key.unwrap_or_default());
            return Err(Problem::new(Code::IdempotencyMismatch, message));
        }
        return Ok(json!({"clientMutationId": key, "order": order, "replayed": true}));
    }
    let order = match name {
        "createOrder" => create(data, &input)?,
        _ => cancel(data, &input)?,
    };
    let (path, body_sha256) = (source.path.clone(), source.body_sha256.clone());
    data.effects.note(&Call { method: "POST".to_owned(), path, key: key.clone(), body_sha256 });
    if let Some(key) = &key {
        data.mutations.insert(key.clone(), (fingerprint, order.clone()));
    }
    Ok(json!({"clientMutationId": key, "order": order, "replayed": false}))
}

fn create(data: &mut Data, input: &Value) -> Result<String, Problem> {
    let customer = input["customer"].as_str().unwrap_or(VIEWER);
    if data.world.person(customer).is_none() {
        return Err(Problem::new(Code::BadUserInput, format!("no person `{customer}`")));
    }
    let given = input["lines"].as_array().map(Vec::as_slice).unwrap_or_default();
    if given.is_empty() || given.len() > MOST_LINES {
        return Err(Problem::new(Code::BadUserInput, format!("an order has 1 to {MOST_LINES} lines")));
    }
    let mut lines: Vec<Line> = Vec::new();
    for line in given {
        let line = checked(data, &lines, line)?;
        lines.push(line);
    }
    for line in &lines {
        move_stock(data, line, |stock, quantity| stock.saturating_sub(quantity));
    }
    let id = format!("o-{:04}", data.store.orders.len() + 1);
    let (customer, note) = (customer.to_owned(), input["note"].as_str().map(str::to_owned));
    let placed_at = data.instant();
    data.store.orders.push(Order { id: id.clone(), status: Status::Pending, customer, placed_at, note, lines });
    Ok(id)
}

fn checked(data: &Data, earlier: &[Line], line: &Value) -> Result<Line, Problem> {
    let id = line["product"].as_str().unwrap_or_default();
    let quantity = line["quantity"].as_u64().filter(|quantity| (1..=MOST_QUANTITY).contains(quantity));
    let Some(quantity) = quantity else {
        return Err(Problem::new(Code::BadUserInput, format!("a quantity is 1 to {MOST_QUANTITY}")));
    };
    let Some(product) = data.store.product(id) else {
        return Err(Problem::new(Code::BadUserInput, format!("no product `{id}`")));
    };
    if earlier.iter().any(|line| line.product == id) {
        return Err(Problem::new(Code::BadUserInput, format!("product `{id}` is on two lines")));
    }
    if product.stock < quantity {
        let message = format!("{} of product `{id}` are in stock, not {quantity}", product.stock);
        return Err(Problem::new(Code::OutOfStock, message));
    }
    Ok(Line { product: id.to_owned(), quantity, unit_price_cents: product.price_cents })
}

fn cancel(data: &mut Data, input: &Value) -> Result<String, Problem> {
    let id = input["id"].as_str().unwrap_or_default();
    let order = found(data, id)?.clone();
    if !matches!(order.status, Status::Pending | Status::Paid) {
        let status = json!(order.status);
        let message = format!("order `{id}` is {} and cannot be cancelled", status.as_str().unwrap_or_default());
        return Err(Problem::new(Code::Conflict, message));
    }
    for line in &order.lines {
        move_stock(data, line, |stock, quantity| stock + quantity);
    }
    if let Some(place) = data.store.orders.iter_mut().find(|one| one.id == order.id) {
        place.status = Status::Cancelled;
        place.note = input["reason"].as_str().map(str::to_owned).or(order.note);
    }
    Ok(order.id)
}

fn move_stock(data: &mut Data, line: &Line, change: impl Fn(u64, u64) -> u64) {
    if let Some(product) = data.store.products.iter_mut().find(|product| product.id == line.product) {
        product.stock = change(product.stock, line.quantity);
    }
}
