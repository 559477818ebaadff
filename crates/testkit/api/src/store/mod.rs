//! The data of the store that GraphQL serves: products and orders.
//! Invariants: both lists are sorted by id. The customer of every order is a person of the tracker, and its products are in the list.

mod seed;
mod words;

use async_graphql::Enum;

/// All data of the store at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub products: Vec<Product>,
    pub orders: Vec<Order>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Product {
    /// The id, such as `p-001`.
    pub id: String,
    pub name: String,
    pub about: Option<String>,
    pub category: Category,
    pub price_cents: u64,
    pub stock: u64,
    pub tags: Vec<String>,
    pub discontinued: bool,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Order {
    /// The id, such as `o-0001`.
    pub id: String,
    pub status: OrderStatus,
    /// The id of the person who placed the order.
    pub customer: String,
    /// The moment of the order, such as `2026-03-31T09:14:05Z`.
    pub placed_at: String,
    pub note: Option<String>,
    pub lines: Vec<OrderLine>,
}

/// A product in an order.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OrderLine {
    /// The id of a product.
    pub product: String,
    pub quantity: u64,
    /// The price of the product at the time of the order.
    pub unit_price_cents: u64,
}

// The next two enums have no doc comments, because they are also in the GraphQL schema, where a doc comment becomes a description.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum Category {
    Books,
    Garden,
    Kitchen,
    Office,
    Toys,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Enum)]
pub enum OrderStatus {
    Pending,
    Paid,
    Shipped,
    Delivered,
    Cancelled,
}

impl Store {
    pub fn product(&self, id: &str) -> Option<&Product> {
        self.products.iter().find(|product| product.id == id)
    }

    pub fn order(&self, id: &str) -> Option<&Order> {
        self.orders.iter().find(|order| order.id == id)
    }
}

impl Order {
    pub fn total_cents(&self) -> u64 {
        self.lines.iter().map(|line| line.quantity * line.unit_price_cents).sum()
    }
}
