//! Grows a `Store` from a seed.
//! Invariants: the same seed gives the same store; its streams are its own, so the store and the world do not disturb each
//! other; orders are numbered in order of time.

use super::words::{ABOUT, MAKES, NOTES, SHELVES, TAGS};
use super::{Line, Order, Product, Status, Store};
use crate::date::{DAY, LAST_DAY, instant};
use crate::prng::Prng;
use crate::words::PEOPLE;

const ORDERS: usize = 90;

/// How far back the first order lies.
const DAYS: u64 = 180;

impl Store {
    pub fn seeded(seed: u64) -> Store {
        let products = products(&mut Prng::stream(seed, "products"));
        let orders = orders(&mut Prng::stream(seed, "orders"), &products);
        Store { products, orders }
    }
}

fn products(prng: &mut Prng) -> Vec<Product> {
    let things = SHELVES.iter().flat_map(|(category, range, things)| {
        things.iter().flat_map(move |thing| MAKES.iter().map(move |make| (*category, *range, *thing, *make)))
    });
    let numbered = (1..).zip(things);
    numbered.map(|(number, thing)| product(prng, number, thing)).collect()
}

fn product(
    prng: &mut Prng,
    number: u64,
    (category, (least, most), thing, make): (&'static str, (u64, u64), &str, &str),
) -> Product {
    let mut tags: Vec<String> = (0..prng.below(4)).map(|_| (*prng.pick(&TAGS)).to_owned()).collect();
    tags.sort();
    tags.dedup();
    let discontinued = prng.chance(8);
    Product {
        id: format!("p-{number:03}"),
        name: format!("{thing}, {make}"),
        about: prng.chance(85).then(|| (*prng.pick(&ABOUT)).to_owned()),
        category,
        price_cents: least + prng.below(most - least),
        stock: if discontinued || prng.chance(5) { 0 } else { 1 + prng.below(200) },
        tags,
        discontinued,
    }
}

fn orders(prng: &mut Prng, products: &[Product]) -> Vec<Order> {
    let mut placed: Vec<u64> = (0..ORDERS).map(|_| (LAST_DAY - DAYS) * DAY + prng.below(DAYS * DAY)).collect();
    placed.sort_unstable();
    let numbered = (1..).zip(placed);
    numbered.map(|(number, placed)| order(prng, number, placed, products)).collect()
}

fn order(prng: &mut Prng, number: usize, placed: u64, products: &[Product]) -> Order {
    let mut lines: Vec<Line> = Vec::new();
    for _ in 0..1 + prng.below(4) {
        let product = prng.pick(products);
        if lines.iter().all(|line| line.product != product.id) {
            let quantity = 1 + prng.below(5);
            lines.push(Line { product: product.id.clone(), quantity, unit_price_cents: product.price_cents });
        }
    }
    Order {
        id: format!("o-{number:04}"),
        status: status(prng, number * 100 / ORDERS),
        customer: prng.pick(&PEOPLE).0.to_owned(),
        placed_at: instant(placed),
        note: prng.chance(30).then(|| (*prng.pick(&NOTES)).to_owned()),
        lines,
    }
}

/// The older an order (`youth` runs to 100), the further it has come.
fn status(prng: &mut Prng, youth: usize) -> Status {
    match prng.below(100) {
        roll if roll < 8 => Status::Cancelled,
        _ if youth < 70 => Status::Delivered,
        _ if youth < 85 => Status::Shipped,
        roll if roll < 60 => Status::Paid,
        _ => Status::Pending,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::SEED;

    #[test]
    fn has_the_promised_size_and_every_case() {
        let store = Store::seeded(SEED);
        assert_eq!(store, Store::seeded(SEED));
        assert_eq!((store.products.len(), store.orders.len()), (60, 90));
        assert!(store.products.is_sorted_by(|a, b| a.id < b.id) && store.orders.is_sorted_by(|a, b| a.id < b.id));
        assert!(store.orders.is_sorted_by(|a, b| a.placed_at <= b.placed_at));
        for status in [Status::Pending, Status::Paid, Status::Shipped, Status::Delivered, Status::Cancelled] {
            assert!(store.orders.iter().any(|order| order.status == status), "{status:?}");
        }
        for order in &store.orders {
            assert!(!order.lines.is_empty() && order.total_cents() > 0);
            assert!(order.lines.iter().all(|line| store.product(&line.product).is_some()));
            assert!(PEOPLE.iter().any(|person| person.0 == order.customer));
        }
        assert!(store.products.iter().any(|product| product.stock == 0 && !product.discontinued));
        assert!(store.products.iter().any(|product| product.discontinued));
    }
}
