//! Generates a `Store` from a seed (a number that starts the random numbers).
//! Invariants: the same seed gives the same store. The store has its own streams of random numbers, so a change here does not change the
//! data of the tracker. Orders are numbered in order of time.

use demo::calendar::{LAST_DAY, SECONDS_PER_DAY, instant};
use demo::{Person, Prng};

use super::words::{ABOUT, CATEGORIES, CategoryRow, MAKES, NOTES, TAGS};
use super::{Order, OrderLine, OrderStatus, Product, Store};

const ORDERS: usize = 90;

/// The number of days before `LAST_DAY` in which orders were placed.
const DAYS: u64 = 180;

impl Store {
    /// Generates the store of a seed, with these people as its customers.
    pub fn seeded(seed: u64, people: &[Person]) -> Store {
        let products = products(&mut Prng::stream(seed, "products"));
        let orders = orders(&mut Prng::stream(seed, "orders"), &products, people);
        Store { products, orders }
    }
}

fn products(prng: &mut Prng) -> Vec<Product> {
    let mut products = Vec::new();
    for row in &CATEGORIES {
        for thing in row.things {
            for make in MAKES {
                let number = products.len() + 1;
                products.push(product(prng, number, row, format!("{thing}, {make}")));
            }
        }
    }
    products
}

fn product(prng: &mut Prng, number: usize, row: &CategoryRow, name: String) -> Product {
    let (lowest, highest) = row.prices;
    let mut tags: Vec<String> = (0..prng.below(4)).map(|_| (*prng.pick(&TAGS)).to_owned()).collect();
    tags.sort();
    tags.dedup();
    let discontinued = prng.chance(8);
    Product {
        id: format!("p-{number:03}"),
        name,
        about: prng.chance(85).then(|| (*prng.pick(&ABOUT)).to_owned()),
        category: row.category,
        price_cents: lowest + prng.below(highest - lowest),
        stock: if discontinued || prng.chance(5) { 0 } else { 1 + prng.below(200) },
        tags,
        discontinued,
    }
}

fn orders(prng: &mut Prng, products: &[Product], people: &[Person]) -> Vec<Order> {
    let mut placed: Vec<u64> =
        (0..ORDERS).map(|_| (LAST_DAY - DAYS) * SECONDS_PER_DAY + prng.below(DAYS * SECONDS_PER_DAY)).collect();
    placed.sort_unstable();
    let numbered = (1..).zip(placed);
    numbered.map(|(number, placed)| order(prng, number, placed, products, people)).collect()
}

fn order(prng: &mut Prng, number: usize, placed: u64, products: &[Product], people: &[Person]) -> Order {
    let mut lines: Vec<OrderLine> = Vec::new();
    for _ in 0..1 + prng.below(4) {
        let product = prng.pick(products);
        if lines.iter().all(|line| line.product != product.id) {
            let quantity = 1 + prng.below(5);
            lines.push(OrderLine { product: product.id.clone(), quantity, unit_price_cents: product.price_cents });
        }
    }
    Order {
        id: format!("o-{number:04}"),
        status: status(prng, number * 100 / ORDERS),
        customer: prng.pick(people).id.clone(),
        placed_at: instant(placed),
        note: prng.chance(30).then(|| (*prng.pick(&NOTES)).to_owned()),
        lines,
    }
}

/// Draws a status. An older order has more likely a later status. `youth` is 0 for the oldest order and 100 for the newest.
fn status(prng: &mut Prng, youth: usize) -> OrderStatus {
    match prng.below(100) {
        roll if roll < 8 => OrderStatus::Cancelled,
        _ if youth < 70 => OrderStatus::Delivered,
        _ if youth < 85 => OrderStatus::Shipped,
        roll if roll < 60 => OrderStatus::Paid,
        _ => OrderStatus::Pending,
    }
}

#[cfg(test)]
mod tests {
    use async_graphql::resolver_utils::EnumType;

    use super::*;

    fn people() -> Vec<Person> {
        demo::World::seeded(demo::SEED).people
    }

    #[test]
    fn the_store_has_the_documented_size_and_every_case() {
        let people = people();
        let store = Store::seeded(demo::SEED, &people);
        assert_eq!(store, Store::seeded(demo::SEED, &people));
        assert_eq!((store.products.len(), store.orders.len()), (60, 90));
        assert!(store.products.is_sorted_by(|a, b| a.id < b.id) && store.orders.is_sorted_by(|a, b| a.id < b.id));
        assert!(store.orders.is_sorted_by(|a, b| a.placed_at <= b.placed_at));
        for status in OrderStatus::items().iter().map(|item| item.value) {
            assert!(store.orders.iter().any(|order| order.status == status), "{status:?}");
        }
        for order in &store.orders {
            assert!(!order.lines.is_empty() && order.total_cents() > 0);
            assert!(order.lines.iter().all(|line| store.product(&line.product).is_some()));
            assert!(people.iter().any(|person| person.id == order.customer));
        }
        assert!(store.products.iter().any(|product| product.stock == 0 && !product.discontinued));
        assert!(store.products.iter().any(|product| product.discontinued));
    }
}
