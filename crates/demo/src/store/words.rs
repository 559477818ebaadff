//! The constant material of the store: categories, what is sold in each, and the makes of it.
//! Invariant: no list is empty; five categories of four things in three makes are the sixty products.

/// A category, its price range in cents, and its things.
pub const SHELVES: [(&str, (u64, u64), [&str; 4]); 5] = [
    ("BOOKS", (900, 6_500), ["Field guide", "Cookbook", "Atlas", "Short stories"]),
    ("GARDEN", (400, 9_000), ["Trowel", "Watering can", "Pruning shears", "Seed box"]),
    ("KITCHEN", (700, 14_000), ["Kettle", "Chef's knife", "Mixing bowl", "Pepper mill"]),
    ("OFFICE", (150, 8_000), ["Notebook", "Fountain pen", "Desk lamp", "Paper tray"]),
    ("TOYS", (500, 7_500), ["Kite", "Wooden train", "Marble run", "Spinning top"]),
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
