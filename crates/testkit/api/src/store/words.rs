//! The constants from which the products of the store are made: five categories, four things in each, and three makes of each thing.
//! Invariant: no list is empty. Every combination of a category, a thing and a make is one of the sixty products.

use super::Category;

/// A category with the range of its prices and the names of its things.
pub struct CategoryRow {
    pub category: Category,
    /// The lowest price of the category in cents, and the exclusive upper bound of its prices in cents.
    pub prices: (u64, u64),
    pub things: [&'static str; 4],
}

const fn row(category: Category, prices: (u64, u64), things: [&'static str; 4]) -> CategoryRow {
    CategoryRow { category, prices, things }
}

pub const CATEGORIES: [CategoryRow; 5] = [
    row(Category::Books, (900, 6_500), ["Field guide", "Cookbook", "Atlas", "Short stories"]),
    row(Category::Garden, (400, 9_000), ["Trowel", "Watering can", "Pruning shears", "Seed box"]),
    row(Category::Kitchen, (700, 14_000), ["Kettle", "Chef's knife", "Mixing bowl", "Pepper mill"]),
    row(Category::Office, (150, 8_000), ["Notebook", "Fountain pen", "Desk lamp", "Paper tray"]),
    row(Category::Toys, (500, 7_500), ["Kite", "Wooden train", "Marble run", "Spinning top"]),
];

pub const MAKES: [&str; 3] = ["plain", "\"Classic\"", "de luxe"];

pub const ABOUT: [&str; 6] = [
    "Made to be repaired.",
    "Comes in a box that you will want to keep.\nAssembly required.",
    "The one everybody's grandmother had.",
    "Weighs 350 g; fits in a coat pocket.",
    "Größer als sein Vorgänger, and quieter.",
    "Not suitable for children under 3.",
];

pub const TAGS: [&str; 6] = ["new", "gift", "sale", "hand made", "r&d", "last chance"];

pub const NOTES: [&str; 4] = [
    "Please leave it with the neighbour.",
    "It's a present: no invoice in the box.",
    "Ring twice.\nThe bell is \"shy\".",
    "Before Friday if possible",
];
