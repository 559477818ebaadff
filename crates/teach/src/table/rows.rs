//! The rows of one wave: for each new entity its list, fields, get, query, search, method and relation lines, then what is new
//! of old ones.
//! Invariant: a slot is named with its type in the row that first needs it, and nowhere else.

use std::collections::BTreeSet;

use catalog::{Capability, Catalog, Entity, Param, Type};

use super::contract::is_long;
use crate::ledger::{Catalogs, Ledger, Taught, TaughtMethod, TaughtRelation, Wave};

pub struct Row {
    pub expr: String,
    pub meaning: String,
}

pub fn rows(ledger: &Ledger, catalogs: &Catalogs, wave: &Wave) -> Vec<Row> {
    let mut rows = Vec::new();
    for taught in &wave.entities {
        let Some((catalog, entity)) = find(catalogs, taught) else {
            continue;
        };
        let mut writer =
            Writer { ledger, catalog, entity, symbol: &taught.symbol, named: BTreeSet::new(), rows: Vec::new() };
        writer.entity_rows();
        for method in wave.methods.iter().filter(|m| m.of == taught.symbol) {
            writer.method(method);
        }
        for relation in wave.relations.iter().filter(|r| r.from == taught.symbol) {
            writer.relation(relation);
        }
        rows.extend(writer.rows);
    }
    let is_new = |symbol: &String| wave.entities.iter().any(|t| &t.symbol == symbol);
    for relation in wave.relations.iter().filter(|r| !is_new(&r.from)) {
        let (symbol, catalog, entity) = (relation.from.clone(), relation.catalog.clone(), relation.entity.clone());
        let from = Taught { symbol, catalog, entity };
        let Some((catalog, entity)) = find(catalogs, &from) else {
            continue;
        };
        let mut writer =
            Writer { ledger, catalog, entity, symbol: &from.symbol, named: BTreeSet::new(), rows: Vec::new() };
        writer.relation(relation);
        rows.extend(writer.rows);
    }
    rows
}

fn find<'a>(catalogs: &'a Catalogs, taught: &Taught) -> Option<(&'a Catalog, &'a Entity)> {
    let catalog = catalogs.get(&taught.catalog)?;
    Some((catalog, catalog.entity(&taught.entity)?))
}

struct Writer<'a> {
    ledger: &'a Ledger,
    catalog: &'a Catalog,
    entity: &'a Entity,
    symbol: &'a str,
    /// Slots that a row of this entity has named.
    named: BTreeSet<String>,
    rows: Vec<Row>,
}

impl Writer<'_> {
    fn push(&mut self, expr: String, fragments: impl IntoIterator<Item = String>) {
        let fragments: Vec<String> = fragments.into_iter().filter(|f| !f.is_empty()).collect();
        self.rows.push(Row { expr, meaning: fragments.join(" · ") });
    }

    fn entity_rows(&mut self) {
        let symbol = self.symbol;
        let name = self.shown_name();
        let listable = self.catalog.queries(&self.entity.name).find(|c| c.required().next().is_none());
        let get = self.catalog.get_of(&self.entity.name);
        if listable.is_some() {
            let lead = vec![name, one_line(&self.entity.about), format!("→ [{symbol}]")];
            self.push(symbol.to_owned(), lead);
            let fields = self.fields();
            self.push(format!("{symbol}[{}]", self.field_list()), [fields]);
            if get.is_some() {
                let (anchor, slots) = self.anchor();
                self.push(anchor, [format!("→ {symbol}"), slots]);
            }
        } else {
            self.unlisted(name, get.is_some());
        }
        let queries: Vec<&Capability> =
            self.catalog.queries(&self.entity.name).filter(|c| !c.params.is_empty()).collect();
        for capability in queries {
            // The line that names an unlisted entity's fields already shows a query with nothing to add.
            let shown = listable.is_none() && get.is_none() && capability.params.values().all(|p| p.required);
            if !shown {
                self.query(capability);
            }
        }
        let searches: Vec<&Capability> = self.catalog.searches(&self.entity.name).collect();
        let alone = listable.is_none() && get.is_none() && self.catalog.queries(&self.entity.name).next().is_none();
        for (at, capability) in searches.into_iter().enumerate() {
            self.search(capability, alone && at == 0);
        }
    }

    /// `first` is the line that names the fields, where an entity can only be searched.
    fn search(&mut self, capability: &Capability, names_fields: bool) {
        let symbol = self.symbol;
        let others = || capability.params.values().filter(|p| capability.text.as_ref() != Some(&p.name));
        let required: Vec<&Param> = others().filter(|p| p.required).collect();
        let braces: Vec<String> = required.iter().map(|p| format!("{}=$", self.slot(&p.name, &p.kind))).collect();
        let braces = if braces.is_empty() { String::new() } else { format!("{{{}}}", braces.join(",")) };
        let mut expr = format!("{symbol}~\"text\"{braces}");
        let mut meaning = Vec::new();
        if names_fields {
            meaning.extend([self.shown_name(), one_line(&self.entity.about), format!("→ [{symbol}]"), self.fields()]);
            expr = format!("{expr}[{}]", self.field_list());
        } else {
            meaning.extend([format!("→ [{symbol}]"), one_line(&capability.about)]);
        }
        let first: Vec<String> = required.iter().filter_map(|p| self.name_slot(&p.name, &p.kind)).collect();
        let rest = self.optional(others().filter(|p| !p.required));
        meaning.extend([first.join(", "), rest]);
        self.push(expr, meaning);
    }

    /// `e1(p1=$,p2=$).m1(p5=<<T)` on an instance, `e1.m2(p1=$)` on the type.
    fn method(&mut self, method: &TaughtMethod) {
        let Some(capability) = self.catalog.capability(&method.capability) else { return };
        let (receiver, key) =
            if capability.teaches_anchor() { self.anchor() } else { (self.symbol.to_owned(), String::new()) };
        let required: Vec<&Param> = capability.required().collect();
        let fill =
            |p: &Param| format!("{}={}", self.slot(&p.name, &p.kind), if is_long(&p.kind) { "<<T" } else { "$" });
        let filled: Vec<String> = required.iter().map(|p| fill(p)).collect();
        let returns = match (capability.gives_rows(), self.ledger.symbol_of(&self.catalog.id, &capability.returns)) {
            (false, _) => "→ ()".to_owned(),
            (true, Some(symbol)) => format!("→ {symbol}"),
            (true, None) => format!("→ {}", capability.returns),
        };
        let about = match one_line(&capability.about) {
            none if none.is_empty() => capability.method_name().to_owned(),
            about => about,
        };
        let named: Vec<String> = required.iter().filter_map(|p| self.name_slot(&p.name, &p.kind)).collect();
        let rest = self.optional(capability.params.values().filter(|p| !p.required));
        let expr = format!("{receiver}.{}({})", method.symbol, filled.join(","));
        self.push(expr, [returns, about, key, named.join(", "), rest]);
    }

    /// `opt p3, p11 since date`
    fn optional<'p>(&mut self, params: impl Iterator<Item = &'p Param>) -> String {
        let slots: Vec<String> =
            params.map(|p| self.name_slot(&p.name, &p.kind).unwrap_or_else(|| self.slot(&p.name, &p.kind))).collect();
        if slots.is_empty() { String::new() } else { format!("opt {}", slots.join(", ")) }
    }

    /// With its catalog once a session has two.
    fn shown_name(&self) -> String {
        if self.ledger.catalogs().len() > 1 {
            format!("{}:{}", self.catalog.id, self.entity.name)
        } else {
            self.entity.name.clone()
        }
    }

    /// An entity that cannot be listed names its fields on the line that reads it.
    fn unlisted(&mut self, name: String, has_get: bool) {
        let symbol = self.symbol;
        let about = one_line(&self.entity.about);
        let scoped = self.catalog.queries(&self.entity.name).next().map(|c| self.scope_braces(c));
        let (source, returns) = match (has_get, scoped) {
            (true, _) => (self.anchor().0, format!("→ {symbol}")),
            (false, Some(braces)) => (format!("{symbol}{braces}"), format!("→ [{symbol}]")),
            (false, None) => return,
        };
        let fields = self.fields();
        let expr = format!("{source}[{}]", self.field_list());
        self.push(expr, [name, about, returns, fields]);
    }

    fn query(&mut self, capability: &Capability) {
        let symbol = self.symbol;
        let required: Vec<_> = capability.required().collect();
        let mut optional: Vec<_> = capability.params.values().filter(|p| !p.required).collect();
        // A query with nothing required shows its first filter: the entity's own line already lists all.
        let shown = if required.is_empty() { optional.drain(..1).collect() } else { required };
        let braces: Vec<String> = shown.iter().map(|p| format!("{}=$", self.slot(&p.name, &p.kind))).collect();
        let first: Vec<String> = shown.iter().filter_map(|p| self.name_slot(&p.name, &p.kind)).collect();
        let rest = self.optional(optional.into_iter());
        let expr = format!("{symbol}{{{}}}", braces.join(","));
        self.push(expr, [format!("→ [{symbol}]"), one_line(&capability.about), first.join(", "), rest]);
    }

    fn relation(&mut self, relation: &TaughtRelation) {
        let many = self.entity.relations.get(&relation.name).is_some_and(|r| r.many);
        let returns = if many { format!("→ [{}]", relation.to) } else { format!("→ {}", relation.to) };
        let from = self.relation_source();
        self.push(format!("{from}.{}", relation.symbol), [returns, relation.name.clone()]);
    }

    /// What a relation line starts from: one row where one can be read, else the rows of a list or a scoped query.
    fn relation_source(&mut self) -> String {
        if self.catalog.get_of(&self.entity.name).is_some() {
            return self.anchor().0;
        }
        let query = self.catalog.queries(&self.entity.name).next();
        format!("{}{}", self.symbol, query.map(|c| self.scope_braces(c)).unwrap_or_default())
    }

    fn scope_braces(&self, capability: &Capability) -> String {
        let slots: Vec<String> = capability.required().map(|p| format!("{}=$", self.slot(&p.name, &p.kind))).collect();
        if slots.is_empty() { String::new() } else { format!("{{{}}}", slots.join(",")) }
    }

    /// `e1(p1=$,p2=$)`, or `e1($)` when the key has one part; and the slots that had no name yet.
    fn anchor(&mut self) -> (String, String) {
        let entity = self.entity;
        let key: Vec<&catalog::Field> = entity.key.iter().filter_map(|k| entity.fields.get(k)).collect();
        if let [_] = key.as_slice() {
            return (format!("{}($)", self.symbol), String::new());
        }
        let slots: Vec<String> = key.iter().map(|f| format!("{}=$", self.slot(&f.name, &f.kind))).collect();
        let named: Vec<String> = key.iter().filter_map(|f| self.name_slot(&f.name, &f.kind)).collect();
        (format!("{}({})", self.symbol, slots.join(",")), named.join(", "))
    }

    fn field_list(&self) -> String {
        let slots: Vec<String> = self.entity.fields.values().map(|f| self.slot(&f.name, &f.kind)).collect();
        slots.join(",")
    }

    /// Names and types of all fields, in the order of `field_list`, so that no symbol need be repeated.
    fn fields(&mut self) -> String {
        let entity = self.entity;
        let mut shown = Vec::new();
        for field in entity.fields.values() {
            self.named.insert(self.slot(&field.name, &field.kind));
            shown.push(format!("{}{}", field.name, self.type_of(&field.kind)));
        }
        shown.join(", ")
    }

    fn slot(&self, name: &str, kind: &Type) -> String {
        self.ledger.slot_symbol(self.catalog, name, kind).unwrap_or_else(|| name.to_owned())
    }

    /// `p11 since date` the first time a row needs the slot, `None` afterwards.
    fn name_slot(&mut self, name: &str, kind: &Type) -> Option<String> {
        let symbol = self.slot(name, kind);
        self.named.insert(symbol.clone()).then(|| format!("{symbol} {name}{}", self.type_of(kind)))
    }

    /// With a space before it; a plain string is not written.
    fn type_of(&self, kind: &Type) -> String {
        match kind {
            Type::String(catalog::TextStyle::Short) => String::new(),
            Type::Ref(target) => match self.ledger.symbol_of(&self.catalog.id, target) {
                Some(symbol) => format!(" {symbol}"),
                None => format!(" {target}"),
            },
            other => format!(" {}", other.describe()),
        }
    }
}

/// A description stays in its cell.
fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
