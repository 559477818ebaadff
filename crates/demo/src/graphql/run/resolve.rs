//! What each field is: a table of the fields that are looked up or computed; all others are read from their object.
//! Invariant: an object that can be one of several types says in `__typename` which it is.

use serde_json::{Map, Value, json};

use super::{connection, introspect};
use crate::graphql::problem::{Code, Problem};
use crate::graphql::schema::Schema;
use crate::state::Data;
use crate::store::{Order, Product};
use crate::world::Person;

/// Who asks: there is no log-in here.
pub const VIEWER: &str = "ada";

const MOST_PRODUCTS: u64 = 100;

/// One field of one object.
pub struct Ask<'a> {
    pub data: &'a Data,
    pub schema: &'static Schema,
    pub on: &'a str,
    pub parent: &'a Value,
    pub name: &'a str,
    pub arguments: &'a Map<String, Value>,
}

pub fn field(ask: &Ask<'_>) -> Result<Value, Problem> {
    let store = &ask.data.store;
    Ok(match (ask.on, ask.name) {
        (on, "__typename") => on.into(),
        ("Query", "__schema" | "__type") => introspect::root(ask),
        (on, _) if on.starts_with("__") => introspect::field(ask),
        ("Query", "viewer") => person_named(ask.data, VIEWER),
        ("Query", "products") => products(ask)?,
        ("Query", "product") => store.product(ask.text("id")).map(product).into(),
        ("Query", "orders") => connection::orders(ask, ask.argument("customer"))?,
        ("Query", "order") => order(found(ask.data, ask.text("id"))?),
        ("Query", "node") => node(ask.data, ask.text("id")),
        ("Query", "search") => search(ask),
        ("Person", "orders") => connection::orders(ask, ask.parent["id"].as_str())?,
        ("Product", "sku") => ask.parent["id"].clone(),
        ("Product", "price") => (ask.parent["priceCents"].as_f64().unwrap_or_default() / 100.0).into(),
        ("Order", "customer") => person_named(ask.data, ask.parent["customer"].as_str().unwrap_or_default()),
        ("Order", "invoice") => invoice(ask.parent)?,
        ("OrderLine", "product") => {
            store.product(ask.parent["product"].as_str().unwrap_or_default()).map(product).into()
        }
        ("CreateOrderPayload" | "CancelOrderPayload", "order") => {
            order(found(ask.data, ask.parent["order"].as_str().unwrap_or_default())?)
        }
        _ => ask.parent.get(ask.name).cloned().unwrap_or_default(),
    })
}

impl Ask<'_> {
    /// An argument that is a text, if it was given.
    pub fn argument(&self, name: &str) -> Option<&str> {
        self.arguments.get(name).and_then(Value::as_str)
    }

    /// A required argument: the check has seen to it.
    fn text(&self, name: &str) -> &str {
        self.argument(name).unwrap_or_default()
    }

    pub fn count(&self, name: &str) -> Result<Option<u64>, Problem> {
        match self.arguments.get(name) {
            None | Some(Value::Null) => Ok(None),
            Some(number) => {
                let refused = || Problem::new(Code::BadUserInput, format!("`{name}` must not be negative"));
                number.as_u64().map(Some).ok_or_else(refused)
            }
        }
    }
}

pub fn found<'d>(data: &'d Data, id: &str) -> Result<&'d Order, Problem> {
    data.store.order(id).ok_or_else(|| Problem::new(Code::NotFound, format!("no order `{id}`")))
}

pub fn order(order: &Order) -> Value {
    let mut value = typed("Order", json!(order));
    value["totalCents"] = order.total_cents().into();
    value
}

fn product(product: &Product) -> Value {
    typed("Product", json!(product))
}

fn person(person: &Person) -> Value {
    typed("Person", json!({"id": person.id, "name": person.name, "email": person.email}))
}

fn person_named(data: &Data, id: &str) -> Value {
    data.world.person(id).map(person).into()
}

fn typed(name: &str, mut value: Value) -> Value {
    value["__typename"] = name.into();
    value
}

fn products(ask: &Ask<'_>) -> Result<Value, Problem> {
    let (limit, offset) = (ask.count("limit")?.unwrap_or(MOST_PRODUCTS), ask.count("offset")?.unwrap_or(0));
    let category = ask.argument("category");
    let all = ask.data.store.products.iter().filter(|one| category.is_none_or(|wanted| one.category == wanted));
    let window = all.skip(offset as usize).take(limit.min(MOST_PRODUCTS) as usize);
    Ok(window.map(product).collect())
}

fn node(data: &Data, id: &str) -> Value {
    let product = || data.store.product(id).map(product);
    let order = || data.store.order(id).map(order);
    let person = || data.world.person(id).map(person);
    product().or_else(order).or_else(person).into()
}

fn search(ask: &Ask<'_>) -> Value {
    let text = ask.text("text").to_lowercase();
    let has = |name: &str| name.to_lowercase().contains(&text);
    let products = ask.data.store.products.iter().filter(|one| has(&one.name)).map(product);
    products.chain(ask.data.world.people.iter().filter(|one| has(&one.name)).map(person)).collect()
}

fn invoice(order: &Value) -> Result<Value, Problem> {
    let id = order["id"].as_str().unwrap_or_default();
    if order["status"] == "CANCELLED" {
        return Err(Problem::new(
            Code::Forbidden,
            format!("the invoice of the cancelled order `{id}` may not be seen"),
        ));
    }
    Ok(format!("/invoices/{id}.pdf").into())
}
