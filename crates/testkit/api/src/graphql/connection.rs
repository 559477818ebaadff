//! Orders as a Relay connection: `first` after a cursor, or `last` before one.
//! Invariants: a cursor names an order, so an order that is placed in between makes the connection neither repeat nor skip another; a
//! page has 20 orders by default and 100 at most.

use async_graphql::{Result, SimpleObject};

use super::error::ErrorCode;
use super::types::{OrderEdge, OrderNode, PageInfo, Snapshot, not_negative};
use crate::paging::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, decode_cursor, encode_cursor};
use crate::store::{Order, OrderStatus};

#[derive(SimpleObject)]
pub struct OrderConnection {
    edges: Vec<OrderEdge>,
    nodes: Vec<OrderNode>,
    page_info: PageInfo,
    total_count: usize,
}

/// The arguments that choose a page.
pub struct PageArguments {
    pub first: Option<i32>,
    pub after: Option<String>,
    pub last: Option<i32>,
    pub before: Option<String>,
}

/// Returns a page of the orders that have the status and the customer, if these are given.
pub fn orders(
    snapshot: &Snapshot,
    page: &PageArguments,
    status: Option<OrderStatus>,
    customer: Option<&str>,
) -> Result<OrderConnection> {
    let all = &snapshot.store.orders;
    let matching: Vec<&Order> = all
        .iter()
        .filter(|order| customer.is_none_or(|customer| order.customer == customer))
        .filter(|order| status.is_none_or(|status| order.status == status))
        .collect();
    let after = parse_cursor(page.after.as_deref(), all)?;
    let before = parse_cursor(page.before.as_deref(), all)?;
    // Ids have the order of the list. A cursor may name an order that the filters exclude.
    let is_inside = |order: &Order| {
        after.is_none_or(|after| order.id > after.id) && before.is_none_or(|before| order.id < before.id)
    };
    let mut shown: Vec<&Order> = matching.iter().copied().filter(|order| is_inside(order)).collect();
    limit(&mut shown, page)?;
    let is_other = |one: Option<&&Order>, other: Option<&&Order>| {
        one.is_some_and(|one| other.is_some_and(|other| one.id != other.id))
    };
    Ok(OrderConnection {
        edges: shown
            .iter()
            .map(|order| OrderEdge { cursor: cursor(order), node: snapshot.order_node(order) })
            .collect(),
        nodes: shown.iter().map(|order| snapshot.order_node(order)).collect(),
        page_info: PageInfo {
            has_next_page: is_other(shown.last(), matching.last()),
            has_previous_page: is_other(shown.first(), matching.first()),
            start_cursor: shown.first().map(|order| cursor(order)),
            end_cursor: shown.last().map(|order| cursor(order)),
        },
        total_count: matching.len(),
    })
}

/// Cuts the orders to the first and then to the last that the page wants.
fn limit(orders: &mut Vec<&Order>, page: &PageArguments) -> Result<()> {
    let size = |count: u64| count.min(MAX_PAGE_SIZE) as usize;
    let first = not_negative("first", page.first)?;
    let last = not_negative("last", page.last)?;
    if let Some(first) = first.or(last.is_none().then_some(DEFAULT_PAGE_SIZE)) {
        orders.truncate(size(first));
    }
    if let Some(last) = last {
        orders.drain(..orders.len().saturating_sub(size(last)));
    }
    Ok(())
}

fn cursor(order: &Order) -> String {
    encode_cursor("order", &order.id)
}

fn parse_cursor<'o>(cursor: Option<&str>, orders: &'o [Order]) -> Result<Option<&'o Order>> {
    let Some(cursor) = cursor else { return Ok(None) };
    let id = decode_cursor("order", cursor);
    let order = id.and_then(|id| orders.iter().find(|order| order.id == id));
    let refused = || ErrorCode::BadUserInput.field_error(format!("`{cursor}` is no cursor of this connection"));
    order.map(Some).ok_or_else(refused)
}
