//! The rows of one wave: for each new entity its list, fields, get, query, search, method and relation lines, then what is new
//! of old ones.
//! Invariant: whatever the seeds' order, the same wave has the same rows in the same order.

use std::collections::{BTreeMap, HashSet};

use catalog::Catalog;

use super::style::SlotStyle;
use super::writer::{Sheet, Writer};
use crate::exposure::is_read;
use crate::ledger::{Ledger, Names, TaughtMethod, TaughtRelation, Wave};
use crate::seed::Catalogs;

#[derive(Debug, Default)]
pub struct Row {
    pub expr: String,
    pub meaning: String,
    /// Further expressions that the meaning tells of: other relations of an entity, other calls that take nothing.
    pub also: Vec<String>,
}

/// The wave that led from `before` to `ledger`.
pub struct Slice<'a> {
    pub before: &'a Ledger,
    pub ledger: &'a Ledger,
    pub catalogs: &'a Catalogs,
    pub wave: &'a Wave,
    pub style: SlotStyle,
    /// Whether `..` stands for the leading slots of a key that an earlier row of the wave spells out.
    pub leads: bool,
}

/// What is new of one entity.
#[derive(Default)]
pub struct News<'a> {
    pub is_new: bool,
    pub methods: Vec<&'a TaughtMethod>,
    pub relations: Vec<&'a TaughtRelation>,
}

pub fn rows(slice: &Slice<'_>) -> Vec<Row> {
    let wave = slice.wave;
    let mut news: BTreeMap<usize, (&base::CatalogId, &str, News<'_>)> = BTreeMap::new();
    for new in &wave.entities {
        news.entry(number(&new.symbol)).or_insert((&new.catalog, &new.entity, News::default())).2.is_new = true;
    }
    for new in &wave.methods {
        news.entry(number(&new.of)).or_insert((&new.catalog, &new.entity, News::default())).2.methods.push(new);
    }
    for new in &wave.relations {
        news.entry(number(&new.from)).or_insert((&new.catalog, &new.entity, News::default())).2.relations.push(new);
    }
    let names = Names::of(slice.ledger);
    let mut sheet = Sheet::new(slice, parts(slice, &names), names);
    slice.before.each_slot(slice.catalogs, |catalog, name, kind, is_named| {
        if is_named {
            sheet.is_named(catalog, name, kind);
        }
    });
    // New entities first, then what is new of old ones.
    let (new, old): (Vec<_>, Vec<_>) = news.into_iter().partition(|(_, (_, _, news))| news.is_new);
    for (at, (id, name, news)) in new.into_iter().chain(old) {
        let Some(catalog) = slice.catalogs.get(id) else { continue };
        let Some(entity) = catalog.entity(name) else { continue };
        let due = news.is_new || !slice.before.described(catalog, name);
        Writer::new(&mut sheet, catalog, entity, (at, due)).write(&news);
    }
    left_over(slice, &mut sheet);
    sheet.rows
}

/// A new entity that only calls which were taught before answer with is described on the first of them.
fn left_over<'a>(slice: &Slice<'a>, sheet: &mut Sheet<'a>) {
    if sheet.parts.is_empty() {
        return;
    }
    for method in slice.ledger.as_wave(slice.catalogs).methods {
        let Some(catalog) = slice.catalogs.get(&method.catalog) else { continue };
        let Some(capability) = catalog.capability(&method.capability).filter(|c| c.gives_rows()) else { continue };
        let gives = sheet.names.entity(&catalog.id, &capability.returns);
        let (Some(gives), Some(entity)) = (gives, catalog.entity(&method.entity)) else { continue };
        if sheet.parts.contains(&gives) {
            Writer::new(sheet, catalog, entity, (number(&method.of), false)).method(&method);
        }
    }
}

/// Entities that only relations and calls of others in this wave lead to: no line of their own names their fields, and no
/// earlier one did.
fn parts(slice: &Slice<'_>, names: &Names<'_>) -> HashSet<usize> {
    let own = |catalog: &Catalog, entity: &str| {
        let taught =
            slice.ledger.taught_methods(slice.catalogs).filter(|(c, m)| c.id == catalog.id && m.entity == entity);
        is_read(catalog, entity) || taught.into_iter().any(|(_, m)| m.gives_rows() && m.returns == entity)
    };
    let mut parts = HashSet::new();
    let mut add = |id: &base::CatalogId, name: &str| {
        let Some(catalog) = slice.catalogs.get(id) else { return };
        let known = slice.before.symbol_of(id, name).is_some() && slice.before.described(catalog, name);
        if !known && !own(catalog, name) {
            parts.extend(names.entity(id, name));
        }
    };
    for new in &slice.wave.entities {
        add(&new.catalog, &new.entity);
    }
    for method in &slice.wave.methods {
        let found = slice.catalogs.get(&method.catalog).and_then(|c| c.capability(&method.capability));
        found.into_iter().for_each(|c| add(&method.catalog, &c.returns));
    }
    for relation in &slice.wave.relations {
        let entity = slice.catalogs.get(&relation.catalog).and_then(|c| c.entity(&relation.entity));
        let found = entity.and_then(|e| e.relations.get(&relation.name));
        found.into_iter().for_each(|r| add(&relation.catalog, &r.target));
    }
    parts
}

/// 4 of `e4`.
pub fn number(symbol: &str) -> usize {
    symbol.get(1..).and_then(|digits| digits.parse().ok()).unwrap_or_default()
}
