//! The types of the GraphQL schema, and the queries. A doc comment in an `Object` or `SimpleObject` is a description in the schema.
//! Invariant: all objects of a query read the same snapshot, so all fields show the store at one moment.

use std::sync::Arc;

use async_graphql::{Context, ID, Interface, Object, Result, SimpleObject, Union, scalar};
use demo::Person;
use serde::{Deserialize, Serialize};

use super::error::ErrorCode;
use crate::paging::{DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE, decode_cursor, encode_cursor};
use crate::store::{Category, Order, OrderLine, OrderStatus, Product, Store};

/// The person who asks. There is no log-in, so it is always the same one.
pub const VIEWER: &str = "ada";

const MAX_PRODUCTS: u64 = 100;

/// The store and its customers at one moment.
#[derive(Clone)]
pub struct Snapshot {
    pub people: Arc<Vec<Person>>,
    pub store: Arc<Store>,
}

impl Snapshot {
    pub fn person(&self, id: &str) -> Option<PersonNode> {
        let person = self.people.iter().find(|person| person.id == id)?;
        Some(PersonNode { person: person.clone(), snapshot: self.clone() })
    }

    fn product(&self, id: &str) -> Option<ProductNode> {
        self.store.product(id).cloned().map(ProductNode)
    }

    pub fn order_node(&self, order: &Order) -> OrderNode {
        OrderNode { order: order.clone(), snapshot: self.clone() }
    }

    fn order(&self, id: &str) -> Option<OrderNode> {
        self.store.order(id).map(|order| self.order_node(order))
    }
}

// Dates have a custom scalar, because the schemas of many APIs have one.
#[derive(Serialize, Deserialize)]
pub struct DateTime(String);

scalar!(DateTime, "DateTime", "A moment in UTC, such as 2026-03-31T09:14:05Z.");

/// Anything that has an id of its own.
#[derive(Interface)]
#[graphql(field(name = "id", ty = "ID"))]
pub enum Node {
    Product(ProductNode),
    Person(PersonNode),
    Order(OrderNode),
}

#[derive(Union)]
pub enum SearchResult {
    Product(ProductNode),
    Person(PersonNode),
}

pub struct ProductNode(Product);

/// Something the store sells.
#[Object(name = "Product")]
impl ProductNode {
    async fn id(&self) -> ID {
        ID(self.0.id.clone())
    }

    #[graphql(deprecation = "Use id.")]
    async fn sku(&self) -> ID {
        ID(self.0.id.clone())
    }

    async fn name(&self) -> &str {
        &self.0.name
    }

    async fn about(&self) -> Option<&str> {
        self.0.about.as_deref()
    }

    async fn category(&self) -> Category {
        self.0.category
    }

    async fn price_cents(&self) -> u64 {
        self.0.price_cents
    }

    /// The price is in euros.
    async fn price(&self) -> f64 {
        self.0.price_cents as f64 / 100.0
    }

    async fn stock(&self) -> u64 {
        self.0.stock
    }

    async fn tags(&self) -> &[String] {
        &self.0.tags
    }

    async fn discontinued(&self) -> bool {
        self.0.discontinued
    }
}

pub struct PersonNode {
    person: Person,
    snapshot: Snapshot,
}

/// A customer: someone from the ticket tracker.
#[Object(name = "Person")]
impl PersonNode {
    async fn id(&self) -> ID {
        ID(self.person.id.clone())
    }

    async fn name(&self) -> &str {
        &self.person.name
    }

    async fn email(&self) -> &str {
        &self.person.email
    }

    /// Returns their orders, the oldest first.
    async fn orders(
        &self,
        first: Option<i32>,
        after: Option<String>,
        last: Option<i32>,
        before: Option<String>,
        status: Option<OrderStatus>,
    ) -> Result<OrderConnection> {
        let page = PageArguments { first, after, last, before };
        orders(&self.snapshot, &page, status, Some(&self.person.id))
    }
}

pub struct OrderLineNode {
    line: OrderLine,
    snapshot: Snapshot,
}

#[Object(name = "OrderLine")]
impl OrderLineNode {
    async fn product(&self) -> Result<ProductNode> {
        self.snapshot.product(&self.line.product).ok_or_else(|| dangling("product", &self.line.product))
    }

    async fn quantity(&self) -> u64 {
        self.line.quantity
    }

    /// The price of one, as it was at the time of the order.
    async fn unit_price_cents(&self) -> u64 {
        self.line.unit_price_cents
    }
}

pub struct OrderNode {
    order: Order,
    snapshot: Snapshot,
}

#[Object(name = "Order")]
impl OrderNode {
    async fn id(&self) -> ID {
        ID(self.order.id.clone())
    }

    async fn status(&self) -> OrderStatus {
        self.order.status
    }

    async fn customer(&self) -> Result<PersonNode> {
        self.snapshot.person(&self.order.customer).ok_or_else(|| dangling("person", &self.order.customer))
    }

    async fn placed_at(&self) -> DateTime {
        DateTime(self.order.placed_at.clone())
    }

    async fn note(&self) -> Option<&str> {
        self.order.note.as_deref()
    }

    async fn lines(&self) -> Vec<OrderLineNode> {
        let node = |line: &OrderLine| OrderLineNode { line: line.clone(), snapshot: self.snapshot.clone() };
        self.order.lines.iter().map(node).collect()
    }

    async fn total_cents(&self) -> u64 {
        self.order.total_cents()
    }

    /// Where the invoice is; a cancelled order's may not be seen.
    async fn invoice(&self) -> Result<Option<String>> {
        let id = &self.order.id;
        if self.order.status == OrderStatus::Cancelled {
            let message = format!("the invoice of the cancelled order `{id}` may not be seen");
            return Err(ErrorCode::Forbidden.field_error(message));
        }
        Ok(Some(format!("/invoices/{id}.pdf")))
    }
}

/// The error for a reference to an item that does not exist, which the store's invariant excludes.
fn dangling(kind: &str, id: &str) -> async_graphql::Error {
    ErrorCode::Internal.field_error(format!("no {kind} `{id}`"))
}

#[derive(SimpleObject)]
pub struct OrderEdge {
    pub cursor: String,
    pub node: OrderNode,
}

#[derive(SimpleObject)]
pub struct PageInfo {
    pub has_next_page: bool,
    pub has_previous_page: bool,
    pub start_cursor: Option<String>,
    pub end_cursor: Option<String>,
}

pub struct QueryRoot;

#[Object(name = "Query")]
impl QueryRoot {
    /// Returns the person who asks.
    async fn viewer(&self, ctx: &Context<'_>) -> Result<PersonNode> {
        ctx.data::<Snapshot>()?.person(VIEWER).ok_or_else(|| dangling("person", VIEWER))
    }

    async fn products(
        &self,
        ctx: &Context<'_>,
        category: Option<Category>,
        #[graphql(default = 100)] limit: Option<i32>,
        #[graphql(default = 0)] offset: Option<i32>,
    ) -> Result<Vec<ProductNode>> {
        let limit = not_negative("limit", limit)?.unwrap_or(MAX_PRODUCTS).min(MAX_PRODUCTS);
        let offset = not_negative("offset", offset)?.unwrap_or(0);
        let products = ctx.data::<Snapshot>()?.store.products.iter();
        let wanted = products.filter(|product| category.is_none_or(|category| product.category == category));
        Ok(wanted.skip(offset as usize).take(limit as usize).cloned().map(ProductNode).collect())
    }

    async fn product(&self, ctx: &Context<'_>, id: ID) -> Result<Option<ProductNode>> {
        Ok(ctx.data::<Snapshot>()?.product(&id))
    }

    /// Orders, the oldest first; 20 unless asked, 100 at most.
    async fn orders(
        &self,
        ctx: &Context<'_>,
        first: Option<i32>,
        after: Option<String>,
        last: Option<i32>,
        before: Option<String>,
        status: Option<OrderStatus>,
        customer: Option<ID>,
    ) -> Result<OrderConnection> {
        let page = PageArguments { first, after, last, before };
        orders(ctx.data::<Snapshot>()?, &page, status, customer.as_ref().map(|id| id.as_str()))
    }

    /// One order; an id that does not exist is an error with the code NOT_FOUND.
    async fn order(&self, ctx: &Context<'_>, id: ID) -> Result<Option<OrderNode>> {
        let order = ctx.data::<Snapshot>()?.order(&id);
        order.map(Some).ok_or_else(|| no_order(&id))
    }

    async fn node(&self, ctx: &Context<'_>, id: ID) -> Result<Option<Node>> {
        let snapshot = ctx.data::<Snapshot>()?;
        let product = snapshot.product(&id).map(Node::Product);
        let order = || snapshot.order(&id).map(Node::Order);
        let person = || snapshot.person(&id).map(Node::Person);
        Ok(product.or_else(order).or_else(person))
    }

    /// Products and people whose name holds the text.
    async fn search(&self, ctx: &Context<'_>, text: String) -> Result<Vec<SearchResult>> {
        let snapshot = ctx.data::<Snapshot>()?;
        let text = text.to_lowercase();
        let products = snapshot.store.products.iter().filter(|product| product.name.to_lowercase().contains(&text));
        let people = snapshot.people.iter().filter(|person| person.name.to_lowercase().contains(&text));
        let products = products.map(|product| SearchResult::Product(ProductNode(product.clone())));
        let people = people.filter_map(|person| snapshot.person(&person.id)).map(SearchResult::Person);
        Ok(products.chain(people).collect())
    }
}

pub fn no_order(id: &str) -> async_graphql::Error {
    ErrorCode::NotFound.field_error(format!("no order `{id}`"))
}

/// Checks a count that a client gave.
pub fn not_negative(name: &str, count: Option<i32>) -> Result<Option<u64>> {
    let refused = |_| ErrorCode::BadUserInput.field_error(format!("`{name}` must not be negative"));
    count.map(|count| u64::try_from(count).map_err(refused)).transpose()
}

// Orders are a Relay connection: `first` after a cursor, or `last` before one. A cursor names an order, so an order that is placed
// in between makes the connection neither repeat nor skip another. A page has 20 orders by default and 100 at most.

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

/// Returns a page of the orders. If a status or a customer is given, only orders with this status or customer are included.
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

/// Reduces the list to the orders of the page: first to `first`, and then to `last`.
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
