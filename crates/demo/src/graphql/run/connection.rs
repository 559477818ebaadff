//! Orders as a Relay connection: `first` after a cursor, or `last` before one.
//! Invariants: a cursor names an order, so an order placed meanwhile neither repeats nor hides another; 20 unless asked,
//! 100 at most.

use serde_json::{Value, json};

use super::resolve::{Ask, order};
use crate::digest::{decode, encode};
use crate::graphql::problem::{Code, Problem};
use crate::store::Order;

const DEFAULT_SIZE: u64 = 20;
const MAX_SIZE: u64 = 100;

pub fn orders(ask: &Ask<'_>, customer: Option<&str>) -> Result<Value, Problem> {
    let all = &ask.data.store.orders;
    let status = ask.argument("status");
    let matching: Vec<(usize, &Order)> = all
        .iter()
        .enumerate()
        .filter(|(_, one)| customer.is_none_or(|customer| one.customer == customer))
        .filter(|(_, one)| status.is_none_or(|status| json!(one.status) == status))
        .collect();
    let (after, before) = (place(ask, "after", all)?, place(ask, "before", all)?);
    let inside = |at: usize| after.is_none_or(|after| at > after) && before.is_none_or(|before| at < before);
    let window: Vec<(usize, &Order)> = matching.iter().copied().filter(|(at, _)| inside(*at)).collect();
    let page = cut(ask, &window)?;
    let is_edge = |edge: Option<&(usize, &Order)>, end: Option<&(usize, &Order)>| {
        edge.map(|(at, _)| at) != end.map(|(at, _)| at) && edge.is_some()
    };
    let edges: Vec<Value> = page.iter().map(|(_, one)| json!({"cursor": cursor(one), "node": order(one)})).collect();
    Ok(json!({
        "totalCount": matching.len(),
        "nodes": page.iter().map(|(_, one)| order(one)).collect::<Vec<_>>(),
        "pageInfo": {
            "hasNextPage": is_edge(page.last(), matching.last()),
            "hasPreviousPage": is_edge(page.first(), matching.first()),
            "startCursor": page.first().map(|(_, one)| cursor(one)),
            "endCursor": page.last().map(|(_, one)| cursor(one)),
        },
        "edges": edges,
    }))
}

fn cut<'o>(ask: &Ask<'_>, window: &[(usize, &'o Order)]) -> Result<Vec<(usize, &'o Order)>, Problem> {
    let size = |count: u64| count.min(MAX_SIZE) as usize;
    let mut page = match (ask.count("first")?, ask.count("last")?) {
        (Some(first), _) => window[..size(first).min(window.len())].to_vec(),
        (None, Some(_)) => window.to_vec(),
        (None, None) => window[..size(DEFAULT_SIZE).min(window.len())].to_vec(),
    };
    if let Some(last) = ask.count("last")? {
        page.drain(..page.len().saturating_sub(size(last)));
    }
    Ok(page)
}

fn cursor(order: &Order) -> String {
    encode(format!("order:{}", order.id).as_bytes())
}

fn place(ask: &Ask<'_>, name: &str, all: &[Order]) -> Result<Option<usize>, Problem> {
    let Some(cursor) = ask.argument(name) else { return Ok(None) };
    let id = decode(cursor).and_then(|bytes| String::from_utf8(bytes).ok());
    let id = id.as_deref().and_then(|text| text.strip_prefix("order:"));
    let place = id.and_then(|id| all.iter().position(|order| order.id == id));
    let refused = || Problem::new(Code::BadUserInput, format!("`{cursor}` is no cursor of this connection"));
    place.map(Some).ok_or_else(refused)
}
