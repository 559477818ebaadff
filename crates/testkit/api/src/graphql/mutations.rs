//! The GraphQL mutations, which place and cancel orders.
//! Invariants: a mutation is checked completely before it changes data, and each change is one effect. A second mutation with the same
//! `clientMutationId` and input returns the order of the first mutation and changes no data.

use std::fmt::Debug;
use std::sync::{Arc, PoisonError};

use async_graphql::{Context, ID, InputObject, Object, Result, SimpleObject};
use demo::WriteCall;

use super::error::ErrorCode;
use super::types::{OrderNode, Snapshot, VIEWER, no_order};
use crate::state::{AppliedMutation, TestApi};
use crate::store::{Order, OrderLine, OrderStatus, Store};

const MAX_LINES: usize = 50;
const MAX_QUANTITY: u64 = 1_000;

#[derive(Debug, InputObject)]
pub struct OrderLineInput {
    product: ID,
    #[graphql(default = 1)]
    quantity: i32,
}

#[derive(Debug, InputObject)]
pub struct CreateOrderInput {
    /// The same id with the same input gives the order of the first time.
    client_mutation_id: Option<String>,
    /// The viewer, unless given.
    customer: Option<ID>,
    lines: Vec<OrderLineInput>,
    note: Option<String>,
}

#[derive(Debug, InputObject)]
pub struct CancelOrderInput {
    client_mutation_id: Option<String>,
    id: ID,
    reason: Option<String>,
}

#[derive(SimpleObject)]
pub struct CreateOrderPayload {
    client_mutation_id: Option<String>,
    order: OrderNode,
    /// Whether this is the answer to an earlier mutation with this clientMutationId.
    replayed: bool,
}

#[derive(SimpleObject)]
pub struct CancelOrderPayload {
    client_mutation_id: Option<String>,
    order: OrderNode,
    replayed: bool,
}

pub struct MutationRoot;

#[Object(name = "Mutation")]
impl MutationRoot {
    async fn create_order(&self, ctx: &Context<'_>, input: CreateOrderInput) -> Result<Option<CreateOrderPayload>> {
        let key = input.client_mutation_id.clone();
        let applied =
            apply_once(ctx, key.clone(), &input, |api, store, placed_at| create(api, store, placed_at, &input))?;
        Ok(Some(CreateOrderPayload { client_mutation_id: key, order: applied.order, replayed: applied.replayed }))
    }

    async fn cancel_order(&self, ctx: &Context<'_>, input: CancelOrderInput) -> Result<Option<CancelOrderPayload>> {
        let key = input.client_mutation_id.clone();
        let applied = apply_once(ctx, key.clone(), &input, |_, store, _| cancel(store, &input))?;
        Ok(Some(CancelOrderPayload { client_mutation_id: key, order: applied.order, replayed: applied.replayed }))
    }
}

/// The order that a mutation changed, and whether an earlier mutation with the same `clientMutationId` made the change.
struct Applied {
    order: OrderNode,
    replayed: bool,
}

/// Calls `change` with the store and the moment of the effect, unless this mutation was applied before. `change` returns the id of the
/// order. If it fails, it must not have changed the store.
fn apply_once(
    ctx: &Context<'_>,
    key: Option<String>,
    input: &dyn Debug,
    change: impl FnOnce(&TestApi, &mut Store, String) -> Result<String>,
) -> Result<Applied> {
    let api = ctx.data::<Arc<TestApi>>()?;
    // The debug text of the input begins with the name of its type, so different mutations have different fingerprints.
    let fingerprint = format!("{input:?}");
    // The lock of the tracker is taken first, as in every other write. It orders the effects of the tracker and of the store.
    let mut tracker = api.tracker.write();
    let mut mutations = api.mutations.lock().unwrap_or_else(PoisonError::into_inner);
    let mut store = api.store.write().unwrap_or_else(PoisonError::into_inner);
    let earlier = key.as_ref().and_then(|key| mutations.get(key));
    let replayed = earlier.is_some();
    let order_id = match earlier {
        Some(earlier) if earlier.fingerprint != fingerprint => {
            let message = format!("clientMutationId `{}` came with another mutation before", key.unwrap_or_default());
            return Err(ErrorCode::IdempotencyMismatch.field_error(message));
        }
        Some(earlier) => earlier.order_id.clone(),
        None => {
            // Queries that run at this moment continue to read the old version of the store.
            let order_id = change(api, Arc::make_mut(&mut store), tracker.instant())?;
            let call = WriteCall { key: key.clone(), ..ctx.data::<WriteCall>()?.clone() };
            api.tracker.count_effect(&mut tracker, &call);
            if let Some(key) = key {
                mutations.insert(key, AppliedMutation { fingerprint, order_id: order_id.clone() });
            }
            order_id
        }
    };
    let snapshot = Snapshot { people: api.people.clone(), store: store.clone() };
    let order = snapshot.store.order(&order_id).ok_or_else(|| no_order(&order_id))?;
    Ok(Applied { order: snapshot.order_node(order), replayed })
}

fn create(api: &TestApi, store: &mut Store, placed_at: String, input: &CreateOrderInput) -> Result<String> {
    let customer = input.customer.as_ref().map_or(VIEWER, |id| id.as_str());
    if api.people.iter().all(|person| person.id != customer) {
        return Err(ErrorCode::BadUserInput.field_error(format!("no person `{customer}`")));
    }
    if input.lines.is_empty() || input.lines.len() > MAX_LINES {
        return Err(ErrorCode::BadUserInput.field_error(format!("an order has 1 to {MAX_LINES} lines")));
    }
    let mut lines: Vec<OrderLine> = Vec::new();
    for line in &input.lines {
        let line = check_line(store, &lines, line)?;
        lines.push(line);
    }
    for line in &lines {
        change_stock(store, line, |stock, quantity| stock.saturating_sub(quantity));
    }
    let id = format!("o-{:04}", store.orders.len() + 1);
    store.orders.push(Order {
        id: id.clone(),
        status: OrderStatus::Pending,
        customer: customer.to_owned(),
        placed_at,
        note: input.note.clone(),
        lines,
    });
    Ok(id)
}

fn check_line(store: &Store, earlier: &[OrderLine], line: &OrderLineInput) -> Result<OrderLine> {
    let id = line.product.as_str();
    let quantity = u64::try_from(line.quantity).ok().filter(|quantity| (1..=MAX_QUANTITY).contains(quantity));
    let Some(quantity) = quantity else {
        return Err(ErrorCode::BadUserInput.field_error(format!("a quantity is 1 to {MAX_QUANTITY}")));
    };
    let Some(product) = store.product(id) else {
        return Err(ErrorCode::BadUserInput.field_error(format!("no product `{id}`")));
    };
    if earlier.iter().any(|line| line.product == id) {
        return Err(ErrorCode::BadUserInput.field_error(format!("product `{id}` is on two lines")));
    }
    if product.stock < quantity {
        let message = format!("{} of product `{id}` are in stock, not {quantity}", product.stock);
        return Err(ErrorCode::OutOfStock.field_error(message));
    }
    Ok(OrderLine { product: id.to_owned(), quantity, unit_price_cents: product.price_cents })
}

fn cancel(store: &mut Store, input: &CancelOrderInput) -> Result<String> {
    let id = input.id.as_str();
    let order = store.order(id).ok_or_else(|| no_order(id))?.clone();
    if !matches!(order.status, OrderStatus::Pending | OrderStatus::Paid) {
        let status = async_graphql::Value::from(order.status);
        return Err(ErrorCode::Conflict.field_error(format!("order `{id}` is {status} and cannot be cancelled")));
    }
    for line in &order.lines {
        change_stock(store, line, |stock, quantity| stock + quantity);
    }
    if let Some(cancelled) = store.orders.iter_mut().find(|order| order.id == id) {
        cancelled.status = OrderStatus::Cancelled;
        cancelled.note = input.reason.clone().or(order.note);
    }
    Ok(order.id)
}

fn change_stock(store: &mut Store, line: &OrderLine, change: impl Fn(u64, u64) -> u64) {
    if let Some(product) = store.products.iter_mut().find(|product| product.id == line.product) {
        product.stock = change(product.stock, line.quantity);
    }
}
