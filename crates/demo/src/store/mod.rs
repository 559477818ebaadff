//! The store that GraphQL serves: products and orders, as they appear in JSON.
//! Invariants: both lists are sorted by id; every order names a person of the world and products of the list.

mod seed;
mod words;

use serde::Serialize;

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    pub products: Vec<Product>,
    pub orders: Vec<Order>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Product {
    pub id: String,
    pub name: String,
    pub about: Option<String>,
    pub category: &'static str,
    pub price_cents: u64,
    pub stock: u64,
    pub tags: Vec<String>,
    pub discontinued: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Order {
    pub id: String,
    pub status: Status,
    /// A person's id.
    pub customer: String,
    pub placed_at: String,
    pub note: Option<String>,
    pub lines: Vec<Line>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Line {
    /// A product's id.
    pub product: String,
    pub quantity: u64,
    /// What it cost when it was ordered.
    pub unit_price_cents: u64,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "UPPERCASE")]
pub enum Status {
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
